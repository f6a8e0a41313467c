"""What a person sees of a phase, on the screen and in train.log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maniple.core.rank import Rank
from maniple.run.folder import RunFolder
from maniple.world.config import EnvironmentConfig, WorldConfig, config_of
from maniple.world.phase import NAMES

LOG = "train.log"
SHOWN = ("loss", "quality/gain_db_h1", "quality/gain_db_h10", "quality/sensitivity_db_h10",
         "reward/total", "coverage/gripper", "coverage/base", "probe/db",
         "clock/updates_per_s")  # fmt: skip


class Console:
    """Rank 0 tells INFO and keeps a file; the others tell warnings, with their rank."""

    def __init__(self, phase: str, config: WorldConfig, folder: Path, is_quiet: bool) -> None:
        self._phase, self._config, self._folder = phase, config, folder
        self._rank = Rank.here()
        self._stream = sys.stderr if is_quiet else sys.stdout
        self._log = logging.getLogger("maniple.world")
        self._handlers: list[logging.Handler] = []
        self.last: dict[str, float] = {}

    def __enter__(self) -> Console:
        is_main = self._rank.is_main
        self._log.setLevel(logging.DEBUG)
        self._log.propagate = False
        # What other ranks print goes nowhere: they warn on the error stream.
        console = logging.StreamHandler(self._stream if is_main else sys.stderr)
        console.setLevel(self._config.logging.console_level if is_main else logging.WARNING)
        prefix = "" if is_main else f"rank {self._rank.rank}: "
        console.setFormatter(logging.Formatter(f"{prefix}%(message)s"))
        self._add(console)
        return self

    def __exit__(self, *_: object) -> None:
        for handler in self._handlers:
            self._log.removeHandler(handler)
            handler.close()

    def listen(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell one report; at the first one the folder is there, and the file is opened."""
        if len(self._handlers) == 1 and self._rank.is_main:
            self._open_file()
            # As the run resolved it: later phases play the teacher's task unless told otherwise.
            env = self.environment()
            self._log.info(
                "%s on %s: %d environments on each of %d ranks; everything is kept in %s",
                self._phase, env.task, env.num_envs, self._rank.world_size, self._folder,
            )  # fmt: skip
        self.last = dict(metrics)
        words = [f"{name.rpartition('/')[2]} {metrics[name]:.4g}" for name in SHOWN
                 if name in metrics]  # fmt: skip
        if words and self._rank.is_main:
            self._log.info("episode %d: %s", step, ", ".join(words))
        self._log.debug("episode %d: %s", step, dict(metrics))

    def environment(self) -> EnvironmentConfig:
        """Return the environments of the run as its folder describes them."""
        described = RunFolder(self._folder, NAMES).config()
        return config_of({"environment": described["environment"]}).environment

    def sum_up(self, answer: Mapping[str, Any]) -> None:
        """Tell the end."""
        if not self._rank.is_main:
            return
        folder = answer["run_dir"]
        if answer["is_stopped"]:
            words = f"maniple train {self._phase} --resume --output-dir {folder}"
            print(f"stopped; go on with: {words}", file=sys.stderr)
        print(f"look at  {folder}/samples; all of it: maniple world report {folder}",
              file=self._stream)  # fmt: skip

    def _open_file(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = logging.FileHandler(self._folder / LOG)
        file.setLevel(self._config.logging.file_level)
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._add(file)

    def _add(self, handler: logging.Handler) -> None:
        self._handlers.append(handler)
        self._log.addHandler(handler)
