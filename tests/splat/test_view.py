"""The page with splats: served on this machine only, and what a browser shows of it."""

import time
from urllib.request import urlopen

import numpy as np
import pytest
from browser import CHROMIUM, Browser

from maniple.cli.splat.subject import load_subject
from maniple.splat.poses import PoseSource
from maniple.splat.store import scene_for

viser = pytest.importorskip("viser")


@pytest.fixture
def page():
    from maniple.cli.splat.view import Page

    model, seen = load_subject("piper/Reach-v0")
    source = PoseSource(model, seen)
    made = Page(scene_for(source), source, 0)
    yield made
    made.close()


@pytest.mark.alone
def test_the_page_is_served_here_only(page):
    import psutil

    mine = [c for c in psutil.Process().net_connections() if c.status == "LISTEN"]
    assert {c.laddr.ip for c in mine if c.laddr.port == page.port} == {"127.0.0.1"}
    assert urlopen(f"http://127.0.0.1:{page.port}").status == 200
    assert page.gaussians > 10_000
    page.show(3)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing: apt-get install chromium")
def test_a_browser_shows_the_scene(page, tmp_path):
    """A screenshot has the desk's colour in it; it is left in the test's folder to look at."""
    with Browser(f"http://127.0.0.1:{page.port}", tmp_path, (800, 600)) as browser:
        for _ in range(20):
            time.sleep(3)
            page.show(0)
            if _wood(browser.screenshot(tmp_path / "page.png")) > 0.05:
                return
    raise AssertionError(f"no desk is seen: look at {tmp_path / 'page.png'}")


def _wood(path):
    """Part of the pixels that are of the colour of the desk."""
    import av

    with av.open(str(path)) as file:
        rgb = next(file.decode(video=0)).to_ndarray(format="rgb24").astype(int)
    red, green, blue = np.moveaxis(rgb, -1, 0)
    return np.mean((red > green + 15) & (green > blue + 15) & (red > 120))
