"""Find the splat scene of a model: shipped with the package, made earlier, or made now."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mujoco
import numpy as np

from maniple.core.errors import BadConfig, ManipleError
from maniple.core.flock import lock_file
from maniple.sim.fast.support import geom_colours, visible_geoms
from maniple.sim.renderer import RenderSource
from maniple.splat.scene import Scene, read_scene, write_scene

SHIPPED = Path(__file__).parent / "scenes"
CACHE_VARIABLE = "MANIPLE_CACHE"
KEY_LENGTH = 12

Tell = Callable[[int], None]


def scene_for(source: RenderSource) -> Scene:
    """Return the scene that a source names, or that of its model, which may have to be made."""
    named = getattr(source, "scene", None)
    if named:
        return read_scene(named)
    found = find_scene(source.model)
    path = found if found is not None else make_and_keep(source)
    try:
        return read_scene(path)
    except ManipleError as error:
        raise BadConfig(f"{error} Delete {path} to have it made again.") from None


def find_scene(model: mujoco.MjModel) -> Path | None:
    """Return the scene file of a model, or None where none has been made yet."""
    for folder in (SHIPPED, cache_folder()):
        path = folder / scene_name(model)
        with _told(folder):
            if path.is_file():
                return path
    return None


def scene_name(model: mujoco.MjModel) -> str:
    """Return how the scene file of a model is called: after the model and what it looks like."""
    return f"{model_name(model)}-{looks(model)}.yaml"


def model_name(model: mujoco.MjModel) -> str:
    """Return the name that a model was given."""
    name = model.names[: model.names.index(b"\0")].decode("ascii", "replace")
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in name)[:60] or "scene"


def looks(model: mujoco.MjModel) -> str:
    """Return a key of what splats of a model show: things and light, from wherever it is seen."""
    digest = hashlib.sha256()
    shown = np.flatnonzero(visible_geoms(model))
    bodies = model.geom_bodyid[shown]
    for body in bodies.tolist():
        digest.update(model.body(body).name.encode() + b"\0")
    first = model.body_geomadr[bodies]
    for array in (
        model.geom_type[shown],
        shown - first,
        model.geom_size[shown],
        model.geom_pos[shown],
        model.geom_quat[shown],
        geom_colours(model)[shown],
        model.mesh_vert,
        model.light_diffuse,
        model.vis.headlight.diffuse,
    ):
        # The last digits may differ from one version of MuJoCo to the next.
        digest.update(np.round(np.asarray(array, np.float64), 5).tobytes())
    return digest.hexdigest()[:KEY_LENGTH]


def make_and_keep(source: RenderSource) -> Path:
    """Make the scene of a source's model, unless another process does so meanwhile."""
    # Hardly anybody needs it: not in the memory of every worker.
    from maniple.splat.making import STEPS, make_scene, seen_in

    folder = cache_folder()
    path = folder / scene_name(source.model)
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{path.name}.lock").open("w")
    with lock:
        lock_file(lock)
        if not path.is_file():
            with _progress(f"Splats of {model_name(source.model)}", STEPS) as tell:
                write_scene(make_scene(source.model, seen_in(source), tell=tell), path)
    return path


def cache_folder() -> Path:
    """Return where scenes are kept between runs."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen) / "splats"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "maniple" / "splats"


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Say which variable chooses another folder, where this one cannot be used."""
    try:
        yield
    except OSError as error:
        raise BadConfig(
            f"Splats cannot be kept in {folder}: {error.strerror}. "
            f"{CACHE_VARIABLE} chooses another folder."
        ) from None


@contextmanager
def _progress(title: str, total: int) -> Iterator[Tell | None]:
    """Show a bar where somebody looks, and one line where nobody does."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"{title} are made once, in about a minute ...", highlight=False)
        yield None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as progress:
        line = progress.add_task(f"{title} (made once)", total=total)
        yield lambda count: progress.advance(line, count)
