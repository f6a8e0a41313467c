"""maniple record: episodes of anybody who can play, as a dataset or as states to draw again."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from maniple.cli.out import make_folder

MOST_SEED = 2**62
"""Seeds are kept as whole numbers of 64 bits, and every episode takes the next one."""


@dataclass(frozen=True)
class Options:
    """Who is recorded, and where to."""

    what: Annotated[str, tyro.conf.Positional]
    """A task of 'maniple list', a run folder, or a checkpoint."""

    out: Path
    """The recording's folder."""

    policy: str | None = None
    """expert, random, or the path of a run or checkpoint; None: a run's own, a task's expert."""

    episodes: int = 20
    """Episodes to record."""

    format: Literal["lerobot", "states", "both"] = "both"
    """lerobot (a LeRobotDataset), states (for 'maniple replay'), or both."""

    num_envs: int = 8
    """Environments that play at once; the episodes do not depend on it."""

    cameras: tuple[str, ...] = ()
    """Cameras to record, as in: front wrist."""

    image_size: tuple[int, int] | None = None
    """Height and width of the pictures; given alone it means the task's first two cameras."""

    renderer: str | None = None
    """What draws them: auto, fast, mujoco, splat, hybrid; None: the task's or the run's choice."""

    control: str | None = None
    """How actions move the robot, as in delta_position; None: the task's or the run's own way."""

    max_episode_steps: int | None = None
    """Steps after which an episode is cut off; None: the task's choice."""

    perturb: str = "none"
    """Perturb every episode, as in light=0.4,camera=0.03: all of them at once."""

    seed: int | None = None
    """Seed of the first episode; None: 0, or the one after the last with --append."""

    engine: str = "auto"
    """auto, native, process or serial."""

    only_successes: bool = False
    """Leave out episodes in which the task was not solved."""

    latest: bool = False
    """Take the newest checkpoint of a run instead of the best."""

    append: bool = False
    """Add to a recording that exists already."""

    json: bool = False
    """Print one JSON object as the last line."""


def prepare(verb: str, words: list[str]) -> list[str]:
    """Take '--policy checkpoint PATH' as well as '--policy PATH'."""
    for at in range(len(words) - 1):
        if words[at : at + 2] == ["--policy", "checkpoint"]:
            return [*words[: at + 1], *words[at + 2 :]]
    return words


def run(options: Options) -> dict[str, Any]:
    """Play, write, tell every episode that is safe on the disk."""
    from maniple.learn.player import find_player

    _check(options)
    player = find_player(options.what, options.policy, best=not options.latest)
    make_folder(options.out, "--out")
    settings = {**player.settings, **_more_settings(options, player)}
    start, solved, frames = time.perf_counter(), 0, 0
    rows = min(options.num_envs, options.episodes)
    first = _first_seed(options)
    is_stopped = False
    with ExitStack() as stack:
        envs = stack.enter_context(closing(player.envs(rows, engine=options.engine, **settings)))
        _check_end(envs, player.task)
        store = stack.enter_context(closing(_Store(options, player, envs, settings)))
        recorded = 0
        try:
            for episode in _play(envs, player, options, first):
                number = store.add(episode)
                recorded, frames = recorded + 1, frames + len(episode)
                solved += episode.success
                if not options.json:
                    how = "solved" if episode.success else "not solved"
                    steps = _counted(len(episode), "step")
                    text = f"episode {number}: seed {episode.seed}, {steps}, {how}"
                    print(text, flush=True)
        except KeyboardInterrupt:
            is_stopped = True
    seconds = time.perf_counter() - start
    answer = {
        "task": player.task, "policy": player.name, "out": str(options.out),
        "format": options.format, "recorded": recorded, "solved": solved, "frames": frames,
        "seconds": round(seconds, 2), "is_stopped": is_stopped,
    }  # fmt: skip
    if not options.json:
        _tell(options, answer)
    return answer


def _play(envs: Any, player: Any, options: Options, first: int) -> Any:
    from maniple.data.demos import collect

    return collect(
        envs, player.actor(envs), options.episodes, first,
        only_successes=options.only_successes, with_states=options.format != "lerobot",
    )  # fmt: skip


class _Store:
    """Where episodes go: a dataset, a folder of states, or both under the same numbers."""

    def __init__(self, options: Options, player: Any, envs: Any, settings: dict) -> None:
        self._dataset = self._states = None
        fps, robot = envs.metadata["render_fps"], _robot(player.task)
        try:
            if options.format != "states":
                from maniple.cli.demos.dataset import origin_of
                from maniple.data.lerobot.write import DatasetWriter

                origin = origin_of(player.task, envs.metadata)
                self._dataset = DatasetWriter(options.out, fps, robot, origin)
            if options.format != "lerobot":
                from maniple.data.trajectory import Origin, TrajectoryWriter, numbers_in

                model = _digest(player.task, settings)
                about = Origin(player.task, _plain(settings), fps, robot, player.name, model)
                self._states = TrajectoryWriter(options.out, about)
                self._next = max(numbers_in(self._states.folder), default=-1) + 1
        except BaseException:
            self.close()
            raise

    def add(self, episode: Any) -> int:
        """Write an episode; when this returns its number, it outlives a crash."""
        number = self._next if self._dataset is None else self._dataset.episodes
        # States first: a dataset never tells of an episode that cannot be drawn again.
        if self._states is not None:
            self._states.add(episode, number)
            self._next = number + 1
        if self._dataset is not None:
            self._dataset.add(episode)
        return number

    def close(self) -> None:
        for writer in (self._dataset, self._states):
            if writer is not None:
                writer.close()


def _check(options: Options) -> None:
    from maniple.core.errors import BadConfig
    from maniple.data.lerobot.paths import INFO_PATH
    from maniple.data.trajectory import states_in

    if options.format != "states":
        from maniple.core.optional import require

        require("pyarrow")  # Before anything is played.
    for name in ("episodes", "num_envs"):
        if getattr(options, name) < 1:
            flag = name.replace("_", "-")
            raise BadConfig(f"--{flag} is {getattr(options, name)}; give 1 or more.")
    if options.out.exists() and not options.out.is_dir():
        raise BadConfig(f"{options.out} is a file; give a folder with --out.")
    if options.seed is not None and not 0 <= options.seed < MOST_SEED:
        raise BadConfig(f"--seed is {options.seed}; give 0 or more, below 2**62.")
    found = [(options.out / INFO_PATH).exists(), states_in(options.out) is not None]
    is_used, wanted = any(found), [options.format != "states", options.format != "lerobot"]
    if is_used and options.append and found != wanted:
        # An episode has one number in both: what only one of them has would be written over.
        has = "both" if all(found) else ("lerobot" if found[0] else "states")
        raise BadConfig(
            f"{options.out} was recorded with --format {has}: add to it with the same, or record "
            "into another folder."
        )
    if is_used and not options.append:
        raise BadConfig(
            f"{options.out} holds a recording already. Add to it with --append, "
            "or choose another folder with --out."
        )


def _more_settings(options: Options, player: Any) -> dict[str, Any]:
    from maniple.cli.bench.run import pictures
    from maniple.cli.conditions import together
    from maniple.core.errors import BadConfig

    more = pictures(player.task, options.cameras, options.image_size)
    if more and player.settings.get("cameras"):
        raise BadConfig(
            "The policy looks at pictures of its own: leave --cameras and --image-size out. "
            "'maniple replay' draws others afterwards."
        )
    if options.renderer is not None:
        more["renderer"] = options.renderer
    if options.control is not None:
        more["control"] = options.control
    if options.max_episode_steps is not None:
        more["max_episode_steps"] = options.max_episode_steps
    if perturb := together(options.perturb):
        more["perturb"] = perturb
    return more


def _check_end(envs: Any, task: str) -> None:
    """Refuse episodes that never end: they would fill the memory."""
    from maniple.core.errors import BadConfig

    if envs.get_attr("_max_episode_steps")[0] is None:
        raise BadConfig(f"Episodes of {task} never end: add --max-episode-steps 500")


def _first_seed(options: Options) -> int:
    """Return the seed that is given, or the one after the last."""
    if options.seed is not None:
        return options.seed
    if not options.append:
        return 0
    from maniple.data.lerobot.paths import INFO_PATH
    from maniple.data.trajectory import numbers_in, read_trajectory, states_in

    seeds = [-1]
    if (folder := states_in(options.out)) is not None:
        seeds += [read_trajectory(folder, number).seed for number in numbers_in(folder)]
    if (options.out / INFO_PATH).exists():
        from maniple.data.lerobot.meta import read_episode_rows

        seeds += [row.get("seed", -1) for row in read_episode_rows(options.out)]
    return max(seeds) + 1


def _robot(task: str) -> str:
    from maniple.registry import find

    robot = getattr(find(task), "robot", None)
    return robot.name if robot is not None else ""


def _digest(task: str, settings: dict[str, Any]) -> str:
    from maniple.cli.replay_group import group_model, make_group
    from maniple.sim.model_digest import model_digest

    group = make_group(task, settings, 1)
    try:
        return model_digest(group_model(group))
    finally:
        group.close()


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    from maniple.run.folder import plain

    return plain(settings)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _tell(options: Options, answer: dict[str, Any]) -> None:
    print(
        f"{_counted(answer['recorded'], 'episode')} of {answer['task']} by {answer['policy']} "
        f"{'is' if answer['recorded'] == 1 else 'are'} in {options.out} "
        f"({answer['solved']} solved, {_counted(answer['frames'], 'step')}, "
        f"{answer['seconds']:.1f} s)."
    )
    if not answer["recorded"]:
        return
    if options.format != "lerobot":
        own = f" --task {answer['task']}" if ":" in answer["task"] else ""
        print(f"Draw them with: maniple replay {options.out}{own}")
    if options.format != "states":
        print(f"Look at them with: maniple demos info {options.out}")
