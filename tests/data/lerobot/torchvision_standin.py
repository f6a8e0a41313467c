"""What LeRobot takes from torchvision, which has no build for every torch."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec

import av
import torch


class VideoReader:
    """torchvision.io.VideoReader as LeRobot uses it, on PyAV."""

    def __init__(self, path, stream):
        self.container = av.open(path)
        self._stream = self.container.streams.video[0]

    def seek(self, seconds, keyframes_only=False):
        self.container.seek(int(seconds / self._stream.time_base), stream=self._stream)

    def __iter__(self):
        for frame in self.container.decode(self._stream):
            picture = torch.from_numpy(frame.to_ndarray(format="rgb24"))
            yield {
                "pts": float(frame.pts * self._stream.time_base),
                "data": picture.permute(2, 0, 1),
            }


def stand_in_for_torchvision():
    """Lend it where it is missing."""
    if importlib.util.find_spec("torchvision") is not None:
        return
    inside = (
        "io",
        "transforms",
        "transforms.v2",
        "transforms.functional",
        "transforms.v2.functional",
    )
    names = ("torchvision", *(f"torchvision.{name}" for name in inside))
    modules = {name: module_from_spec(ModuleSpec(name, None)) for name in names}
    for name, module in modules.items():
        module.__path__ = []  # A package, to whoever imports something inside it.
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    modules["torchvision"].set_video_backend = lambda backend: None
    modules["torchvision.io"].VideoReader = VideoReader
    modules["torchvision.transforms.v2"].Transform = object
    sys.modules.update(modules)
