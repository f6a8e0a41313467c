"""Measure the world-model pipeline: the figures of docs/how-to/world-model.md.

    python bench/world.py planning --teacher RUN --goals 50
    python bench/world.py shifts --teacher RUN --goals 30
    python bench/world.py coverage --teacher RUN --seeds 5 --steps 16000
    python bench/world.py television --teacher RUN --steps 4000
    python bench/world.py adversarial --teacher RUN --iterations 20
    python bench/world.py limits --teacher RUN --iterations 20
    python bench/world.py judge --teacher RUN
    python bench/world.py loading

Each prints JSON lines with the seeds that were used; CPU time, because the machine is shared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from maniple.registry import expert, find
from maniple.run.evaluation import evaluate
from maniple.run.ranks import Ranks
from maniple.world import oppose
from maniple.world.config import WorldConfig
from maniple.world.coverage import Coverage
from maniple.world.explore import seen_alike
from maniple.world.goal_planner import GoalPlanner
from maniple.world.make import make_envs, make_player
from maniple.world.noise import PinkNoise, UniformNoise
from maniple.world.phase import run_dir
from maniple.world.planning import GOALS, Goals, compare
from maniple.world.quality import measure, spearman
from maniple.world.rounds import play
from maniple.world.source import LiveSource
from maniple.world.student import Student
from maniple.world.teacher_checkpoint import LoadedTeacher, load_teacher


def tell(**found: Any) -> None:
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}))


def planning(options: argparse.Namespace) -> None:
    """Goals that noise and experts reached, on seeds that training never saw."""
    teacher = load_teacher(options.teacher)
    envs = make_envs(teacher.config, options.goals, max_episode_steps=1000, perturb={})
    for kind in GOALS:
        goals = Goals(envs, kind, options.seed)
        planner = GoalPlanner(teacher.model, envs.action_spec)
        for name, planned in compare(goals, planner, 60, options.seed).items():
            tell(goal=kind, player=name, seed=options.seed, **planned.summary())
    envs.close()


def shifts(options: argparse.Namespace) -> None:
    """The same goals in worlds that are a little different; goals are pictures of that world."""
    teacher = load_teacher(options.teacher)
    ways = {"none": 0.0, "background": 0.4, "object_colour": 0.5, "light": 0.5, "camera": 0.03,
            "start": 0.3}  # fmt: skip
    for kind, far in ways.items():
        perturb = {kind: far} if far else {}
        envs = make_envs(teacher.config, options.goals, max_episode_steps=1000, perturb=perturb)
        goals = Goals(envs, "pink", options.seed)
        planner = GoalPlanner(teacher.model, envs.action_spec)
        planner.aim(goals.pictures)
        tell(shift=kind, far=far, seed=options.seed, **goals.pursue(planner, 60).summary())
        envs.close()


def coverage(options: argparse.Namespace) -> None:
    """Voxels visited in equally many steps by the explorer, pink noise and random actions."""
    teacher = load_teacher(options.teacher)
    ratios: dict[str, list[float]] = {"random": [], "pink": []}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        config = _of_teacher(teacher, seed)
        begin, found = process_time(), {}
        found["mpc"] = _explored(config, teacher, options.steps)
        cpu_s = process_time() - begin
        for name in ("random", "pink"):
            found[name] = _played(config, name, options.steps)
        for name, cells in found.items():
            tell(seed=seed, player=name, steps=options.steps, gripper=cells[0], object=cells[1],
                 **({"cpu_s": cpu_s} if name == "mpc" else {}))  # fmt: skip
        for name, values in ratios.items():
            values.append(found["mpc"][0] / found[name][0])
    for name, values in ratios.items():
        low, high = _interval(values)
        tell(
            mpc_over=name, seeds=options.seeds, ratio=float(np.mean(values)), low95=low, high95=high
        )


def _of_teacher(teacher: LoadedTeacher, seed: int) -> WorldConfig:
    """The teacher's environments, with a round of 16 rows and 50 steps and a seed of its own."""
    config = seen_alike(WorldConfig(), teacher)
    env = replace(config.environment, num_envs=16)
    # Curiosity must learn as fast as it sees: with 10 updates in a round it runs after itself.
    training = replace(
        config.training, seed=seed + 100, steps_per_episode=50, updates_per_episode=40
    )
    return replace(config, environment=env, training=training, teacher=teacher.config.teacher)


def _explored(config: WorldConfig, teacher: LoadedTeacher, steps: int) -> tuple[int, int]:
    source = LiveSource(config)
    student = Student(config, teacher, source.layout, source.action, Ranks())
    _explore(config, source, student, steps)
    return _cells(student.coverage)


def _explore(config: WorldConfig, source: LiveSource, student: Student, steps: int) -> None:
    """Let a student explore for so many steps of all rows."""
    per_round = config.environment.num_envs * config.training.steps_per_episode
    for number in range(steps // per_round):
        student.begin()
        played = play(source.envs, student.player, config.training.steps_per_episode,
                      (100_000 * config.training.seed + number) * 16, source.shapes.names,
                      student.watch)  # fmt: skip
        student.add(played.episodes())
        student.update(1)
    source.close()


def _played(config: WorldConfig, kind: str, steps: int) -> tuple[int, int]:
    """The same rounds, from the same seeds, by noise."""
    envs, rows = make_envs(config), config.environment.num_envs
    length, seen = config.training.steps_per_episode, Coverage()
    for number in range(steps // (rows * length)):
        rng = np.random.default_rng([config.training.seed, number])
        player = _noise(kind, envs.action_spec, rows, length, rng)
        seed = (100_000 * config.training.seed + number) * 16
        play(envs, player, length, seed, (), lambda before, action, after: seen.add(after))
    envs.close()
    return _cells(seen)


def _noise(kind: str, spec: Any, rows: int, length: int, rng: np.random.Generator) -> Any:
    return PinkNoise(spec, rows, length, rng) if kind == "pink" else UniformNoise(spec, rows, rng)


def _cells(seen: Coverage) -> tuple[int, int]:
    return len(seen.cells("gripper")), len(seen.cells("object"))


def _interval(values: list[float]) -> tuple[float, float]:
    """95 % of the mean by Student's t, two-sided, for two to ten values."""
    t = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
    if len(values) < 2:
        return float("nan"), float("nan")
    half = t[len(values)] * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return float(np.mean(values)) - half, float(np.mean(values)) + half


class Television:
    """Environments in whose picture a patch shows noise while the gripper is at its left."""

    def __init__(self, envs: Any, is_on: bool) -> None:
        self._envs, self._is_on = envs, is_on
        self._rng = np.random.default_rng(0)
        self._before: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._envs, name)

    def named(self, obs: Any) -> dict[str, Any]:
        """Show the television in every front picture, and count who stands before it."""
        seen = dict(self._envs.named(obs))
        is_before = seen["tip_pos"][:, 1] > 0.05
        self._before.append(float(is_before.mean()))
        picture = seen["front_rgb"].copy()
        picture[:, :20, :20] = 128
        if self._is_on:
            noise = self._rng.integers(0, 256, (int(is_before.sum()), 20, 20, 3), np.uint8)
            picture[is_before, :20, :20] = noise
        return seen | {"front_rgb": picture}

    def share(self) -> float:
        """Part of the time that was spent before it, in the second half of the run."""
        return float(np.mean(self._before[len(self._before) // 2 :]))


def television(options: argparse.Namespace) -> None:
    """Share of the time before a noisy television, on and off, by what is rewarded."""
    policy = {"algorithm": "ppo", "novelty": 0.0}
    ways = {"mpc": ({}, options.steps), "ppo, disagreement": (policy, options.ppo_steps),
            "ppo, raw error": (policy | {"disagreement": 0.0, "raw_error": 1.0}, options.ppo_steps),
            }  # fmt: skip
    for name, (settings, steps) in ways.items():
        for is_on in (False, True):
            teacher = load_teacher(options.teacher)
            config = _of_teacher(teacher, options.seed)
            config = replace(config, student=replace(config.student, **settings))
            if settings:
                # A policy learns over many rounds, and its heads with it.
                config = replace(config, training=replace(config.training, updates_per_episode=10))
            source, begin = LiveSource(config), process_time()
            source.envs = Television(source.envs, is_on)
            student = Student(config, teacher, source.layout, source.action, Ranks())
            _explore(config, source, student, steps)
            tell(reward=name, is_on=is_on, steps=steps, seed=options.seed,
                 share=source.envs.share(), cpu_s=process_time() - begin)  # fmt: skip


def adversarial(options: argparse.Namespace) -> None:
    """Against the teacher continued on equally many pink-noise steps and updates."""
    teacher = load_teacher(options.teacher)
    base = _of_teacher(teacher, options.seed)
    base = replace(base, training=replace(base.training, updates_per_episode=16, held_out=2,
                                          save_every=0, log_every=1000))  # fmt: skip
    pink = {"warm_up": options.iterations, "prioritise": False}
    ways = {
        "pink": pink,
        "constrained": {"warm_up": 2, "constraint": 0.5},
        "free": {"warm_up": 2, "constraint": 0.0},
    }
    if options.what == "limits":
        ways = {"pink": pink, "handed uniform": pink, "handed reached": pink}
    models: dict[str, Any] = {"teacher": teacher.model}
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in ways.items():
            changed = replace(
                base.adversarial, teacher_checkpoint=teacher.checkpoint.path,
                output_dir=Path(folder) / name, total_iterations=options.iterations, **settings,
            )  # fmt: skip
            config = replace(base, adversarial=changed)
            begin, last = process_time(), {}
            with _handed(name, base):
                oppose.train(config, listen=lambda step, metrics, last=last: last.update(metrics))
            models[name] = load_teacher(run_dir(config, "adversarial")).model
            names = ("probe/db", "probe/rollbacks", "coverage/gripper")
            tell(way=name, cpu_s=process_time() - begin, **{n: last.get(n) for n in names})
    # An explorer that none of them was trained with; arms that begin anywhere; arms that went to
    # places drawn evenly; random actions.
    judge_config = _of_teacher(teacher, options.seed + 50)
    for where, held_out in (("explorer", _visited(judge_config, load_teacher(options.teacher))),
                            ("uniform", _random(judge_config, {"start": ANYWHERE_RAD})),
                            ("reached", _reached(judge_config)),
                            ("random", _random(judge_config))):  # fmt: skip
        for name, model in models.items():
            found = measure(model, held_out, 320, (1, 5, 10))
            errors = {f"mse_1e3_h{row.h}": 1e3 * 10 ** (-row.psnr / 10) for row in found.horizons}
            moving = {f"moving_db_h{row.h}": row.moving for row in found.horizons}
            tell(states=where, model=name, seed=options.seed, **errors, **moving)


@contextmanager
def _handed(name: str, config: WorldConfig) -> Iterator[None]:
    """Let a way learn from the very kind of states that it is judged on, with other draws.

    No explorer can do better than that: what is gained is what there is to gain.
    """
    if not name.startswith("handed"):
        yield
        return
    is_anywhere = name == "handed uniform"
    perturb = {"start": ANYWHERE_RAD} if is_anywhere else {}
    source = LiveSource(replace(config, environment=replace(config.environment, perturb=perturb)))

    def played(_: Any, seen: LiveSource, learner: Any) -> Any:
        number = learner.episodes
        player = make_player(config, source.envs, number, "random")
        if not is_anywhere:
            player = _traveller(config, source, player, number)
        return play(source.envs, player, 50, 5_000_000 + 16 * number, seen.shapes.names,
                    learner.watch).episodes()  # fmt: skip

    with patch.object(oppose, "_round", played):
        yield
    source.close()


def _visited(config: WorldConfig, teacher: LoadedTeacher) -> Any:
    source = LiveSource(config)
    student = Student(config, teacher, source.layout, source.action, Ranks())
    buffer = source._buffer(10_000)
    for number in range(4):
        student.begin()
        played = play(source.envs, student.player, 50, 777_000_000 + 16 * number,
                      source.shapes.names, student.watch)  # fmt: skip
        for episode, solved in played.episodes():
            buffer.add(episode, 0, solved)
            student.replay.add(episode, 0, solved)
        student.update(1)
    source.close()
    return buffer


ANYWHERE_RAD = 1.0
"""Joints of uniform states lie so far around where episodes begin."""


def _random(config: WorldConfig, perturb: dict[str, float] | None = None) -> Any:
    """Episodes of random actions; arms that would begin inside the desk are left out."""
    environment = replace(config.environment, perturb=perturb or {})
    source = LiveSource(replace(config, environment=environment))
    buffer = source._buffer(10_000)
    for number in range(6):
        player = make_player(config, source.envs, number, "random")
        played = play(source.envs, player, 50, 888_000_000 + 16 * number, source.shapes.names)
        for episode, solved in played.episodes():
            if episode.obs["tip_pos"][0, 2] > 0:
                buffer.add(episode, 0, solved)
    source.close()
    return buffer


class Traveller:
    """Takes every row to a place of its own in so many steps; random actions play on from there."""

    def __init__(self, places: Any, step_m: float, travel: int, then: Any) -> None:
        self._places, self._step_m, self._travel, self._then = places, step_m, travel, then
        self._at = 0

    def reset(self, rows: Any) -> None:
        self._at = 0

    def act(self, obs: Any) -> Any:
        """Go straight, with the gripper as random actions leave it."""
        action = self._then.act(obs)
        if self._at < self._travel:
            way = (self._places - obs["tip_pos"]) / self._step_m
            action[:, :3] = np.clip(way, -1, 1)
        self._at += 1
        return action


TRAVEL = 26
"""Steps in which an arm gets to its place."""


def _traveller(config: WorldConfig, source: LiveSource, then: Any, number: int) -> Traveller:
    task: Any = find(config.environment.task)
    rng = np.random.default_rng([config.training.seed, 5, number])
    places = rng.uniform(task.ee_low_m, task.ee_high_m, (source.envs.num_envs, 3))
    return Traveller(places, task.ee_step_m, TRAVEL, then)


def _reached(config: WorldConfig) -> Any:
    """Random actions at places drawn evenly from the box that the control keeps the tip in."""
    source = LiveSource(config)
    buffer = source._buffer(10_000)
    for number in range(8):
        random = make_player(config, source.envs, number, "random")
        player = _traveller(config, source, random, number)
        played = play(source.envs, player, 50, 999_000_000 + 16 * number, source.shapes.names)
        for episode, solved in played.episodes():
            obs = {name: array[TRAVEL:] for name, array in episode.obs.items()}
            action, reward = episode.action[TRAVEL:], episode.reward[TRAVEL:]
            buffer.add(replace(episode, obs=obs, action=action, reward=reward), 0, solved[TRAVEL:])
    source.close()
    return buffer


def limits(options: argparse.Namespace) -> None:
    """What the adversarial phase could gain at most: the comparison, handed the judge's states."""
    adversarial(options)


def judge(options: argparse.Namespace) -> None:
    """Rank experts that were made worse by degrees, in the model and in the simulator."""
    from maniple.world.env import WorldModelEnv

    teacher = load_teacher(options.teacher)
    config = _of_teacher(teacher, 0)
    source = LiveSource(config)
    starts = {n: source.held_out().arrays[f"obs.{n}"] for n in teacher.shapes.names}
    first = source.held_out().arrays["age"] == 0
    starts = {name: array[first] for name, array in starts.items()}
    source.close()
    steps, rows = config.training.steps_per_episode, 16
    real = make_envs(config, rows, autoreset_mode="NextStep", terminate_on_success=True)
    imagined = WorldModelEnv(teacher.model, real.layout, real.action_spec, starts, rows, steps)
    for name, (make, degrees) in FAMILIES.items():
        inside, outside = [], []
        for degree in np.linspace(degrees[0], degrees[1], options.policies):
            scores = []
            for envs in (real, imagined):
                act = make(config.environment.task, rows, float(degree), envs.action_spec)
                scores.append(evaluate(envs, act, options.episodes, 4_000_000).success_rate)
            outside.append(scores[0])
            inside.append(scores[1])
            tell(family=name, degree=float(degree), simulator=scores[0], model=scores[1])
        _tell_correlation(name, np.array(inside), np.array(outside))
    real.close()


def _tell_correlation(family: str, inside: Any, outside: Any) -> None:
    if np.ptp(inside) == 0 or np.ptp(outside) == 0:
        tell(family=family, pearson=None, why="one of the two gives every policy the same score")
        return
    r = float(np.corrcoef(inside, outside)[0, 1])
    z, half = np.arctanh(np.clip(r, -0.9999, 0.9999)), 1.96 / np.sqrt(len(inside) - 3)
    between = int(((outside >= 0.2) & (outside <= 0.8)).sum())
    tell(family=family, policies=len(inside), pearson=r, low95=float(np.tanh(z - half)),
         high95=float(np.tanh(z + half)), spearman=spearman(inside, outside),
         between_20_and_80=between)  # fmt: skip


def _trembling(task: str, rows: int, noise: float, spec: Any) -> Callable:
    """An expert whose actions get noise."""
    scripted, rng = expert(task, rows), np.random.default_rng(3)

    def act(obs: Any) -> Any:
        action = scripted.act(obs) + noise * rng.normal(size=(rows, *spec.shape))
        return np.clip(action, *spec.bounds()).astype(spec.dtype)

    return act


def _mistaken(task: str, rows: int, off_m: float, spec: Any) -> Callable:
    """An expert that takes the target to be `off_m` metres from where it is, and trembles."""
    way = np.random.default_rng(4).normal(size=(rows, 3))
    off = off_m * way / np.linalg.norm(way, axis=1, keepdims=True)
    trembling = _trembling(task, rows, 0.3, spec)
    return lambda obs: trembling({**obs, "target_pos": obs["target_pos"] + off})


FAMILIES = {"trembling": (_trembling, (0.0, 8.0)), "mistaken": (_mistaken, (0.022, 0.044))}
"""Policies that get worse by degrees, and the range of degrees. All of them are told.

The ranges were chosen by the simulator's scores alone: where it tells policies apart.
"""


def loading(options: argparse.Namespace) -> None:
    """Frames per CPU-second that reach a batch: ours, and a loader that seeks for every stretch.

    The latter opens an MP4, seeks and decodes the 9 frames of each stretch that it draws, as data
    loaders do that keep nothing decoded.
    """
    from maniple.cli.main import main
    from maniple.data.lerobot.film import film_frames, read_film
    from maniple.world.episode_cache import load_cached

    with tempfile.TemporaryDirectory() as folder:
        root, cache = Path(folder) / "demos", Path(folder) / "cache"
        main(["demos", "record", "--task", "so101/PushCube-v0", "--episodes", "32", "--out",
              str(root), "--cameras", "front", "--image-size", "64", "64"])  # fmt: skip
        films = sorted(root.rglob("*.mp4"))
        counts = [film_frames(film) for film in films]
        rates = {}
        rng = np.random.default_rng(0)
        for name, length in (("one_frame", 1), ("random_access", STRETCH_FRAMES)):
            begin, drawn = process_time(), 0
            while process_time() - begin < 3:
                film = int(rng.integers(len(films)))
                first = int(rng.integers(max(1, counts[film] - length)))
                drawn += len(read_film(films[film], first, length, 25))
            rates[name] = drawn / (process_time() - begin)
        begin = process_time()
        for film, count in zip(films, counts, strict=True):
            read_film(film, 0, count, 25)
        rates["sequential_decode"] = sum(counts) / (process_time() - begin)
        begin = process_time()
        found = load_cached(root, cache)
        buffer = _filled(found)
        rates["first_read"] = sum(counts) / (process_time() - begin)
        drawing, drawn = process_time(), 0
        for _ in range(options.updates):
            buffer.sample(16, 5, 4)
            drawn += 16 * STRETCH_FRAMES
        end = process_time()
        rates["memory"] = drawn / (end - drawing)
        rates["one_run"] = drawn / (end - begin)
        begin = process_time()
        _filled(load_cached(root, cache))
        rates["mapped_read"] = sum(counts) / (process_time() - begin)
    tell(episodes=len(films), frames=sum(counts), updates=options.updates, **rates)
    over = rates["random_access"]
    tell(**{f"{name}_over_random_access": rate / over for name, rate in rates.items()})


STRETCH_FRAMES = 9
"""Of a stretch as the teacher draws it: four frames of history and five that follow."""


def _filled(found: list[Any]) -> Any:
    """Put episodes into the buffer that a teacher learns from."""
    from maniple.data.sequence_buffer import SequenceBuffer, kept
    from maniple.world.source import _described

    layout, action = _described(found[0])
    frames = sum(len(e) + 1 for e in found)
    buffer = SequenceBuffer(kept(layout, ("front_rgb",)), action, frames)
    for episode in found:
        buffer.add(episode)
    return buffer


RUNS = {
    run.__name__: run
    for run in (
        planning,
        shifts,
        coverage,
        television,
        adversarial,
        limits,
        judge,
        loading,
    )
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*RUNS])
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--goals", type=int, default=50)
    parser.add_argument("--seed", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--steps", type=int, default=16_000)
    parser.add_argument("--ppo-steps", type=int, default=64_000)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--policies", type=int, default=12)
    parser.add_argument("--episodes", type=int, default=48)
    chosen = parser.parse_args()
    RUNS[chosen.what](chosen)
