"""What is committed works in anybody's clone: no links, no paths into somebody's folders."""

import re
import subprocess
from pathlib import Path

import pytest

from maniple.sim.xvfb import SOCKETS

ROOT = Path(__file__).parents[2]
LINK = "120000"
FOLDERS = ("tmp", "var/tmp", "home", "root", "Users", "work", "scratch", "mnt")
# An absolute path, not the end of a longer one, of an address or of a path in the home folder.
PRIVATE = re.compile(rf"(?<![\w.:/~}}*)-])/(?:{'|'.join(FOLDERS)})/[\w.~-]+")


def tracked():
    """Return (mode, path) of every committed file."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    words = ["git", "-C", str(ROOT), "ls-files", "-s", "-z"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for line in listed.split("\0")[:-1]:
        about, _, name = line.partition("\t")
        yield about.split()[0], ROOT / name


def private_paths(text):
    """Return the absolute paths in a text that only exist on somebody's machine."""
    found = (match.group() for match in PRIVATE.finditer(text))
    return [path for path in found if not path.startswith(str(SOCKETS))]


def test_no_links():
    assert [str(path) for mode, path in tracked() if mode == LINK] == []


def test_no_paths_into_somebodys_folders():
    found = {}
    for mode, path in tracked():
        if mode == LINK or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data and (private := private_paths(data.decode(errors="replace"))):
            found[str(path.relative_to(ROOT))] = private
    assert found == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_such_paths_are_seen(folder):
    path = f"/{folder}/somebody"
    assert private_paths(f"OUT = '{path}/runs'") == [path]
    assert private_paths(f"see {path}") == [path]
    assert private_paths(f"https://example.org{path} ~{path} a{path} {SOCKETS}/X1") == []
