"""Import an optional package, or say which extra brings it."""

from __future__ import annotations

import importlib
from types import ModuleType

from maniple.core.errors import MissingExtra

EXTRA_OF = {
    "torch": "train",
    "accelerate": "train",
    "safetensors": "train",
    "ray": "cluster",
    "pyarrow": "data",
    "viser": "view",
    "gsply": "gsply",
    "gsplat": "cuda",
    "matplotlib": "plot",
    "wandb": "wandb",
    "websockets": "port",
    "msgpack": "port",
    "stable_baselines3": "peers",
}


def require(module: str) -> ModuleType:
    """Import `module`, naming the extra to install where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name != top:
            raise
        extra = EXTRA_OF.get(top)
        what = f"-e '.[{extra}]'" if extra else top
        raise MissingExtra(
            f"{top} is not installed. Type: pip install -c constraints.txt {what}", name=top
        ) from None
