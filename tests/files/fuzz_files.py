"""Change files of every kind at random and read them: an error of ours, or plain data.

python fuzz_files.py KIND COUNT SEED     # in a process of its own, with little memory
"""

import hashlib
import json
import pickle
import random
import resource
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1] / "data/lerobot"))

import numpy as np

from maniple.core.errors import ManipleError

SECONDS = 1.0
MEMORY_BYTES = 2**30
WORDS = [
    b"{", b"}", b"[" * 3000, b'"', b"..", b"/dev/zero", b"\xff\xfe", b"null", b"-1", b"1e999",
    b"NaN", b"{chunk_index:9999999999}", b"&a [*a, *a]", b"!!python/name:os.system ", b"\n",
]  # fmt: skip


class Slow(Exception):
    """A file that takes too long to be refused."""


def mutate(data, rng):
    """Flip, cut, double or put in a few bytes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] = rng.randrange(256)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at : at + rng.randrange(1, 64)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randrange(1, 256)]
        elif kind == 4:
            data[at:at] = rng.choice(WORDS)
        else:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 16)))
    return bytes(data)


def checkpoint(folder):
    """A checkpoint: its manifest, state or arrays are changed, the manifest made to fit or not."""
    from maniple.run.checkpoint import Checkpoint, Checkpoints

    (folder / "config.yaml").write_text("a: 1\n")
    arrays = {"w": np.arange(6.0), "policy": {"b": np.ones(3, np.float32)}}
    path = Checkpoints(folder / "checkpoints").save(10, {**arrays, "steps": 3, "l": [1, None]}).path
    files = [path / name for name in ("manifest.json", "state.json", "weights.safetensors")]

    def read(changed, rng):
        manifest = path / "manifest.json"
        if changed != manifest and rng.random() < 0.7:
            entries = json.loads(files_before[manifest])
            data = changed.read_bytes()
            entries[changed.name] = {
                "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(),
            }  # fmt: skip
            manifest.write_text(json.dumps(entries))
        found = Checkpoint(path)
        if found.complaint() is None:
            found.state()
        found.files()

    files_before = {file: file.read_bytes() for file in files}
    return files, read


def settings(folder):
    """The config.yaml of a run."""
    from maniple.learn.config import config_of, preset
    from maniple.run.folder import RunFolder

    RunFolder(folder).write_config(preset("sac").flat())
    return [folder / "config.yaml"], lambda *_: config_of(RunFolder(folder).config())


def metrics(folder):
    """Lines of metrics."""
    from maniple.run.log import JsonLines, read_lines

    path = folder / "metrics.jsonl"
    log = JsonLines(path)
    for step in range(20):
        log(step, {"loss": 0.5, "reward": step})
    log.close()
    return [path], lambda *_: [line["step"] for line in read_lines(path)]


def dataset(folder):
    """A dataset's facts, tables and films."""
    from made import episode

    from maniple.data.lerobot.check import check
    from maniple.data.lerobot.read import Dataset
    from maniple.data.lerobot.write import DatasetWriter

    root = folder / "set"
    with DatasetWriter(root, 10, "so101", {}) as writer:
        for seed in range(2):
            writer.add(episode(seed, steps=3))
    files = [p for p in sorted(root.rglob("*")) if p.suffix in (".json", ".parquet", ".mp4")]

    def read(changed, rng):
        if rng.random() < 0.3:
            check(root)
        for one in Dataset(root, with_pictures=changed.suffix == ".mp4" or rng.random() < 0.2):
            len(one)

    return files, read


def pickles(folder):
    """A demonstration as RLBench stores it."""
    from maniple.envs.rlbench.safe_pickle import read_pickle
    from maniple.envs.rlbench.stored import _rows

    path = folder / "low_dim_obs.pkl"
    rows = [
        SimpleNamespace(joint=np.arange(7.0), open=1.0, misc={"k": [k, (k, "a")]}) for k in range(3)
    ]
    path.write_bytes(pickle.dumps(rows, protocol=folder.stat().st_ino % 4 + 2))
    return [path], lambda *_: list(_rows(read_pickle(path.read_bytes())))


KINDS = {f.__name__: f for f in (checkpoint, settings, metrics, dataset, pickles)}


def main(kind, count, seed):
    """Read `count` changed files; whatever is not an error of ours ends this process."""
    rng = random.Random(seed)
    signal.signal(signal.SIGALRM, _too_slow)
    with tempfile.TemporaryDirectory() as folder:
        files, read = KINDS[kind](Path(folder))
        before = {file: file.read_bytes() for file in files}
        refused = 0
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(count):
            changed = rng.choice(files)
            changed.write_bytes(mutate(before[changed], rng))
            # CPU time: others may use the machine.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.signal(signal.SIGPROF, _too_slow)
            try:
                read(changed, rng)
            except ManipleError as error:
                refused += 1
                assert "\n" not in str(error), str(error)
            except BaseException:
                print(f"seed {seed}, number {number}, {changed.name}", file=sys.stderr)
                raise
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            for file, data in before.items():
                file.write_bytes(data)
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb)
        assert grown < MEMORY_BYTES, f"{grown:,} bytes more"
        assert refused or kind == "metrics", "nothing was ever refused"
        assert refused < count, "nothing was ever read"
        print(f"{kind}: {refused} of {count} refused, {grown / 1e6:.0f} MB more")


def _too_slow(*_):
    raise Slow


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
