"""Messages name what was found and what to do."""

import pickle

import gymnasium
import pytest

from maniple.core import errors
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


@pytest.mark.parametrize("name", [n for n, c in vars(errors).items() if isinstance(c, type)])
def test_every_error_is_made_from_its_line(name):
    """Gymnasium raises type(error)(text) again, and pickle makes errors of workers again."""
    kind = getattr(errors, name)
    if issubclass(kind, errors.ManipleError):
        assert str(kind("what happened")) == "what happened"
        again = pickle.loads(pickle.dumps(kind("what happened")))  # noqa: S301
        assert str(again) == "what happened"


def test_an_unknown_option_passes_through_gymnasium():
    import maniple  # noqa: F401

    with pytest.raises(TypeError, match="Did you mean cameras"):
        gymnasium.make("so101/Reach-v0", camras=("front",))
