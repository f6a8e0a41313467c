"""Judge a world model at every save, on episodes that training never sees."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from maniple.data.sequence_buffer import SequenceBuffer
from maniple.run.ranks import Ranks
from maniple.run.when import Every
from maniple.world.panels import views_of, write_panel, write_video
from maniple.world.prediction import WorldModel
from maniple.world.quality import Quality, code_errors, measure

log = logging.getLogger("maniple.world")


class Gallery:
    """Fills samples/ and videos/ of a run, and keeps the last measurement for the metrics."""

    def __init__(self, folder: Path, held_out: SequenceBuffer, every: int, ranks: Ranks) -> None:
        self._folder, self._held_out, self._ranks = folder, held_out, ranks
        self._due = Every(every)
        self._shown = -1
        self._metrics: dict[str, float] = {}
        self.quality: Quality | None = None

    def look(self, model: WorldModel, episode: int, is_last: bool = False) -> None:
        """Measure and show, if it is due; rank 0 does it for all."""
        is_due = self._due(episode) or is_last
        if not is_due or self._shown == episode or not self._ranks.is_main:
            return
        self._shown = episode
        if not model.can_draw:
            self._metrics = code_errors(model, self._held_out)
            log.info("episode %d: this model does not draw; there are no samples", episode)
            return
        self.quality = measure(model, self._held_out)
        self._metrics = self.quality.metrics()
        views = views_of(model, self._held_out, episode)
        name = f"episode_{episode:06d}"
        write_panel(self._folder / "samples" / f"{name}.png", views)
        write_video(self._folder / "videos" / f"{name}.mp4", views)
        self._tell(episode, views.failed)

    def _tell(self, episode: int, failed: int) -> None:
        assert self.quality is not None
        if failed or self.quality.failed:
            log.error("episode %d: predictions failed; their panels are red", episode)
        if self.quality.ignores_actions:
            log.warning("episode %d: the model ignores actions", episode)
        for row in self.quality.horizons:
            log.info(
                "episode %d, %2d ahead: moving pixels %.1f dB, copying %.1f, gain %+.1f; actions "
                "are worth %.1f dB", episode, row.h, row.moving, row.moving_copy, row.gain_db,
                row.sensitivity_db,
            )  # fmt: skip

    def metrics(self) -> dict[str, float]:
        """The last measurement."""
        return self._metrics

    def state(self) -> dict[str, Any]:
        """Return when it was last due, and what was found."""
        return {"last": self._due.last, "shown": self._shown, "metrics": dict(self._metrics)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._due.last, self._shown = state["last"], state["shown"]
        self._metrics = dict(state["metrics"])
