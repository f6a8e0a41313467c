"""Every command and every code block of the documentation runs, or says why it does not."""

import re
import shutil
import subprocess
import sys
import types
from itertools import chain
from pathlib import Path

import doc_blocks
import pytest
from doc_blocks import NOT_RUN, ROOT

from maniple import registry

NEEDS_XVFB = "docs/how-to/displays.md"
SMALL_TRAINING = (
    "--max-steps 16 --random-steps 8 --training-starts 8 --batch-size 8 --eval-n-trajs 1 "
    "--eval-period 16 --num-envs 2"
)
SMALL_PHASE = (
    "--num-episodes 2 --steps-per-episode 8 --updates-per-episode 1 --batch-size 2 "
    "--sequence-length 3 --held-out 1 --image-size 32 32 --task so101/Reach-v0"
)
SMALL = {
    "train sac": SMALL_TRAINING,
    "train drq": SMALL_TRAINING + " --env.image-size 32 32",
    "train bc": "--demos 2 --max-updates 4 --batch-size 8 --eval-n-trajs 0 --num-envs 2",
    "train teacher": SMALL_PHASE,
    "train student": SMALL_PHASE,
    "train adversarial": f"{SMALL_PHASE} --total-iterations 1",
    "eval": "--episodes 2 --num-envs 2 --no-video",
    "record": "--episodes 2 --num-envs 2",
    "replay": "--image-size 32 48",
    "demos record": "--episodes 2 --num-envs 2",
    "bench": "--steps 4 --num-envs 2",
    "bench trace": "--steps 4 --num-envs 2 --action-chunk 2 --image-size 32 32",
    "bench sweep": "--num-envs 2 --workers 1 --action-chunk 1 --turns 1 --steps 4 --seconds 0.1 "
    "--peers none",
    "report": "--episodes 2",
    "view": "--seconds 0.2 --port 0 --num-envs 2",
}
"""Words that make each verb quick; the last of two that are alike counts."""
PAGES = {str(page.relative_to(ROOT)): page for page in doc_blocks.pages() if page.exists()}


@pytest.fixture
def known_tasks():
    """Forget the tasks that a page registers."""
    import gymnasium

    tables = (registry.TASKS, registry.EXPERTS, registry._own, registry._own_experts,
              gymnasium.registry)  # fmt: skip
    kept = [dict(table) for table in tables]
    modules, path = set(sys.modules), list(sys.path)
    yield
    for table, before in zip(tables, kept, strict=True):
        table.clear()
        table.update(before)
    here = [n for n in set(sys.modules) - modules if _is_of_a_page(sys.modules[n])]
    for name in here:
        del sys.modules[name]
    sys.path[:] = path


def _is_of_a_page(module) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and not any(
        Path(file).is_relative_to(root) for root in (ROOT, sys.prefix, sys.base_prefix)
    )


class Reader:
    """Does what a page says, from top to bottom, in a folder of its own."""

    def __init__(self, inside) -> None:
        self.inside = inside
        self.module = types.ModuleType("__main__")

    def read(self, block) -> None:
        for command in block.notes.get("first", ()):
            self.type(command.split(), "")
        if title := re.match(r"# (\w+\.(?:py|yaml))\n", block.code):
            # A file that the reader is asked to save: what follows imports it.
            Path(title[1]).write_text(block.code)
        elif block.language == "python":
            exec(compile(block.code, f"line {block.line}", "exec"), self.module.__dict__)
        elif block.language == "bash":
            for words in block.commands():
                if words[0] not in NOT_RUN:
                    self.type(words, block.notes.get("small", [""])[0])

    def type(self, words, small) -> None:
        """Run one command, with small numbers."""
        words, target = (words[:-2], words[-1]) if ">" in words else (words, None)
        if words[0] == "maniple":
            printed = self.inside(*self.smaller(words[1:], small))
            if target is not None:
                Path(target).write_text(printed.out)
        elif words[0] == "torchrun":
            words = [re.sub(r"^\d+$", "2", word) for word in words]
            start = words.index("maniple") + 1
            words = [*words[1:start], *self.smaller(words[start:], small)]
            self.start([sys.executable, "-m", "torch.distributed.run", *words])
        else:
            assert words[0] == "python", f"a test does not know how to run {words[0]}"
            self.start([sys.executable, *words[1:], *small.split()])

    def smaller(self, words, small):
        verb = next(v for v in (" ".join(words[:2]), words[0]) if v in SMALL or v == words[0])
        words = [re.sub(r"checkpoint-\d+", "checkpoint-2", word) for word in words]
        if words[0] == "train" and words[2:4] == ["1", "16"]:
            words[3] = "2"
        if "--demos" in words:
            words[words.index("--demos") + 1] = "1"
        found = [_spread(word) for word in words]
        return [*chain(*found), *SMALL.get(verb, "").split(), *small.split()]

    def start(self, words) -> None:
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    def close(self) -> None:
        for thing in vars(self.module).values():
            if callable(getattr(thing, "close", None)) and not isinstance(
                thing, (type, types.ModuleType)
            ):
                thing.close()


def _spread(word) -> list[str]:
    """What a shell makes of a star."""
    return sorted(map(str, Path().glob(word))) if "*" in word else [word]


def _read(name, inside, with_slow) -> None:
    if name == NEEDS_XVFB and shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed, and without GL libraries it cannot be")
    reader = Reader(inside)
    try:
        for block in doc_blocks.blocks(PAGES[name]):
            is_read = block.language in doc_blocks.RUN or block.language == "yaml"
            if is_read and block.reason is None and (with_slow or not block.is_slow):
                reader.read(block)
    finally:
        reader.close()


def _has(name, slow) -> bool:
    found = [b for b in doc_blocks.blocks(PAGES[name]) if b.language in doc_blocks.RUN]
    return any(b.reason is None and b.is_slow == slow for b in found)


@pytest.mark.parametrize("name", [name for name in PAGES if _has(name, slow=False)])
def test_a_page(name, inside, tmp_path, monkeypatch, known_tasks):
    monkeypatch.chdir(tmp_path)
    _read(name, inside, with_slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PAGES if _has(name, slow=True)])
def test_a_page_with_what_is_slow(name, inside, tmp_path, monkeypatch, known_tasks):
    monkeypatch.chdir(tmp_path)
    _read(name, inside, with_slow=True)
