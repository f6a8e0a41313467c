"""Planning finds what a model promises, and an imagined environment keeps the contract."""

import json

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from maniple.core.errors import BadAction, BadConfig, ManipleError, ResetNeeded
from maniple.run.evaluation import evaluate
from maniple.world.cem import CEMConfig, moved_on, plan
from maniple.world.env import WorldModelEnv
from maniple.world.goal_planner import GoalPlanner
from maniple.world.source import LiveSource
from maniple.world.teacher_checkpoint import load_teacher


def test_cem_finds_the_lowest_cost():
    wanted = torch.tensor([0.6, -0.3])
    cost = lambda plans: (plans.sum(2) / plans.shape[2] - wanted).square().sum(-1)  # noqa: E731
    rng = torch.Generator().manual_seed(0)
    found = plan(cost, torch.zeros(3, 5, 2), CEMConfig(5, 128, 6, 12), rng)
    assert (found.mean(1) - wanted).abs().max() < 0.1
    assert found.abs().max() <= 1


def test_cem_never_forgets_the_best():
    """A plan that is already perfect stays among the elites: the cost cannot explode."""
    cost = lambda plans: plans.abs().sum((2, 3))  # noqa: E731
    found = plan(
        cost, torch.zeros(1, 4, 2), CEMConfig(4, 64, 4, 4), torch.Generator().manual_seed(0)
    )
    assert found.abs().mean() < 0.4


def test_a_plan_moves_on():
    mean = torch.arange(6.0).view(1, 3, 2)
    assert moved_on(mean)[0].tolist() == [[2, 3], [4, 5], [0, 0]]


def test_correlated_noise_reaches_further():
    """The mean of a plan's steps spreads with shared noise, and averages out without it."""
    spread = {}
    for shared, own in ((0.85, 0.53), (0.0, 1.0)):
        drawn = []
        cost = lambda plans: drawn.append(plans) or torch.zeros(plans.shape[:2])  # noqa: B023, E731
        config = CEMConfig(12, 64, 1, 8, 0.5, shared, own)
        plan(cost, torch.zeros(2, 12, 3), config, torch.Generator().manual_seed(0))
        spread[shared] = float(drawn[0].mean(2).std())
    assert spread[0.85] > 2 * spread[0.0]


@pytest.fixture(scope="module")
def latent(tmp_path_factory):
    """A latent teacher after two episodes."""
    from conftest import SMALL_PHASE as SMALL

    from maniple.cli.main import main

    folder = tmp_path_factory.mktemp("latent") / "run"
    words = ["train", "wm", "1", "2", "--num-episodes", "2", "--model", "latent", *SMALL]
    assert main([*words, "--output-dir", str(folder)]) == 0
    return folder


def imagined(folder, rows=3, **options):
    teacher = load_teacher(folder)
    source = LiveSource(teacher.config)
    source.close()
    held = LiveSource(teacher.config)
    starts = {n: held.held_out().arrays[f"obs.{n}"][:20] for n in teacher.shapes.names}
    held.close()
    return WorldModelEnv(teacher.model, source.layout, source.action, starts, rows, **options)


@pytest.mark.parametrize("kind", ["latent", "nano"])
def test_an_imagined_environment(kind, latent, teacher_dir):
    envs = imagined(latent if kind == "latent" else teacher_dir, max_episode_steps=4,
                    terminate_on_success=False)  # fmt: skip
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    with pytest.raises(ResetNeeded):
        envs.step(envs.action_space.sample())
    obs, _ = envs.reset(seed=5)
    assert envs.observation_space.contains(obs)
    first = {n: a.copy() for n, a in obs.items()}
    ends = []
    for _ in range(6):
        obs, reward, _, truncated, info = envs.step(np.ones((3, 4), np.float32))
        assert envs.observation_space.contains(obs)
        assert reward.shape == (3,) and info["success"].dtype == np.bool_
        ends.append(truncated.all())
    assert ends == [False, False, False, True, False, False], "the step after the end resets"
    again, _ = envs.reset(seed=5)
    assert all((again[n] == first[n]).all() for n in first), "a seed begins the same episode"


def test_an_evaluation_inside_the_model(teacher_dir):
    envs = imagined(teacher_dir, max_episode_steps=3)
    act = lambda obs: np.zeros((3, 4), np.float32)  # noqa: E731
    assert evaluate(envs, act, 5, 0).episodes == 5


def test_planning_needs_latents(teacher_dir):
    teacher = load_teacher(teacher_dir)
    with pytest.raises(BadConfig, match="--model latent"):
        GoalPlanner(teacher.model, None)


@pytest.mark.parametrize(
    "goal", ["reward", *(pytest.param(g, marks=pytest.mark.slow) for g in ("pink", "expert"))]
)
def test_eval_with_the_planner(inside, latent, goal):
    words = ["--checkpoint", latent, "--planner", "world", "--goal", goal, "--episodes", "2"]
    answer = json.loads(inside("eval", *words, "--json").out.strip().splitlines()[-1])
    if goal == "reward":
        assert 0 <= answer["success_rate"] <= 1
    else:
        assert answer["planner"]["goals"] == 2 and answer["random"]["ms_per_decision"] >= 0


def test_eval_towards_a_picture(inside, latent, tmp_path):
    from maniple.data.video import save_png

    save_png(tmp_path / "goal.png", np.zeros((32, 32, 3), np.uint8))
    words = ["--checkpoint", latent, "--planner", "world", "--episodes", "1"]
    assert "success_rate" in inside("eval", *words, "--goal", tmp_path / "goal.png", "--json").out
    save_png(tmp_path / "large.png", np.zeros((64, 32, 3), np.uint8))
    told = inside("eval", *words, "--goal", tmp_path / "large.png", code=2).err
    assert "the model sees 32 x 32" in told


def test_the_page_of_a_run(inside, teacher_dir, tmp_path):
    done = inside("world", "report", teacher_dir, "--out", tmp_path / "page.html", "--json")
    text = (tmp_path / "page.html").read_text()
    assert json.loads(done.out.strip().splitlines()[-1])["bytes"] == len(text.encode())
    for part in ("data:image/png;base64,", "data:video/mp4;base64,", "<svg", "copying (dB)"):
        assert part in text
    assert "<script" not in text and "http" not in text, "self-contained, and nothing runs"
    assert (
        "no run of a world-model phase" in inside("world", "report", _other(tmp_path), code=2).err
    )


def _other(tmp_path):
    (tmp_path / "config.yaml").write_text("algorithm: sac\n")
    return tmp_path


def test_what_the_planner_does_not_take(inside, latent, tmp_path):
    words = ["eval", latent, "--planner", "world", "--goal", "reward"]
    refused = {
        "must be 1 or larger": ["--episodes", "0"],
        "--num-envs has no meaning": ["--num-envs", "3"],
        "--out has no meaning": ["--out", tmp_path],
        "renderer": ["--renderer", "nonsense", "--episodes", "1"],
    }
    for told, more in refused.items():
        assert told in inside(*words, *more, code=2).err
    assert "add --planner world" in inside("eval", latent, code=2).err
    (tmp_path / "goal.png").write_text("no picture")
    told = inside(*words[:-1], tmp_path / "goal.png", "--episodes", "1", code=2).err
    assert "cannot be read as a picture" in told


def test_an_imagined_environment_refuses_what_others_refuse(teacher_dir):
    with pytest.raises(BadConfig, match="num_envs is 0"):
        imagined(teacher_dir, rows=0)
    envs = imagined(teacher_dir)
    envs.reset(seed=0)
    for bad in (np.zeros((2, 4)), np.full((3, 4), np.nan), np.zeros((3, 4), "U1")):
        with pytest.raises(BadAction):
            envs.step(bad)
    for mask in (np.array([0, 1, 2]), np.ones(2, np.bool_)):
        with pytest.raises(BadConfig, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    with torch.no_grad():
        for weights in envs.model.parameters():
            weights.fill_(float("nan"))
    with pytest.raises(ManipleError, match="not finite"):
        envs.step(np.zeros((3, 4), np.float32))
