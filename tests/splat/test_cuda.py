"""gsplat is called as it wants to be called; its pixels are compared where there is a card."""

import json
from pathlib import Path

import numpy as np
import pytest
from splat_scenes import compiled, part, random_cloud

from maniple.splat.cuda import CudaRaster, rasterization_arguments
from maniple.splat.raster import Raster
from maniple.splat.renderer import best_raster
from maniple.splat.structs import ROW_FIELDS

CONTRACT = json.loads((Path(__file__).parent / "contracts/gsplat-1.5.3.json").read_text())


def arguments():
    """What gsplat would be called with."""
    scene, source = compiled(
        part(random_cloud(50, 0, 3), is_lit=False), part(random_cloud(20), "link")
    )
    fields = {name: source.field(name) for name in ROW_FIELDS}
    row = {name: array[0] if has else array for name, (array, has) in fields.items()}
    camera = Raster(scene, source, 0).camera(row, 0, (48, 64))
    return scene, row, camera, rasterization_arguments(scene, row, camera)


def test_the_call_fits_the_real_signature():
    _, _, _, call = arguments()
    assert set(call) <= set(CONTRACT["arguments"])
    assert set(CONTRACT["required"]) <= set(call)
    assert call["render_mode"] in CONTRACT["render_mode"]
    assert call["rasterize_mode"] in CONTRACT["rasterize_mode"]
    count = len(call["means"])
    shapes = {"means": (count, 3), "covars": (count, 3, 3), "opacities": (count,),
              "colors": (count, 3), "viewmats": (1, 4, 4), "Ks": (1, 3, 3)}  # fmt: skip
    assert {name: call[name].shape for name in shapes} == shapes
    assert (call["width"], call["height"]) == (64, 48)


def test_the_installed_gsplat_has_the_signature_that_we_know():
    gsplat = pytest.importorskip("gsplat")
    import inspect

    assert set(CONTRACT["arguments"]) <= set(inspect.signature(gsplat.rasterization).parameters)


def test_projection_and_covariance_are_those_of_the_reference():
    """The matrices that gsplat gets put every Gaussian where the reference puts it."""
    from maniple.splat.reference import _project

    scene, row, camera, call = arguments()
    p = call["means"] @ call["viewmats"][0, :3, :3].T + call["viewmats"][0, :3, 3]
    x = call["Ks"][0] @ (p / p[:, 2:]).T
    splats = [_project(scene, group, row, camera, None) for group in scene.bound]
    centre = np.concatenate([s.centre for s in splats])
    seen = p[:, 2] > scene.near
    near = np.abs(x[:2].T[seen][:, None] - centre).sum(-1).min(1)
    assert near.max() < 1e-6


def test_without_a_card_the_processor_draws():
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a card")
    assert best_raster() == "cpu"


def test_pixels_on_a_card():
    torch = pytest.importorskip("torch")
    pytest.importorskip("gsplat")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA here")
    scene, source = compiled(part(random_cloud(2000, 0, 3)))
    pictures = []
    for raster in (Raster(scene, source), CudaRaster(scene, source)):
        out = {(0, "colour"): np.empty((1, 128, 128, 4), np.float32)}
        raster.render([0], [0], ("colour",), out)
        pictures.append(out[0, "colour"])
    assert np.sqrt(np.mean((pictures[0] - pictures[1]) ** 2)) < 0.01
