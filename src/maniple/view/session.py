"""A task that is played by a policy, in which a person may step in."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.faults import lost_rows
from maniple.data.episode import NO_SEED, Episode
from maniple.data.take import Take
from maniple.sim.paint import Paint
from maniple.view.keys import Keys
from maniple.view.person import Person
from maniple.view.policies import RANDOM, STILL, Actor, Noise, Still, task_expert

REPEAT_S = 0.12
"""How long a held key acts in the browser: a little longer than the pause between its repeats."""
WAITS = 2000
"""How many of the times between a key and its step are remembered."""


@dataclass
class Totals:
    """What the row in focus has got so far."""

    steps: int = 0
    reward: float = 0.0
    is_solved: bool = False


class Session:
    """Environments, whoever acts in them, and a person who can take over one row.

    It knows nothing of the browser: the page calls it, and shows what it holds.

    Args:
        envs: A vector environment of ours; the session closes it.
        task: Its id.
        limit: Steps after which a row begins anew, unless a person has driven it; the
            environments themselves allow LONG_EPISODE. None: only theirs counts.
        seed: Of the first episode; the following ones count up.
    """

    def __init__(self, envs: Any, task: str, limit: int | None = None, seed: int = 0) -> None:
        self.envs, self.task, self.limit = envs, task, limit
        self.rows: int = envs.num_envs
        self.fps = float(envs.metadata.get("render_fps") or 25)
        self.model: mujoco.MjModel = envs.get_attr("model")[0]
        self.data = mujoco.MjData(self.model)
        """The row in focus, for whoever wants to look at more than places."""
        self.keys = Keys(hold_s=REPEAT_S, taps=True)
        self.person = Person(str(envs.metadata.get("arm_mode", "")), envs.action_spec, _tip(task))
        self.reach = 0.5
        """How far a key moves: part of the largest action."""
        self.focus = 0
        self.is_driven = False
        self.is_paused = False
        self.speed = 1.0
        self.totals = Totals()
        self.terms: dict[str, float] = {}
        """The reward of the last step in focus, and its terms."""
        self.episodes = self.solved = 0
        self.on_episode: Callable[[Episode], None] | None = None
        """Called with every episode of the row in focus that was played from its beginning."""
        self.waits_s: deque[float] = deque(maxlen=WAITS)
        """From a key's arrival to the step that it moved."""
        self.begun = np.ones(self.rows, np.bool_)
        """Rows that have begun an episode since somebody last looked."""
        self._next_seed = seed
        self._seeds = np.full(self.rows, NO_SEED, np.int64)
        self._elapsed = np.zeros(self.rows, np.int64)
        self._was_driven = np.zeros(self.rows, np.bool_)
        self._take: Take | None = None
        self._last_action: NDArray | None = None
        self.reset()
        self.has_own_looks = bool(Paint(self.model)) or any(
            self.states[0].get(name) for name in ("randomised", "expanded")
        )
        self.actors: dict[str, Actor] = {RANDOM: Noise(envs), STILL: Still(self._rest)}
        if (script := task_expert(task, envs, self.obs)) is not None:
            self.actors = {"expert": script, **self.actors}
        self.acting = next(iter(self.actors))

    def choose(self, name: str) -> None:
        """Let somebody else act from now on."""
        if name in self.actors:
            self.acting = name
            self.actors[name].reset(np.ones(self.rows, np.bool_))

    def look_at(self, row: int) -> None:
        """Put another row into focus; nobody drives it yet."""
        if row != self.focus and 0 <= row < self.rows:
            self.give_back()
            self.focus, self._take, self._last_action = row, None, None
            self.totals = Totals()
            self._load_focus()

    def take_over(self) -> None:
        """Let the person act in the row in focus."""
        if not self.is_driven:
            self.is_driven = True
            self.person.begin()
            if self._last_action is not None and self.totals.steps:
                self.keys.is_open = self.person.is_open_in(self._last_action)

    def give_back(self) -> None:
        """Let the policy go on in the row in focus."""
        if self.is_driven:
            self.is_driven = False
            self.keys.release()
            self.actors[self.acting].reset(self._only(self.focus))

    def reset(self, rows: NDArray[np.bool_] | None = None) -> None:
        """Begin new episodes, each from a seed of its own."""
        mask = np.ones(self.rows, np.bool_) if rows is None else rows
        seeds: list[int | None] = [None] * self.rows
        for row in np.flatnonzero(mask).tolist():
            seeds[row] = self._seeds[row] = self._next_seed
            self._next_seed += 1
        obs, info = self.envs.reset(seed=[s if s is None else int(s) for s in seeds],
                                    options={"reset_mask": mask})  # fmt: skip
        self._elapsed[mask] = 0
        self._was_driven[mask] = False
        self.begun |= mask
        self._look(obs)
        if hasattr(self, "actors"):
            self.actors[self.acting].reset(mask)
        if mask[self.focus]:
            self._begin_focus(info)

    def begin_at(self, seed: int) -> None:
        """Count episodes from this seed on, if it is further than where they are."""
        self._next_seed = max(self._next_seed, seed)

    def step(self) -> None:
        """Take one step in every row; begin anew where an episode is over."""
        now_s = time.monotonic()
        actions = np.array(self.actors[self.acting].act(self.obs))
        row, is_driven = self.focus, self.is_driven
        if is_driven:
            move = self.keys.step(now_s) * self.reach
            actions[row] = self.person.act(move, self.keys.is_open, self.data)
            self._was_driven[row] = True
            self.waits_s.extend(self.keys.take_waits(time.monotonic()))
        self._last_action = kept = actions[row].copy()
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        self._elapsed += 1
        self._look(obs)
        is_solved = bool(info["success"][row]) if "success" in info else False
        self._count(float(reward[row]), info, is_solved)
        if self._take is not None:
            self._take.add(self.obs, row, kept, float(reward[row]), is_solved, is_driven)
        over = terminated | truncated
        if self.limit is not None:
            over |= (self._elapsed >= self.limit) & ~self._was_driven
        if over.any():
            lost = lost_rows(info)
            self.episodes += int(over.sum())
            self.solved += int((over & info["success"]).sum()) if "success" in info else 0
            if over[row] and not (lost is not None and lost[row]):
                self._finish(bool(terminated[row]))
            self.reset(over)

    def end_episode(self, keep: bool) -> None:
        """Cut the episode of the row in focus off, and keep or forget it."""
        if keep and self._take is not None and len(self._take):
            self._finish(is_terminated=False)
        self.reset(self._only(self.focus))

    def joints(self) -> dict[str, tuple[float, float, float]]:
        """Return lowest, highest and present position of every actuated joint (rad, m)."""
        model, found = self.model, {}
        for joint in _driven_joints(model):
            low, high = model.jnt_range[joint]
            if not model.jnt_limited[joint] or low >= high:
                low, high = -np.pi, np.pi
            now = float(self.data.qpos[model.jnt_qposadr[joint]])
            found[model.joint(joint).name or f"joint {joint}"] = (float(low), float(high), now)
        return found

    def set_joint(self, name: str, position: float) -> None:
        """Put a joint of the row in focus somewhere; its episode no longer follows from a seed."""
        model, data = self.model, self.data
        joint = model.joint(name)
        data.qpos[joint.qposadr[0]] = position
        data.qvel[joint.dofadr[0]] = 0.0
        servos = (model.actuator_trnid[:, 0] == joint.id) & _moves_joint(model)
        data.ctrl[servos] = position
        state = dict(self.states[self.focus])
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        wanted = np.empty(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, data, wanted, kind)
        state["integration"] = wanted
        self.envs.set_state([state], [self.focus])
        self._seeds[self.focus] = NO_SEED
        self._take = None
        self.states = list(self.envs.get_attr("sim_state"))
        self._load_focus()

    @property
    def seed(self) -> int:
        """Seed of the episode in focus; -1: it was changed by hand."""
        return int(self._seeds[self.focus])

    @property
    def sentence(self) -> str:
        """What the robot is asked to do in the row in focus."""
        return self._sentence

    def whole_data(self) -> mujoco.MjData:
        """Return the row in focus with everything worked out, lights and cameras too."""
        data = mujoco.MjData(self.model)
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        mujoco.mj_setState(self.model, data, self.states[self.focus]["integration"], kind)
        mujoco.mj_forward(self.model, data)
        return data

    def close(self) -> None:
        """Let go of the environments."""
        self.envs.close()

    def _look(self, obs: Any) -> None:
        self.obs = dict(self.envs.named(obs))
        self.states: list[dict[str, Any]] = list(self.envs.get_attr("sim_state"))
        self._load_focus()

    def _load_focus(self) -> None:
        self._load(self.focus)

    def _load(self, row: int) -> None:
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        mujoco.mj_setState(self.model, self.data, self.states[row]["integration"], kind)
        mujoco.mj_kinematics(self.model, self.data)

    def _rest(self) -> NDArray:
        resting = []
        for row in range(self.rows):
            self._load(row)
            resting.append(self.person.rest(self.data))
        self._load_focus()
        return np.stack(resting)

    def _begin_focus(self, info: dict[str, Any]) -> None:
        self.totals = Totals()
        self.keys.is_open = True
        self.person.begin()
        self._take = Take(is_marked=True)
        self._take.see(self.obs, self.focus)
        if "sentence" in info and info["_sentence"][self.focus]:
            self._sentence = str(info["sentence"][self.focus])
        elif not hasattr(self, "_sentence"):
            self._sentence = str(self.envs.get_attr("sentence")[0])

    def _count(self, reward: float, info: dict[str, Any], is_solved: bool) -> None:
        totals, row = self.totals, self.focus
        totals.steps += 1
        totals.reward += reward
        totals.is_solved |= is_solved
        terms = {k: v for k, v in info.get("terms", {}).items() if not k.startswith("_")}
        self.terms = {"reward": reward, **{k: float(v[row]) for k, v in terms.items()}}

    def _finish(self, is_terminated: bool) -> None:
        if self._take is not None and len(self._take) and self.on_episode is not None:
            ended = (is_terminated, not is_terminated)
            self.on_episode(self._take.episode(*ended, self.seed, self._sentence))
        self._take = None

    def _only(self, row: int) -> NDArray[np.bool_]:
        return np.arange(self.rows) == row


def _tip(task: str) -> str | None:
    """Name the site between the fingertips, where the robot has one arm."""
    from maniple.core.errors import ManipleError
    from maniple.registry import find

    try:
        return find(task)().robot.tip
    except (ManipleError, AttributeError):
        return None


def _moves_joint(model: mujoco.MjModel) -> NDArray[np.bool_]:
    return np.asarray(model.actuator_trntype) == int(mujoco.mjtTrn.mjTRN_JOINT)


def _driven_joints(model: mujoco.MjModel) -> list[int]:
    """Hinges and slides that a servo moves."""
    joints = model.actuator_trnid[_moves_joint(model), 0]
    simple = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return [int(j) for j in dict.fromkeys(joints.tolist()) if model.jnt_type[j] in simple]
