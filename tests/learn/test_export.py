"""A trained policy leaves for LeRobot, and acts there as it does here."""

import json
import sys

import lerobot_standin
import numpy as np
import pytest
import torch

import maniple
from maniple.agents.inference import InferenceNet, NetSpec
from maniple.cli.main import main
from maniple.data.frame_stack import FrameStack
from maniple.data.lerobot.read import Dataset
from maniple.lerobot_env import env_of
from maniple.run.checkpoint import read_arrays

pytest.importorskip("torch")
TASK = "so101/Reach-v0"
BC = ["train", "bc", "--demos", "2", "--max-updates", "20", "--eval-n-trajs", "0", "--task", TASK]
RL = [
    "--task", TASK, "--num-envs", "2", "--max-steps", "40", "--random-steps", "20", "--batch-size",
    "8", "--training-starts", "20", "--eval-n-trajs", "0", "--demos", "0",
]  # fmt: skip
CAMERAS = ["--env.cameras", "front", "wrist", "--env.image-size", "24", "32"]
KINDS = {
    "bc": [*BC, "--agent.relative"],
    "bc-pictures": [*BC, *CAMERAS, "--agent.frame-stack", "2"],
    "sac": ["train", "sac", *RL],
    "drq": ["train", "drq", *RL, *CAMERAS, "--agent.eye.encoder", "resnet"],
}


@pytest.fixture(params=KINDS, scope="module")
def exported(request, tmp_path_factory):
    """A policy, and the folder that it was written to."""
    folder = tmp_path_factory.mktemp(request.param)
    run, out = str(folder / "run"), folder / "out"
    assert main([*KINDS[request.param], "--run-dir", run]) == 0
    assert main(["export", run, "--out", str(out)]) == 0
    return maniple.load_policy(run), out


def played(policy, steps=6, rows=3):
    """What is seen in a few random steps, as the environments give it."""
    envs = policy.envs(rows)
    obs, _ = envs.reset(seed=5)
    seen = [{name: array.copy() for name, array in envs.named(obs).items()}]
    envs.action_space.seed(1)
    for _ in range(steps):
        obs, *_ = envs.step(envs.action_space.sample())
        seen.append({name: array.copy() for name, array in envs.named(obs).items()})
    envs.close()
    return seen


def as_lerobot(obs):
    """Join and rename arrays as the dataset writer and LeRobot do."""
    numbers = [a.reshape(len(a), -1) for a in obs.values() if a.dtype == np.float32]
    batch = {"observation.state": torch.from_numpy(np.concatenate(numbers, 1))}
    for name, array in obs.items():
        if name.endswith("_rgb"):
            picture = torch.from_numpy(array).permute(0, 3, 1, 2).float() / 255
            batch[f"observation.images.{name.removesuffix('_rgb')}"] = picture
    return batch


def loaded(folder, monkeypatch, **others):
    """Load the folder as LeRobot does."""
    lerobot_standin.lend(monkeypatch)
    from maniple.lerobot_policy import ManipleConfig, ManiplePolicy

    facts = json.loads((folder / "config.json").read_text())
    config = ManipleConfig()
    for name in ("keys", "state_names", "frame_stack"):
        setattr(config, name, facts[name])
    config.net = NetSpec(**facts["net"])
    made = ManiplePolicy(config, **others)
    return ManiplePolicy._load_as_safetensor(made, folder / "model.safetensors", "cpu", False)


def test_lerobots_policy_acts_as_ours(exported, monkeypatch):
    policy, folder = exported
    theirs = loaded(folder, monkeypatch)
    seen = played(policy)
    frames = FrameStack(policy.layout, policy.stack)
    for round in range(2):  # A second episode begins without the pictures of the first.
        theirs.reset()
        for k, obs in enumerate(seen[round:]):
            ended = np.zeros(3, np.bool_)
            ours = policy.act(frames.begin(obs) if k == 0 else frames.push(obs, ended))
            assert theirs.select_action(as_lerobot(obs)).numpy().tobytes() == ours.tobytes()


def test_the_network_alone_is_enough(exported):
    """Weights and config.json build it again, without any environment."""
    policy, folder = exported
    net = InferenceNet(NetSpec(**json.loads((folder / "config.json").read_text())["net"]))
    arrays = read_arrays(folder / "model.safetensors")
    net.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    obs = FrameStack(policy.layout, policy.stack).begin(played(policy, 0)[0])
    found = net.act({name: torch.from_numpy(obs[name]) for name in policy.needs})
    assert found.tobytes() == policy.act(obs).tobytes()


def test_its_environments_show_what_it_sees(exported):
    _, folder = exported
    config = json.loads((folder / "config.json").read_text())
    envs = env_of(folder, 2)[TASK][0]
    obs, _ = envs.reset(seed=0)
    assert obs["agent_pos"].shape == (2, len(config["state_names"]))
    pictures = {f"observation.images.{camera}" for camera in obs.get("pixels", {})}
    assert pictures == set(config["input_features"]) - {"observation.state"}
    assert hasattr(envs.envs[1], "task_description") and not hasattr(envs.envs[0], "nothing")
    envs.close()


@pytest.fixture
def simple(tmp_path, inside):
    """A policy on numbers alone."""
    inside(*KINDS["bc"], "--run-dir", tmp_path / "run")
    told = inside("export", tmp_path / "run", "--out", tmp_path / "out", "--json")
    # What makes the folder whole is written last.
    assert json.loads(told.out.splitlines()[-1])["files"][-1] == "config.json"
    return tmp_path


def test_numbers_are_found_by_name_in_a_dataset(simple, inside, monkeypatch):
    """A dataset may hold more, or in another order, than the environments in training."""
    inside("record", simple / "run", "--episodes", "1", "--format", "lerobot", "--out",
           simple / "played", "--cameras", "front", "--image-size", "16", "16")  # fmt: skip
    described = Dataset(simple / "played").info["features"]["observation.state"]
    config = json.loads((simple / "out" / "config.json").read_text())
    assert described["names"] == config["state_names"]

    turned = {"names": ["more.0", *reversed(described["names"])]}
    meta = type("Meta", (), {"features": {"observation.state": turned}})()
    policy = maniple.load_policy(simple / "run")
    obs = played(policy, 0)[0]
    batch = as_lerobot(obs)["observation.state"].flip(1)
    batch = torch.cat([torch.zeros(3, 1), batch], 1)
    theirs = loaded(simple / "out", monkeypatch, dataset_meta=meta)
    found = theirs.select_action({"observation.state": batch})
    assert found.numpy().tobytes() == policy.act(obs).tobytes()


def test_what_does_not_fit_is_refused(simple, inside, monkeypatch):
    assert "not empty" in inside("export", simple / "run", "--out", simple / "out", code=2).err
    assert "maniple" in inside("export", simple / "no", "--out", simple / "x", code=2).err
    theirs = loaded(simple / "out", monkeypatch)
    with pytest.raises(maniple.core.errors.BadConfig, match=r"has 5 numbers.*expects 18"):
        theirs.select_action({"observation.state": torch.zeros(1, 5)})
    with pytest.raises(maniple.core.errors.BadConfig, match=r"looks at 'observation\.state'"):
        theirs.select_action({"observation.images.front": torch.zeros(1, 3, 8, 8)})
    meta = type("Meta", (), {"features": {"observation.state": {"names": ["a", "b"]}}})()
    with pytest.raises(maniple.core.errors.BadConfig, match=r"joint_pos\.0.*a, b"):
        loaded(simple / "out", monkeypatch, dataset_meta=meta)
    origin = json.loads((simple / "out" / "maniple.json").read_text())
    (simple / "out" / "maniple.json").write_text(json.dumps(origin | {"task": "evil:x/Y-v0"}))
    with pytest.raises(maniple.core.errors.BadConfig, match="evil"):
        env_of(simple / "out")
    assert "evil" not in sys.modules
    env_of(simple / "out", task=TASK)[TASK][0].close()
    (simple / "out" / "maniple.json").write_text('{"task": "so101/Reach-v0"}')
    with pytest.raises(maniple.core.errors.BadConfig, match="no folder of 'maniple export'"):
        env_of(simple / "out")


def test_nothing_else_imports_lerobot():
    """The module is for LeRobot's own environment."""
    assert "lerobot" not in sys.modules


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": {"engine": "process", "environment": {"PYTHONPATH": "."}}},
        {"settings": {"num_envs": 3}},
        {"states": "joint_pos"},
        {"states": [["a"]]},
        {"settings": 5},
    ],
)
def test_a_folder_cannot_say_how_processes_are_started(tmp_path, changed):
    origin = {"task": TASK, "settings": {"max_episode_steps": 9}, "states": ["joint_pos"]}
    (tmp_path / "maniple.json").write_text(json.dumps(origin))
    env_of(tmp_path)[TASK][0].close()
    (tmp_path / "maniple.json").write_text(json.dumps(origin | changed))
    with pytest.raises(maniple.core.errors.BadConfig, match="no folder of 'maniple export'"):
        env_of(tmp_path)
