"""Put a captured cloud into a simulated scene: metric scale, pose and colours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.checked_file import read_yaml_table
from maniple.core.errors import BadConfig, ManipleError, one_line
from maniple.sim.renderer import RenderSource, camera_index
from maniple.splat.cloud import quats_of, turns
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import Raster
from maniple.splat.scene import MAX_YAML_BYTES, Scene
from maniple.splat.views import Views

FLIP = np.diag([1.0, -1.0, -1.0])
"""From cameras that look along z with y down, as captures have them, to MuJoCo's."""
FLAT = 0.02
"""Points that are flatter than this, for their extent, do not tell left from right."""


class Similarity(NamedTuple):
    """From a capture's frame to the world's: scaled, turned, then shifted."""

    scale: float
    turn: NDArray[np.float64]
    shift: NDArray[np.float64]
    error_m: float
    """Root mean square of what is left."""


class References(NamedTuple):
    """What is known of a capture: points, and poses of cameras, in both frames."""

    capture: NDArray[np.float64]
    world: NDArray[np.float64]
    capture_turns: NDArray[np.float64] | None = None
    world_turns: NDArray[np.float64] | None = None


def align(references: References) -> Similarity:
    """Find the similarity that takes a capture to the world, by least squares."""
    a, b = references.capture, references.world
    need = 3 if references.capture_turns is None else 2
    if len(a) < need:
        what = "points" if need == 3 else "cameras"
        raise BadConfig(f"{need} reference {what} are needed at least; there are {len(a)}.")
    ca, cb = a.mean(0), b.mean(0)
    spread = np.linalg.svd(a - ca, compute_uv=False)
    # Points on a line leave a turn about it open, unless cameras say how they are turned.
    if spread[0] < 1e-9 or (need == 3 and spread[1] < 1e-3 * spread[0]):
        raise BadConfig("The reference points lie on one line, or are all the same.")
    if references.capture_turns is None or references.world_turns is None:
        product = (b - cb).T @ (a - ca)
        if _is_solid(a - ca) and _is_solid(b - cb) and np.linalg.det(product) < 0:
            raise BadConfig("The points are mirrored: is one axis wrong?")
        turn = _rotation(product)
    else:
        pairs = zip(references.world_turns, references.capture_turns, strict=True)
        turn = _rotation(sum(w @ c.T for w, c in pairs))
    turned = (a - ca) @ turn.T
    scale = float((turned * (b - cb)).sum() / (turned * turned).sum())
    if not scale > 0:
        raise BadConfig("The reference points do not fit: the scale would not be positive.")
    shift = cb - scale * turn @ ca
    left = scale * a @ turn.T + shift - b
    return Similarity(scale, turn, shift, float(np.sqrt((left**2).sum(1).mean())))


def _is_solid(points: NDArray[np.float64]) -> bool:
    """Whether points around their centre lie clearly beside a plane, which needs four of them."""
    if len(points) < 4:
        return False
    spread = np.linalg.svd(points, compute_uv=False)
    return bool(spread[2] > FLAT * spread[0])


def _rotation(m: Any) -> NDArray[np.float64]:
    """Return the rotation nearest to a matrix."""
    u, _, v = np.linalg.svd(np.asarray(m))
    return u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v


def placed(scene: Scene, found: Similarity) -> Scene:
    """Return a scene whose clouds stand where a similarity puts them."""
    w, x, y, z = quats_of(found.turn[None])[0].tolist()
    a, b, c = found.shift.tolist()
    parts = (
        replace(part, pos=(a, b, c), quat_wxyz=(w, x, y, z), scale=found.scale)
        for part in scene.parts
    )
    return replace(scene, parts=tuple(parts))


def match_colours(scene: Scene, source: RenderSource, views: Views) -> Scene:
    """Return a scene with the gains of red, green and blue that fit views best."""
    raster = Raster(CompiledScene(scene, source.model), source, layer_bytes=0)
    size = views.rgb.shape[1:3]
    above, below = np.zeros(3), np.zeros(3)
    for k in range(len(views)):
        camera = int(views.cameras[k])
        out = {(camera, "colour"): np.empty((1, *size, 4), np.float32)}
        raster.render([int(views.rows[k])], [camera], ("colour",), out)
        drawn = out[camera, "colour"][0].astype(np.float64)
        # Only where both show something, and nothing is burnt out.
        seen = (drawn[..., 3] > 0.9) & (views.segmentation[k] >= 0)
        seen &= (drawn[..., :3] < 0.98).all(-1) & (views.rgb[k] < 0.98).all(-1)
        above += (drawn[seen][:, :3] * views.rgb[k][seen]).sum(0)
        below += (drawn[seen][:, :3] ** 2).sum(0)
    raster.close()
    if np.any(below < 1e-6):
        raise BadConfig("The cameras do not see the capture: is it aligned?")
    r, g, b = np.clip(above / below, 0.05, 20.0).tolist()
    parts = (
        replace(part, gain=(r * part.gain[0], g * part.gain[1], b * part.gain[2]))
        for part in scene.parts
    )
    return replace(scene, parts=tuple(parts))


def read_references(path: Path, model: mujoco.MjModel) -> References:
    """Read reference points or cameras from a YAML file.

    points: [{capture: [x, y, z], world: [x, y, z]}, ...] or
    cameras: [{camera: name, capture_pos: [x, y, z], capture_quat_wxyz: [w, x, y, z]}, ...], whose
    quaternions turn a camera that looks along z with y down into the capture's frame.
    """
    if not path.is_file():
        raise BadConfig(f"There is no file of reference points {path}.")
    text = read_yaml_table(path, MAX_YAML_BYTES)
    try:
        if isinstance(text.get("points"), list):
            points = _with_keys(text["points"], ("capture", "world"), f"{path}, point")
            capture, world = (
                np.array([p[side] for p in points], np.float64) for side in ("capture", "world")
            )
            return _checked(References(capture, world), path)
        if isinstance(text.get("cameras"), list):
            keys = ("camera", "capture_pos", "capture_quat_wxyz")
            cameras = _with_keys(text["cameras"], keys, f"{path}, camera")
            return _checked(_cameras(cameras, model, path), path)
    except ManipleError:
        raise
    except (TypeError, ValueError) as error:
        raise BadConfig(f"{path} cannot be read as reference points: {one_line(error)}.") from None
    raise BadConfig(f"{path} has neither a list 'points' nor a list 'cameras'.")


def _with_keys(entries: list[Any], keys: tuple[str, ...], origin: str) -> list[dict[str, Any]]:
    """Return entries that have all these keys."""
    for k, entry in enumerate(entries):
        missing = [key for key in keys if not isinstance(entry, dict) or key not in entry]
        if missing:
            raise BadConfig(f"{origin} {k}: it has no {' and no '.join(map(repr, missing))}.")
    return entries


def _cameras(entries: list[dict[str, Any]], model: mujoco.MjModel, path: Path) -> References:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    numbers = [camera_index(model, entry["camera"]) for entry in entries]
    quats = np.array([entry["capture_quat_wxyz"] for entry in entries], np.float64)
    if quats.ndim != 2 or quats.shape[1] != 4 or not np.isfinite(quats).all():
        raise BadConfig(f"{path}: a capture_quat_wxyz is four finite numbers.")
    lengths = np.linalg.norm(quats, axis=1, keepdims=True)
    if lengths.min() < 1e-9:
        raise BadConfig(f"{path}: a capture_quat_wxyz has length zero.")
    quats /= lengths
    return References(
        np.array([entry["capture_pos"] for entry in entries], np.float64),
        data.cam_xpos[numbers].copy(),
        turns(quats),
        np.array([data.cam_xmat[k].reshape(3, 3) @ FLIP for k in numbers]),
    )


def _checked(found: References, path: Path) -> References:
    for array in (found.capture, found.world):
        if array.ndim != 2 or array.shape[1] != 3 or not np.isfinite(array).all():
            raise BadConfig(f"{path}: a point is three finite numbers.")
    return found
