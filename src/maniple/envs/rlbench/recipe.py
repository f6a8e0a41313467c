"""The picklable description of an RLBench environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maniple.core.errors import MissingExtra
from maniple.core.group import Contract, Recipe
from maniple.envs.coppelia import check_version, find_root, variables
from maniple.envs.rlbench.config import RLBenchConfig
from maniple.envs.rlbench.contract import contract

INSTALL = "bash scripts/install_rlbench.sh"
# Launching takes seconds, on a busy machine with many workers minutes.
START_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class RLBenchRecipe(Recipe):
    """A task of the real RLBench; CoppeliaSim and RLBench are looked for before anything starts."""

    config: RLBenchConfig
    root: Path

    preload = (__name__,)
    needs_own_process = True
    """One per process, and that process must be a fresh one."""

    def preferred_engine(self, num_envs: int, workers: int | None) -> str:
        """Only worker processes can run CoppeliaSim."""
        return "process"

    @classmethod
    def of(cls, task: str, options: dict[str, Any]) -> RLBenchRecipe:
        """Read the settings, and see that what they need is installed."""
        config = RLBenchConfig.of(task, options)
        root = find_root()
        check_version(root)
        for package in ("rlbench", "pyrep"):
            # Not imported: that would load CoppeliaSim's library into this process.
            if find_spec(package) is None:
                raise MissingExtra(f"{package} is not installed. Type: {INSTALL}", name=package)
        return cls(config, root)

    def contract(self) -> Contract:
        """Describe the environment without starting anything."""
        return contract(self.config)

    def group(self, num_envs: int, threads: int, rank: int = 0, first_row: int = 0) -> Any:
        """Launch CoppeliaSim in this process."""
        from maniple.envs.rlbench.group import RLBenchGroup

        return RLBenchGroup(self.config, num_envs, rank, first_row)

    def process_options(self) -> dict[str, Any]:
        """How the worker processes are to be started."""
        environment = variables(self.root, bool(self.config.cameras), os.environ)
        # Mesa would draw with a thread per core in every worker, and they would share the cores.
        environment.setdefault("LP_NUM_THREADS", os.environ.get("LP_NUM_THREADS", "1"))
        return {
            "is_fresh": True,
            "environment": environment,
            "start_timeout_s": START_TIMEOUT_S,
            "spares": 1,
        }
