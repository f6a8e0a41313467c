"""RLBench's stand-in, put where workers find it."""

import shutil
from pathlib import Path

import pytest

import maniple

STANDIN = Path(__file__).parents[2] / "standin"

HAS_XVFB = shutil.which("Xvfb") is not None
# The stand-in draws without a display: where there is no Xvfb, the name of one is enough for it.
DISPLAY = {} if HAS_XVFB else {"DISPLAY": ":stand-in", "MANIPLE_PER_PROCESS_XVFB": "0"}


def make_root(folder, number=40100):
    """A folder that looks like CoppeliaSim's."""
    (folder / "programming/include").mkdir(parents=True)
    (folder / "libcoppeliaSim.so").touch()
    header = f"#pragma once\n#define SIM_PROGRAM_VERSION_NB {number}\n"
    (folder / "programming/include/simConst.h").write_text(header)
    return folder


@pytest.fixture(params=["v120", "peract"])
def version(request):
    return request.param


@pytest.fixture
def coppelia(tmp_path, monkeypatch):
    """The stand-in of RLBench 1.2.0, and a folder for its simulator."""
    return install("v120", tmp_path, monkeypatch)


def install(version, tmp_path, monkeypatch):
    for part in ("shared", version):
        monkeypatch.syspath_prepend(str(STANDIN / part))
    root = make_root(tmp_path / "CoppeliaSim")
    monkeypatch.setenv("COPPELIASIM_ROOT", str(root))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name, value in DISPLAY.items():
        monkeypatch.setenv(name, value)
    return root


@pytest.fixture
def make(coppelia, tmp_path):
    """Make RLBench environments that are closed when the test ends; `fault` goes to the workers."""
    made = []

    def build(task="OpenDrawer", num_envs=2, fault="", once=False, **options):
        environment = {"FAKE_RLBENCH": fault, "TMPDIR": str(tmp_path)}
        if once:
            token = tmp_path / "once"
            token.touch()
            environment["FAKE_RLBENCH_ONCE"] = str(token)
        options = {"backend": "rlbench", "environment": environment, **options}
        made.append(maniple.make_vec(task, num_envs, **options))
        return made[-1]

    yield build
    for envs in made:
        envs.close()
