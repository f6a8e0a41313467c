"""maniple eval: how good a trained policy is, with its uncertainty and its films."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig
from maniple.core.optional import require


@dataclass(frozen=True)
class Options:
    """What to evaluate."""

    checkpoint: Path
    """A run folder, or one of its checkpoints; with --policy also a task."""

    also: tuple[str, ...] = ()
    """More of them, each judged in the same way, under --perturb."""

    policy: str | None = None
    """expert or random: judge that instead of a trained policy; or the address of a policy server
    that speaks openpi's protocol, as in ws://127.0.0.1:8000."""

    states: tuple[str, ...] = ()
    """Of a policy server: observations that make up its state; none: what the robot knows of
    itself."""

    cameras: tuple[str, ...] = ()
    """Of a policy server: cameras that it is shown, as in: front wrist."""

    image_size: tuple[int, int] = (224, 224)
    """Of a policy server: height and width of its pictures."""

    control: str | None = None
    """Of a policy server: what its actions mean; None: the task's own way."""

    prompt: str | None = None
    """Of a policy server: what it is asked to do; None: the task's own sentence."""

    perturb: str = "none"
    """Perturbations to judge under as well, each beside the clean episodes of the same seeds, as in
    light=0.4,camera (a plus sign joins several to one: light+camera); all, or none. Short words:
    colour is object_colour, texture is patchwork, delay is action_delay, noise is
    observation_noise."""

    page: Path | None = None
    """Write an HTML page of the results under --perturb."""

    sheet: Path | None = None
    """Write a PNG that shows what each perturbation looks like."""

    num_envs: int = 16
    """Environments at once; the result does not depend on it. The planner plays all at once."""

    episodes: int = 100
    """Episodes to play, each from a seed of its own."""

    seed: int = 0
    """Episodes of another seed are other episodes."""

    renderer: str | None = None
    """Draw with another renderer than in training; None: the same one."""

    latest: bool = False
    """Take the newest checkpoint of a run instead of the best."""

    video: bool = True
    """Film the best and the worst episode."""

    out: Path | None = None
    """Folder for the films; None: videos/ in the run folder."""

    planner: str | None = None
    """world: the checkpoint is a latent world model, and actions are planned in it."""

    goal: str = "pink"
    """Of the planner: pink (where noise led), expert, reward, or a PNG of the goal."""

    json: bool = False
    """Print one JSON object as the last line."""


def prepare(verb: str, words: list[str]) -> list[str]:
    """Take '--checkpoint_path', as SERL's evaluation calls it, and a path without a flag."""
    named = list(takewhile(lambda word: not word.startswith("-"), words))
    if named:
        more = ["--also", *named[1:]] if named[1:] else []
        words = ["--checkpoint", named[0], *more, *words[len(named) :]]
    parts = [word.partition("=") for word in words]
    names = ("--checkpoint_path", "--checkpoint-path")
    return [
        ("--checkpoint" if head in names else head) + equals + tail for head, equals, tail in parts
    ]


def run(options: Options) -> dict[str, Any]:
    """Evaluate, film, tell."""
    if options.num_envs < 1 or options.episodes < 1:
        raise BadConfig(
            f"num_envs is {options.num_envs} and episodes is {options.episodes}; both must be 1 "
            "or larger."
        )
    _check_port(options)
    require("torch")
    if options.perturb != "none" or options.policy or options.sheet or options.page or options.also:
        from maniple.cli.eval_perturbed import evaluate_perturbed

        return evaluate_perturbed(options)
    if options.planner is not None:
        _check_planner(options)
        from maniple.cli.eval_planner import evaluate_planner

        return evaluate_planner(options)
    _refuse_world(options.checkpoint)
    from maniple.cli.progress import bar, episodes_done
    from maniple.learn.policy import load_policy
    from maniple.run.evaluation import FIRST_SEED, evaluate

    policy = load_policy(options.checkpoint, best=not options.latest)
    if options.renderer is not None and (note := policy.draw_with(options.renderer)):
        print(f"note     {note}")
    task, checkpoint = policy.config.run.task, policy.checkpoint
    # Far from the seeds of the evaluations during training, which chose this checkpoint.
    first_seed = 2 * FIRST_SEED + options.seed * 1_000_000
    envs = policy.envs(min(options.num_envs, options.episodes))
    try:
        with bar(task, options.episodes, not options.json) as tick:
            result = evaluate(
                envs,
                policy.act,
                options.episodes,
                first_seed,
                policy.stack,
                watch=episodes_done(tick),
            )
    finally:
        envs.close()
    low, high = result.success_ci95
    answer = {
        "task": task,
        "checkpoint": str(checkpoint.path),
        # JSON has no NaN: a task without success has no rate.
        "success_rate": None if result.successes is None else result.success_rate,
        "success_ci95": None if result.successes is None else [low, high],
        "episodes": result.episodes,
        "return_mean": result.return_mean,
        "length_mean": sum(result.lengths) / result.episodes,
        "videos": [],
    }
    if not options.json:
        print(f"policy   {checkpoint.path}")
        print(
            f"{task}: success {result.success_rate:.1%} "
            f"(95 %: {low:.1%} to {high:.1%}) in {result.episodes} episodes; "
            f"return {result.return_mean:.2f}, {answer['length_mean']:.0f} steps on average."
        )
    # After what everybody waits for: films of large pictures take a while.
    answer["videos"] = _film(options, policy, result, checkpoint.path) if options.video else []
    for path in answer["videos"] if not options.json else ():
        print(f"look at  {path}")
    return answer


def _check_port(options: Options) -> None:
    """Refuse what has no meaning without a policy server."""
    from maniple.learn.player import is_address

    given = ("states", "cameras", "image_size", "control", "prompt")
    for name in given if not is_address(options.policy) else ():
        if getattr(options, name) != getattr(Options, name):
            flag = name.replace("_", "-")
            raise BadConfig(f"--{flag} is for a policy server: --policy ws://127.0.0.1:8000.")


def _check_planner(options: Options) -> None:
    """Refuse what has no meaning for a planner: it makes no films, and plays all at once."""
    if options.planner != "world":
        raise BadConfig(f"planner is {options.planner!r}; there is one: world.")
    if options.num_envs not in (Options.num_envs, options.episodes):
        raise BadConfig(
            "--num-envs has no meaning with --planner world: all --episodes play at once."
        )
    if options.out is not None:
        raise BadConfig("--out has no meaning with --planner world: it makes no films.")


def _refuse_world(path: Path) -> None:
    """Say how a world model is evaluated, where one is named."""
    from maniple.run.folder import folder_of

    folder = folder_of(path)
    if path.exists() and folder.is_used and "phase" in folder.config():
        raise BadConfig(f"{path} holds a world model: add --planner world.")


def _film(options: Options, policy: Any, result: Any, checkpoint: Path) -> list[str]:
    from maniple.run.folder import folder_of

    folder = options.out or folder_of(checkpoint).videos
    order = sorted(range(result.episodes), key=lambda k: result.returns[k])
    films = []
    for name, k in (("worst", order[0]), ("best", order[-1])):
        path = folder / f"{name}.mp4"
        policy.film(path, result.seeds[k])
        films.append(str(path))
    return films
