"""Write a trained policy as a folder in the form of LeRobot's pretrained ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from maniple.agents.eye import EyeConfig
from maniple.agents.inference import NetSpec
from maniple.core import atomic
from maniple.core.errors import BadConfig
from maniple.data.frame_stack import stacked
from maniple.data.lerobot.features import STATE, Features
from maniple.learn.make import env_options
from maniple.learn.policy import Policy
from maniple.run.checkpoint import write_arrays
from maniple.run.folder import plain
from maniple.version import __version__

CONFIG, WEIGHTS, ORIGIN = "config.json", "model.safetensors", "maniple.json"
TYPE = "maniple"
"""The name under which LeRobot knows our policies: see `maniple.lerobot_policy`."""
IDENTITY = dict.fromkeys(("VISUAL", "STATE", "ENV", "ACTION"), "IDENTITY")


def export(policy: Policy, folder: Path) -> list[Path]:
    """Write a policy; return the files, the one that makes it whole last."""
    config = lerobot_config(policy)
    files = {
        "policy_preprocessor.json": _before(config),
        "policy_postprocessor.json": _after(config),
        ORIGIN: origin(policy),
        CONFIG: config,
    }
    write_arrays(folder / WEIGHTS, policy.checkpoint.acting_weights())
    for name, content in files.items():
        atomic.write_text(folder / name, json.dumps(content, indent=2) + "\n")
    return [folder / name for name in (WEIGHTS, *files)]


def net_spec(policy: Policy) -> NetSpec:
    """Describe the network of a policy."""
    agent = policy.config.agent
    eye = getattr(agent, "eye", EyeConfig())
    seen = {name: stacked(policy.layout, policy.stack)[name] for name in policy.needs}
    low, high = policy.action_spec.bounds()
    return NetSpec(
        shapes={name: spec.shape for name, spec in seen.items()},
        dtypes={name: spec.dtype.name for name, spec in seen.items()},
        images={name: spec.image for name, spec in seen.items() if spec.image is not None},
        points={name: spec.points for name, spec in seen.items() if spec.points},
        hidden=tuple(agent.hidden),
        relative=agent.relative,
        encoder=eye.encoder,
        encoder_width=eye.width,
        encoder_features=eye.features,
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def lerobot_config(policy: Policy) -> dict[str, Any]:
    """Return what config.json holds."""
    action = policy.action_spec
    if action.dtype.name != "float32" or len(action.shape) != 1:
        raise BadConfig(
            f"LeRobot's policies give vectors of float32, and this task takes {action.dtype} of "
            f"shape {action.shape}."
        )
    features = Features.of_layout(policy.layout, action)
    keys = _keys(features)
    return {
        "type": TYPE,
        "n_obs_steps": 1,
        "input_features": _inputs(policy, features, keys),
        "output_features": {"action": {"type": "ACTION", "shape": list(action.shape)}},
        "device": "cpu",
        "push_to_hub": False,
        "net": plain(asdict(net_spec(policy))),
        "keys": {name: keys[name] for name in policy.needs},
        "state_names": features.state_names,
        "frame_stack": policy.stack,
        "normalization_mapping": IDENTITY,
    }


def origin(policy: Policy) -> dict[str, Any]:
    """Return where the policy comes from, and the environments that it was made for."""
    return {
        "maniple": __version__,
        "task": policy.config.run.task,
        "settings": plain(env_options(policy.config)),
        "states": list(Features.of_layout(policy.layout, policy.action_spec).packed),
        "checkpoint": str(policy.checkpoint.path),
    }


def _keys(features: Features) -> dict[str, str]:
    """Under which name LeRobot gives each array."""
    columns = {**features.single, **features.films}
    return dict.fromkeys(features.packed, STATE) | {n: c.key for n, c in columns.items()}


def _inputs(policy: Policy, features: Features, keys: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in policy.needs:
        key, shape = keys[name], policy.layout[name].shape
        if name in features.films:
            # Channels come first in LeRobot's pictures.
            found[key] = {"type": "VISUAL", "shape": [shape[2], *shape[:2]]}
        elif key == STATE:
            found[key] = {"type": "STATE", "shape": [len(features.state_names)]}
        else:
            found[key] = {"type": "STATE", "shape": list(shape) or [1]}
    return found


def _before(config: dict[str, Any]) -> dict[str, Any]:
    both = {**config["input_features"], **config["output_features"]}
    steps = [
        _step("rename_observations_processor", rename_map={}),
        _step("to_batch_processor"),
        _step("device_processor", device=config["device"], float_dtype=None),
        _step("normalizer_processor", eps=1e-8, features=both, norm_map=IDENTITY),
    ]
    return {"name": "policy_preprocessor", "steps": steps}


def _after(config: dict[str, Any]) -> dict[str, Any]:
    made = config["output_features"]
    steps = [
        _step("unnormalizer_processor", eps=1e-8, features=made, norm_map=IDENTITY),
        _step("device_processor", device="cpu", float_dtype=None),
    ]
    return {"name": "policy_postprocessor", "steps": steps}


def _step(name: str, **config: Any) -> dict[str, Any]:
    return {"registry_name": name, "config": config}
