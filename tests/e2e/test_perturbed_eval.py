"""maniple eval --perturb: every condition beside the clean one, on the same episodes."""

import json

import pytest
from without_torch import maniple_without_torch

LIFT, REACH = "so101/LiftCube-v0", "so101/Reach-v0"


def _tasks():
    from maniple.registry import TASKS

    return TASKS


def judged(printed):
    return json.loads(printed.out.strip().splitlines()[-1])["judged"]


def test_verdicts_page_and_sheet(inside, tmp_path):
    words = ["--policy", "expert", "--episodes", 12, "--perturb", "light,observation_noise=0.02"]
    files = ["--page", tmp_path / "p.html", "--sheet", tmp_path / "s.png"]
    printed = inside("eval", LIFT, REACH, *words, *files)
    assert "observation_noise 0.02" in printed.out and "REGRESSED" in printed.out
    page = (tmp_path / "p.html").read_text()
    assert page.count("data:image/png") == 2 and "<script" not in page
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    found = judged(inside("eval", LIFT, *words, "--json"))
    clean, light, noise = found[0]["results"]
    assert clean["success_rate"] == 1.0 and "verdict" not in clean
    assert light["verdict"] == "CANNOT TELL" and light["return_mean"] == clean["return_mean"]
    assert noise["verdict"] == "REGRESSED" and noise["lost"] > noise["gained"] == 0


def test_the_outcome_does_not_depend_on_the_number_of_environments(inside):
    words = ["--policy", "expert", "--episodes", 7, "--json"]
    axes = "pose+servo=0.4+action_delay+action_noise+observation_noise=0.004"
    one, other = (
        judged(inside("eval", LIFT, *words, "--perturb", axes, "--num-envs", count))
        for count in (2, 7)
    )
    assert one == other


FIELD = "light,camera,colour,texture,mass,friction,pose,delay,noise,distractors"
"""As issue 16 spells them."""


def test_the_words_of_the_field(inside):
    """What they do on every task is a law: tests/laws/test_perturbed.py."""
    words = ["--policy", "expert", "--episodes", 1, "--num-envs", 1, "--perturb", FIELD, "--json"]
    (found,) = judged(inside("eval", REACH, *words))
    names = [result["conditions"].partition(" ")[0] for result in found["results"]]
    assert names == ["clean", "light", "camera", "object_colour", "patchwork", "mass", "friction",
                     "pose", "action_delay", "observation_noise", "distractors"]  # fmt: skip


def test_a_short_word_is_the_long_one(make_vec):
    long = {"action_delay": 2, "observation_noise": 0.1, "patchwork": 0.3}
    short = {"delay": 2, "noise": 0.1, "texture": 0.3}
    seen = []
    for perturb in (long, short, {}):
        envs = make_vec(REACH, 2, perturb=perturb)
        envs.reset(seed=1)
        seen.append(envs.step(envs.action_space.sample())[0]["tip_pos"].tobytes())
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--perturb lihgt", "Did you mean light"),
        ("--perturb light=much", "give a number"),
        ("--perturb light=-1", "0 or larger"),
        ("--perturb action_delay=1.5", "whole number"),
        ("--policy nobody", "expert, random"),
        ("--perturb light --planner world", "--planner has no meaning"),
    ],
)
def test_nonsense_is_told_in_one_line(inside, words, says):
    policy = [] if "--policy" in words else ["--policy", "expert"]
    error = inside("eval", REACH, *words.split(), *policy, code=2).err
    assert says in error and error.count("\n") == 1


def test_what_is_no_run(inside, tmp_path):
    assert "No task is named" in inside("eval", tmp_path / "none", "--perturb", "light", code=2).err


def test_pictures_of_tasks(inside, tmp_path, monkeypatch):
    table = {task: where for task, where in _tasks().items() if task in (LIFT, REACH)}
    monkeypatch.setattr("maniple.registry.TASKS", table)
    inside("list", "--pictures", tmp_path / "p")
    names = sorted(path.name for path in (tmp_path / "p").iterdir())
    assert names == ["so101_LiftCube-v0.gif", "so101_Reach-v0.gif", "tasks.png"]
    assert (tmp_path / "p" / names[0]).read_bytes().startswith(b"GIF89a")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(inside, shell):
    script = inside("--print-completion", shell).out
    for word in ("replay", "perturb", LIFT):
        assert word in script


def test_ids_are_never_shortened(inside):
    printed = inside("list").out
    assert all(task in printed for task in _tasks())


def test_without_torch_the_extra_is_named():
    ended = maniple_without_torch("eval", REACH, "--policy", "random", "--episodes", 1)
    assert ended.returncode == 2
    assert "torch is not installed. Type: pip install" in ended.stderr
    assert "Traceback" not in ended.stderr
