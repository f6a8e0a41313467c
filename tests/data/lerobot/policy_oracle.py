"""Load an exported policy with LeRobot's own code, act with it, and print what it did as JSON.

Run by test_policy_oracle.py with an interpreter that has lerobot and gymnasium; where it has mujoco
too, LeRobot's evaluator plays in our environments.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torchvision_standin import stand_in_for_torchvision


def main(folder, observations, dataset, episodes):
    stand_in_for_torchvision()
    import lerobot
    from lerobot.configs.parser import load_plugin
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.datasets.lerobot_dataset import LeRobotDatasetMetadata
    from lerobot.envs.utils import preprocess_observation
    from lerobot.policies.factory import make_policy, make_pre_post_processors

    # What '--....discover_packages_path=maniple.lerobot_policy' does.
    load_plugin("maniple.lerobot_policy")
    config = PreTrainedConfig.from_pretrained(folder)
    config.pretrained_path = Path(folder)
    overrides = {
        "device_processor": {"device": "cpu"},
        "rename_observations_processor": {"rename_map": {}},
    }
    before, after = make_pre_post_processors(
        config, pretrained_path=folder, preprocessor_overrides=overrides
    )
    meta = LeRobotDatasetMetadata("local/ours", root=dataset)
    policy = make_policy(config, ds_meta=meta)
    policy.eval()
    arrays = dict(np.load(observations))
    seen = preprocess_observation(
        {
            "agent_pos": arrays.pop("agent_pos"),
            **({"pixels": arrays} if arrays else {}),
        }
    )
    with torch.inference_mode():
        actions = after(policy.select_action(before(seen)))
    answer = {
        "version": lerobot.__version__,
        "class": type(policy).__name__,
        "actions": actions.numpy().tolist(),
        "same_processors": same_processors(config, before, after),
        "losses": losses(policy, seen, actions),
    }
    if int(episodes) and importlib.util.find_spec("mujoco") is not None:
        answer["success"] = evaluated(folder, policy, before, after, int(episodes))
    print(json.dumps(answer))


def same_processors(config, before, after):
    """Whether ours are written as LeRobot would write those that it makes anew."""
    from lerobot.policies.factory import make_pre_post_processors

    made = make_pre_post_processors(config)
    return [
        [step.get_config() for step in a.steps] == [step.get_config() for step in b.steps]
        for a, b in zip(made, (before, after), strict=True)
    ]


def losses(policy, seen, actions):
    """Train it on for a few steps, towards actions that are half as large."""
    policy.train()
    adam = torch.optim.Adam(policy.get_optim_params(), lr=1e-3)
    found = []
    for _ in range(20):
        loss, _ = policy({**seen, "action": 0.5 * actions.clone()})
        adam.zero_grad()
        loss.backward()
        adam.step()
        found.append(loss.item())
    return found


def evaluated(folder, policy, before, after, episodes):
    """Return the successes that LeRobot's evaluator counts in our environments."""
    from lerobot.policies.factory import get_policy_class
    from lerobot.processor import PolicyProcessorPipeline
    from lerobot.scripts.lerobot_eval import eval_policy_all

    from maniple.lerobot_env import env_of

    fresh = get_policy_class("maniple").from_pretrained(folder)
    nothing = PolicyProcessorPipeline(steps=[])
    envs = env_of(folder, min(20, episodes))
    info = eval_policy_all(
        envs, fresh, nothing, nothing, before, after, n_episodes=episodes, start_seed=1000
    )
    for suite in envs.values():
        suite[0].close()
    return info["overall"]["pc_success"] / 100


main(*sys.argv[1:])
