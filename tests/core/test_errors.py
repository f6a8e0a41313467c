"""Messages name what was found and what to do."""

import pytest

from maniple.core.errors import MissingExtra, closest, unknown
from maniple.core.optional import require


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("lerobot", "LeRobot-v0"),
        ("so101/reach", "so101/Reach-v0"),
        ("so101/LiftCub-v0", "so101/LiftCube-v0"),
    ],
)
def test_did_you_mean(given, meant):
    assert meant in closest(given, ["LeRobot-v0", "so101/Reach-v0", "so101/LiftCube-v0"])


def test_nothing_close():
    assert closest("zzzz", ["LeRobot-v0"]) == ""


def test_message_is_plain_text():
    assert str(unknown("task", "x", [], "'maniple list'")).startswith("No task is named 'x'.")


def test_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gsplat", None)
    with pytest.raises(MissingExtra, match=r"\.\[cuda\]"):
        require("gsplat")
