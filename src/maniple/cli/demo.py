"""maniple demo: many arms at work, and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEES_ALL = {"observations": "all", "cameras": ()}
"""For experts: all that a task may hide, and no pictures."""


@dataclass(frozen=True)
class Options:
    """Where to put what is made."""

    out: Path = Path("demo")
    """Folder for the pictures and the film."""

    num_envs: int = 64
    """Arms that are stepped at once."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Show the speed, the experts, and what it looks like."""
    say = _speaker(options.json)
    say("[bold]maniple[/]: many robot arms, stepping as one.\n")
    speed = _show_speed(say, options)
    say("")
    wins = _show_experts(say, options)
    say("")
    files = [_draw_tasks(options), _film_experts(options)]
    learned, film = _train_to_reach(say, options)
    say("")
    for file in [*files, film]:
        say(f"look at  {file}")
    say("\nNext: [bold]maniple list[/], [bold]maniple train sac --help[/], examples/")
    return {
        "speed": speed,
        "experts": wins,
        "learned": learned,
        "files": [str(f) for f in [*files, film]],
    }


def _show_speed(say: Any, options: Options) -> dict[str, float]:
    """Step the same environment with us and with Gymnasium's AsyncVectorEnv, in turns."""
    from functools import partial

    from maniple.cli.bench.peers import gymnasium_async, single
    from maniple.cli.bench.rate import env_steps_per_s
    from maniple.registry import make_vec

    task, few = "LeRobot-v0", 8
    ours = make_vec(task, 256)
    theirs = gymnasium_async(partial(single, task), few)
    try:
        for envs in (ours, theirs):
            envs.reset(seed=0)
        rates = np.array(
            [(env_steps_per_s(ours, 120), env_steps_per_s(theirs, 300)) for _ in range(3)]
        )
    finally:
        ours.close()
        theirs.close()
    mine, async_rate = np.median(rates, axis=0)
    say(f"{task}, env-steps per second on this machine, taken in turns:")
    say(f"  maniple, 256 arms              [bold]{mine:>9,.0f}[/]")
    say(f"  Gymnasium AsyncVectorEnv, {few}    {async_rate:>9,.0f}   ({mine / async_rate:.0f}x)")
    return {"maniple": float(mine), "gymnasium_async": float(async_rate)}


def _show_experts(say: Any, options: Options) -> dict[str, float]:
    from maniple.cli.progress import bar
    from maniple.registry import EXPERTS, expert, make_vec

    wins = {}
    say(f"Scripted experts, {options.num_envs} arms at once, an episode each:")
    for task in (task for task in EXPERTS if task.startswith("so101/")):
        envs = make_vec(task, options.num_envs, **SEES_ALL)
        script = expert(task, options.num_envs)
        obs, _ = envs.reset(seed=0)
        solved = np.zeros(options.num_envs, bool)
        ended = np.zeros(options.num_envs, bool)
        with bar(task, options.num_envs, not options.json) as tick:
            while not ended.all():
                obs, _, term, trunc, info = envs.step(script.act(obs))
                solved |= info["success"] & ~ended
                fresh = (term | trunc) & ~ended
                ended |= fresh
                if tick and fresh.any():
                    tick(int(fresh.sum()))
        wins[task] = float(solved.mean())
        say(f"  {task:<22} {wins[task]:>5.0%}   {envs.get_attr('sentence')[0]}")
        envs.close()
    return wins


def _draw_tasks(options: Options) -> Path:
    """One picture of every task, the arm on its way."""
    from maniple.data.video import save_png, tile
    from maniple.registry import EXPERTS, TASKS, expert, make

    pictures = []
    for task in (*(task for task in TASKS if not task.startswith("panda/")), "panda/OpenDrawer-v0"):
        env = make(task, render_mode="rgb_array", **(SEES_ALL if task in EXPERTS else {}))
        obs, _ = env.reset(seed=3)
        if task in EXPERTS:
            script = expert(task, 1)
            for _ in range(14):
                obs, *_, info = env.step(script.act({k: v[None] for k, v in obs.items()})[0])
                if info["success"]:
                    break
        pictures.append(env.render(320, 240))
        env.close()
    path = options.out / "tasks.png"
    save_png(path, tile(pictures, 3))
    return path


def _film_experts(options: Options) -> Path:
    """Nine arms that stack cubes, each its own."""
    from maniple.data.video import Film, tile
    from maniple.registry import expert, make_vec

    task, arms = "so101/StackCubes-v0", 9
    envs = make_vec(task, arms, cameras=("front",), image_size=(160, 200), randomize=True)
    script = expert(task, arms)
    obs, _ = envs.reset(seed=0)
    path = options.out / "stacking.mp4"
    with Film(path, fps=25) as film:
        for _ in range(110):
            obs, _, term, trunc, _ = envs.step(script.act(obs))
            script.reset(term | trunc)
            film.add(tile(list(obs["front_rgb"]), 3))
    envs.close()
    return path


def _train_to_reach(say: Any, options: Options) -> tuple[float, Path]:
    """Train a policy from nothing, judge it on fresh episodes, and film it."""
    import shutil

    from maniple.cli.train.screen import Screen
    from maniple.learn.config import preset
    from maniple.learn.loop import train
    from maniple.learn.policy import load_policy
    from maniple.run.evaluation import FIRST_SEED, evaluate

    say("Now a policy learns to reach, from nothing:")
    config = preset("sac", "so101/Reach-v0").replace(
        stop_at_success=0.95, max_minutes=2.5, eval_n_trajs=100
    )
    run_dir = options.out / "reach-run"
    shutil.rmtree(run_dir, ignore_errors=True)
    with Screen(config, run_dir, is_quiet=options.json) as screen:
        train(config, run_dir, listen=screen.listen)
    policy = load_policy(run_dir)
    envs = policy.envs(32)
    result = evaluate(envs, policy.act, 100, 2 * FIRST_SEED)
    envs.close()
    low, high = result.success_ci95
    say(
        f"  it reaches in [bold]{result.success_rate:.0%}[/] of 100 fresh episodes "
        f"(95 %: {low:.0%} to {high:.0%})"
    )
    return result.success_rate, _film_policy(policy, options.out / "reaching.mp4")


def _film_policy(policy: Any, path: Path) -> Path:
    """Nine arms that reach, one target after the other."""
    from maniple.data.video import Film, tile

    envs = policy.envs(9, cameras=("front",), image_size=(160, 200))
    obs, _ = envs.reset(seed=7)
    with Film(path, fps=20) as film:
        for _ in range(120):
            obs, *_ = envs.step(policy.act(obs))
            film.add(tile(list(obs["front_rgb"]), 3))
    envs.close()
    return path


def _speaker(is_quiet: bool) -> Any:
    from rich.console import Console

    console = Console(stderr=is_quiet, highlight=False)
    return console.print
