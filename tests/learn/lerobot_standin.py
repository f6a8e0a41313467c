"""As much of LeRobot as our policy is written against, for where it is not installed."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec

from torch import nn


class PreTrainedConfig:
    """Fields and registry of LeRobot's."""

    known: dict = {}  # noqa: RUF012

    @classmethod
    def register_subclass(cls, name):
        return lambda kind: cls.known.setdefault(name, kind)


class PreTrainedPolicy(nn.Module):
    """A module with a config."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    @classmethod
    def _load_as_safetensor(cls, model, model_file, device, strict):
        from safetensors.torch import load_model

        load_model(model, model_file, strict=strict, device=device)
        return model


class NormalizationMode:
    """One of LeRobot's modes."""

    IDENTITY = "IDENTITY"


NAMES = {
    "lerobot": {}, "lerobot.configs": {}, "lerobot.policies": {}, "lerobot.optim": {},
    "lerobot.configs.policies": {"PreTrainedConfig": PreTrainedConfig},
    "lerobot.configs.types": {"NormalizationMode": NormalizationMode},
    "lerobot.optim.optimizers": {"AdamConfig": dict},
    "lerobot.policies.pretrained": {"PreTrainedPolicy": PreTrainedPolicy},
}  # fmt: skip


def lend(monkeypatch):
    """Put the stand-in where LeRobot would be, until the test ends."""
    for name, content in NAMES.items():
        module = module_from_spec(ModuleSpec(name, None))
        module.__path__ = []
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    for name in [name for name in sys.modules if name.startswith("maniple.lerobot_policy")]:
        monkeypatch.delitem(sys.modules, name)
