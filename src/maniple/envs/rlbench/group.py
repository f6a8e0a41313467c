"""One RLBench environment as a group of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.seeds import SeedTree
from maniple.core.step import StepArrays
from maniple.envs.rlbench.config import LOW_DIM, RLBenchConfig
from maniple.envs.rlbench.contract import contract
from maniple.envs.rlbench.observation import arrays_of, demo_arrays
from maniple.envs.rlbench.simulator import InvalidAction, Simulator


class RLBenchGroup:
    """A simulator, and where its one row is in its episode.

    An action that cannot be carried out leaves everything as it is and is reported in
    `info["invalid_action"]`. Any other error ends the process, which the engine replaces.
    """

    def __init__(self, config: RLBenchConfig, num_envs: int, rank: int, first_row: int) -> None:
        if num_envs != 1:
            raise BadConfig(
                f"CoppeliaSim runs once per process, and {num_envs} environments were asked of "
                "one: use as many workers as environments."
            )
        self.config = config
        self.limit: int | None = config.max_episode_steps
        self._simulator = Simulator(config)
        self._seeds = SeedTree(1, rank)
        self.first_row = first_row
        self._out: StepArrays | None = None
        self._infos: dict[str, Any] = {}
        self._began: tuple[int, int | None] = 0, config.variation
        """What the episode began with: the simulator's seed and the variation asked for."""
        self._elapsed = 0
        self._reward = 0.0
        self._is_over = self._is_invalid = False
        self._invalid_count = 0
        self._observed: Any = None
        """RLBench's last Observation, as long as nothing has moved since."""
        low_dim = None
        if LOW_DIM in config.observations:
            self._simulator.reset(0, config.variation)
            low_dim = len(np.atleast_1d(self._simulator.observe(False).task_low_dim_state))
        self.contract = contract(config, low_dim)

    faulted = ()
    """No row is ever out of service: the engine replaces the process."""

    def bind(self, arrays: StepArrays) -> None:
        """Report into these arrays from now on."""
        self._out = arrays

    def reset(
        self, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict | None = None
    ) -> None:
        """Begin a new episode, in the variation of `options["variation"]` if that is given."""
        if len(rows) == 0:
            return
        draws = self._seeds.start(np.asarray(rows), seeds)
        variation = (options or {}).get("variation", self.config.variation)
        self._began = int(draws.integers(2**32)[0]), variation
        self._simulator.reset(*self._began)
        self._elapsed = self._invalid_count = 0
        self._reward, self._is_over, self._is_invalid = 0.0, False, False
        self._observed = None
        self._infos = {
            "sentence": self._simulator.sentence, "variation": self._simulator.variation,
        }  # fmt: skip

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None = None) -> None:
        """Take one action."""
        if active is not None and not active[0]:
            return
        self._elapsed += 1
        self._observed = None
        try:
            self._reward, self._is_over = self._simulator.step(actions[0])
            self._is_invalid = False
        except InvalidAction as error:
            self._reward, self._is_over = 0.0 - self.config.invalid_penalty, False
            self._is_invalid = True
            self._invalid_count += 1
            self._infos["invalid_reason"] = str(error)

    def report(self, final: bool = True) -> None:
        """Write what the row looks like; pictures are drawn for the last step of a chunk only."""
        out = self._out
        assert out is not None
        out.reward[0] = self._reward
        out.terminated[0] = self._is_over
        is_late = self.limit is not None and self._elapsed >= self.limit
        out.truncated[0] = not self._is_over and is_late
        extras = out.extras.arrays
        # RLBench ends an episode by success or by failure; a sparse reward is for success.
        is_paid = self._reward > 0.0 or self.config.reward == "dense"
        extras["success"][0] = self._is_over and is_paid
        extras["invalid_action"][0] = self._is_invalid
        extras["invalid_actions"][0] = self._invalid_count
        if not final:
            return
        arrays = arrays_of(self._observation(), self.contract.observation, self.variation)
        for name, array in arrays.items():
            out.obs.arrays[name][0] = array

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the sentence of a new episode, and why an action was invalid."""
        infos, self._infos = self._infos, {}
        return {0: infos} if infos else {}

    def row(self, row: int) -> RLBenchGroup:
        """Return what get_attr and call speak to: the only row is this."""
        return self

    @property
    def sentence(self) -> str:
        """What the robot is asked to do in this episode."""
        return self._simulator.sentence

    @property
    def variation(self) -> int:
        """The variation of this episode."""
        return self._simulator.variation

    @property
    def renderer(self) -> str:
        """Which of CoppeliaSim's renderers draws."""
        return self.config.coppelia_renderer

    @property
    def np_random_seed(self) -> int:
        """The seed of the row's stream."""
        return int(self._seeds.seed[0])

    @property
    def camera_facts(self) -> dict[str, NDArray]:
        """Intrinsics, extrinsics, near and far of the cameras that are on, as RLBench has them."""
        misc = self._observation().misc
        return {key: np.asarray(value) for key, value in misc.items() if "_camera_" in key}

    def render(self) -> NDArray[np.uint8]:
        """Return what the first camera sees."""
        if not self.config.cameras:
            raise BadConfig("There is no camera to look through; make the envs with cameras=...")
        return np.array(getattr(self._observation(), f"{self.config.cameras[0]}_rgb"))

    def live_demos(self, amount: int = 1) -> list[dict[str, Any]]:
        """Have RLBench demonstrate the task; the row must be reset afterwards.

        Returns:
            For each: 'obs' (arrays by name, T + 1 rows), 'action' (T, 8), 'sentence', and 'seed',
            from which reset() begins the same episode; None for all but the first.
        """
        found = self._simulator.live_demos(amount, *self._began)
        layout = self.contract.observation
        self._observed = None
        return [
            {
                **demo_arrays(list(demo), layout, self.variation),
                "sentence": self.sentence,
                "seed": None if k else self.np_random_seed,
            }
            for k, demo in enumerate(found)
        ]

    def close(self) -> None:
        """Shut the simulator down."""
        self._simulator.close()

    def _observation(self) -> Any:
        if self._observed is None:
            self._observed = self._simulator.observe(with_pictures=True)
        return self._observed
