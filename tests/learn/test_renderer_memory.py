"""Runs and datasets remember which renderer drew their pictures."""

import dataclasses

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.data.episode import Episode
from maniple.data.lerobot.meta import read_origin
from maniple.data.lerobot.write import DatasetWriter
from maniple.envs.config import EnvConfig
from maniple.learn.config import TrainConfig, preset
from maniple.learn.demos import demonstrations
from maniple.learn.imitation import train
from maniple.learn.make import with_renderer
from maniple.learn.policy import load_policy
from maniple.run.folder import RunFolder

PICTURES = EnvConfig(cameras=("front",), image_size=(16, 16))


def episode():
    """Two steps with nothing in them."""
    obs = {"x": np.zeros((3, 2), np.float32)}
    reward = np.zeros(2, np.float32)
    return Episode(obs, np.zeros((2, 1), np.float32), reward, True, False, True, task="t")


def test_a_dataset_is_drawn_by_one_renderer(tmp_path):
    with DatasetWriter(tmp_path / "d", 10, "so101", {"renderer": "fast"}) as writer:
        writer.add(episode())
    assert read_origin(tmp_path / "d") == {"renderer": "fast"}
    with pytest.raises(BadConfig, match=r"renderer of .* is 'fast', not 'mujoco'"):
        DatasetWriter(tmp_path / "d", 10, "so101", {"renderer": "mujoco"})
    with DatasetWriter(tmp_path / "d", 10) as writer:  # an export does not know
        writer.add(episode())
    assert read_origin(tmp_path / "d") == {"renderer": "fast"}


def test_auto_is_named():
    assert with_renderer(TrainConfig()).env.renderer == "auto", "nothing is drawn"
    drawn = with_renderer(TrainConfig.of(env=PICTURES))
    assert drawn.env.renderer == "fast"
    chosen = dataclasses.replace(PICTURES, renderer="rays")
    assert with_renderer(TrainConfig.of(env=chosen)).env.renderer == "rays"


def test_a_run_remembers_and_a_policy_says_what_differs(tmp_path):
    config = preset("bc", "so101/Reach-v0").replace(
        env=PICTURES, max_updates=2, demos=2, eval_n_trajs=0, num_envs=2
    )
    train(config, tmp_path / "run")
    assert RunFolder(tmp_path / "run").config()["env"]["renderer"] == "fast"
    policy = load_policy(tmp_path / "run", best=False)
    assert policy.draw_with("fast") is None
    assert policy.draw_with("auto") is None
    note = policy.draw_with("rays")
    assert note is not None and "'fast'" in note and "'rays'" in note
    envs = policy.envs(1)
    assert envs.get_attr("renderer") == ("rays",)
    envs.close()


def test_demonstrations_that_were_drawn_otherwise(tmp_path, inside):
    folder = tmp_path / "d"
    inside("demos", "record", "--task", "so101/Reach-v0", "--out", folder, "--episodes", "1",
           "--cameras", "front", "--image-size", "16", "16")  # fmt: skip
    assert read_origin(folder)["renderer"] == "fast"
    same = TrainConfig.of(task="so101/Reach-v0", env=PICTURES, demo_path=folder)
    assert len(demonstrations(same)) == 1
    other = same.replace(env=dataclasses.replace(PICTURES, renderer="rays"))
    with pytest.warns(UserWarning, match="drawn by 'fast'"):
        demonstrations(other)
