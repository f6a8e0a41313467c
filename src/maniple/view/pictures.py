"""Pictures of one row through its cameras, drawn beside the simulation."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import threading
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import ManipleError
from maniple.sim.render_source import DataSource
from maniple.sim.renderer import AUTO, make_renderer, render_still, resolve_renderer

CHOICES = ("fast", "mujoco", "splat", "hybrid")


class Pictures:
    """Draws the newest state that it was given, on a thread of its own.

    A renderer belongs to the thread that made it, so that everything about one happens there.
    """

    def __init__(self, model: mujoco.MjModel, size: tuple[int, int], renderer: str = AUTO) -> None:
        self.size = size
        self.renderer = resolve_renderer(renderer, model)
        self.trouble = ""
        """Why nothing is drawn, if so."""
        self._model, self._state = model, np.empty(0)
        self._version = 0
        self._wanted: tuple[str, mujoco.MjModel, NDArray] | None = None
        self._drawn: dict[str, NDArray[np.uint8]] = {}
        self._news = threading.Condition()
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="maniple-pictures", daemon=True)
        self._thread.start()

    def draw(self, model: mujoco.MjModel, state: NDArray) -> None:
        """Have a state drawn soon; one that is still waiting is forgotten."""
        with self._news:
            self._wanted = (self.renderer, model, np.array(state))
            self._news.notify()

    def take(self) -> dict[str, NDArray[np.uint8]]:
        """Return the pictures that were finished since the last call, by camera."""
        with self._news:
            drawn, self._drawn = self._drawn, {}
        return drawn

    def close(self) -> None:
        """End the thread."""
        with self._news:
            self._is_open = False
            self._news.notify()
        self._thread.join(30)

    def _run(self) -> None:
        maker = _Maker(self.size)
        while True:
            with self._news:
                while self._is_open and self._wanted is None:
                    self._news.wait()
                if not self._is_open:
                    break
                assert self._wanted is not None
                wanted, self._wanted = self._wanted, None
            try:
                drawn, trouble = maker.make(*wanted), ""
            except ManipleError as error:
                drawn, trouble = {}, str(error)
            except Exception as error:
                drawn, trouble = {}, f"{type(error).__name__}: {error}"
            with self._news:
                self._drawn, self.trouble = drawn, trouble
        maker.close()


class _Maker:
    """The renderer that is in use, and the state that it draws."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._key: tuple[str, int] | None = None
        self._renderer: Any = None
        self._source: DataSource | None = None
        self._data: Any = None

    def make(self, name: str, model: mujoco.MjModel, state: NDArray) -> dict[str, NDArray]:
        """Return a picture of the state through every camera."""
        if self._key != (name, id(model)):
            self.close()
            self._data = mujoco.MjData(model)
            self._load(model, state)
            self._source = DataSource(model, self._data)
            self._renderer = make_renderer(name, self._source, self._size, "fine")
            self._key = (name, id(model))
        else:
            self._load(model, state)
        height, width = self._size
        return {
            model.camera(k).name or f"camera {k}": render_still(self._renderer, 0, k, width, height)
            for k in range(model.ncam)
        }

    def _load(self, model: mujoco.MjModel, state: NDArray) -> None:
        mujoco.mj_setState(model, self._data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_forward(model, self._data)

    def close(self) -> None:
        """Free the drawing memory."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer, self._key = None, None


def choices(model: mujoco.MjModel) -> list[str]:
    """Return the renderers that can draw a model here, at once."""
    from maniple.sim.fast.support import why_not
    from maniple.sim.gl_backend import RAYS, backend
    from maniple.splat.store import find_scene

    has_splats = find_scene(model) is not None
    can = {
        "fast": why_not(model) is None, "mujoco": backend() != RAYS,
        "splat": has_splats, "hybrid": has_splats,
    }  # fmt: skip
    return [name for name in CHOICES if can[name]] or ["rays"]
