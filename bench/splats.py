"""Measure splats: CPU time per picture, likeness to MuJoCo, whole environments, a plot.

    python bench/splats.py                      # milliseconds per picture, and ratios
    python bench/splats.py --plot splats.png
    python bench/splats.py --likeness           # shipped scenes against fast and MuJoCo's GL
    python bench/splats.py --sheet sheet.png    # MuJoCo | splat | hybrid, to look at
    python bench/splats.py --envs               # PiperMobileRobot-v0 against SyncVectorEnv

Times are CPU times of the process (software GL has threads of its own), the best of five rounds in
which the contenders take turns.
Images per second are one second divided by that.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from splats_likeness import compare, sheet

from maniple.registry import recipe
from maniple.sim.fast.renderer import FastRenderer
from maniple.sim.gl_renderer import GLRenderer
from maniple.splat.cloud import Cloud, make_cloud
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import LAYER_BYTES, STAGES, Raster
from maniple.splat.scene import Part, Scene, read_scene
from maniple.splat.store import find_scene

TASKS = ("piper/AppleInBowl-v0", "so101/LiftCube-v0", "panda/OpenDrawer-v0", "PiperMobileRobot-v0")
ROWS, ROUNDS, SIZE = 8, 5, 128
TURNS = 15
SPLAT = Path(__file__).parents[1] / "src/maniple/splat"


def main() -> None:
    """Do what was asked, and print it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--plot", type=Path, help="draw the table as a PNG")
    options.add_argument("--likeness", action="store_true")
    options.add_argument("--sheet", type=Path)
    options.add_argument("--envs", action="store_true")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if given.likeness:
        answer: Any = compare(TASKS)
    elif given.sheet:
        answer = sheet(TASKS, given.sheet)
    elif given.envs:
        answer = environments()
    else:
        answer = speed()
        if given.plot:
            plot(answer, given.plot)
    if given.json:
        print(json.dumps(answer))


def best(contenders: dict[str, Callable[[], None]], pictures: int, times: int = 6) -> dict:
    """Milliseconds per picture of each contender, the best of rounds in which they take turns."""
    found = dict.fromkeys(contenders, float("inf"))
    for work in contenders.values():
        work()
    for _ in range(ROUNDS):
        for name, work in contenders.items():
            began = process_time()
            for _ in range(times):
                work()
            found[name] = min(found[name], (process_time() - began) / times / pictures)
    return {name: 1e3 * seconds for name, seconds in found.items()}


def speed() -> dict[str, Any]:
    """Fitted scenes, synthetic scenes, instruction sets, threads, and other renderers."""
    answer: dict[str, Any] = {}
    for task in TASKS[:3]:
        answer[task] = _fitted(task)
    answer["synthetic"] = _synthetic()
    answer["variants"] = _variants()
    answer["start"] = _start()
    for name, values in answer.items():
        print(name, json.dumps(values))
    return answer


def _group(task: str, threads: int = 1) -> Any:
    group: Any = recipe(task, {}).group(ROWS, threads)
    group.reset(np.arange(ROWS), list(range(ROWS)))
    return group


def _drawer(renderer: Any, camera: int, **more: Any) -> Callable[[], None]:
    out = {(camera, "rgb"): np.empty((ROWS, SIZE, SIZE, 3), np.uint8)}
    return lambda: renderer.render(list(range(ROWS)), [camera], ("rgb",), out, **more)


def _fitted(task: str) -> dict[str, Any]:
    group = _group(task)
    path = find_scene(group.model)
    assert path is not None
    scene = CompiledScene(read_scene(path), group.model)
    moving, kept = Raster(scene, group.source, 0), Raster(scene, group.source, LAYER_BYTES)
    fast = FastRenderer(group.source, (SIZE, SIZE), "lean")
    bare = FastRenderer(group.source, (SIZE, SIZE), "lean", layer_bytes=0)
    contenders: dict[str, Callable[[], None]] = {
        "moving camera": _drawer(moving, 0), "still camera, kept": _drawer(kept, 0),
        "fast, moving": _drawer(bare, 0), "fast, kept": _drawer(fast, 0),
    }  # fmt: skip
    try:
        contenders["mujoco"] = _drawer(GLRenderer(group.source, (SIZE, SIZE), "lean"), 0)
    except Exception as error:
        print(f"no GL here: {error}")
    times = best(contenders, ROWS)
    stages = np.zeros(4, np.int64)
    _drawer(moving, 0, nanoseconds=stages)()
    still = sum(len(g.cloud) for g in scene.bound if g.is_still)
    return {
        "gaussians": len(scene.scene),
        "still": still,
        "ms": {name: round(ms, 3) for name, ms in times.items()},
        "images/s": {name: round(1e3 / ms) for name, ms in times.items()},
        "stages ms": dict(zip(STAGES, np.round(stages / ROWS / 1e6, 3).tolist(), strict=True)),
        "kept MB": round(kept.kept_bytes / 1e6, 1),
    }


def room(count: int, seed: int = 0) -> Cloud:
    """A synthetic room: sizes all over the place, half of it nearly opaque."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(-1.5, 1.5, (count, 3)) * [1, 1, 0.6] + [0.3, 0, 0.6]
    scales = 0.012 * (50_000 / count) ** 0.33 * np.exp(0.7 * rng.normal(size=(count, 3)))
    opacities = np.where(rng.random(count) < 0.5, rng.uniform(0.02, 0.4, count), 0.95)
    return make_cloud(means, rng.normal(size=(count, 4)), scales, opacities,
                      rng.normal(size=(count, 1, 3)))  # fmt: skip


def _synthetic() -> dict[str, Any]:
    """Cost by size; that of a kept scene with the same moving arm should not depend on it."""
    group = _group(TASKS[0])
    path = find_scene(group.model)
    assert path is not None
    own = read_scene(path)
    answer = {}
    for count in (10_000, 50_000, 200_000):
        parts = (*own.parts, Part(room(count)))
        alone = CompiledScene(Scene((Part(room(count)),)), group.model)
        both = CompiledScene(Scene(parts), group.model)
        moving, kept = Raster(alone, group.source, 0), Raster(both, group.source, 256 << 20)
        contenders = {"moving": _drawer(moving, 0), "kept, with an arm": _drawer(kept, 0)}
        times = best(contenders, ROWS, 2)
        answer[count] = {name: round(ms, 3) for name, ms in times.items()}
        answer[count] |= {"images/s": round(1e3 / times["moving"])}
        moving.close()
        kept.close()
    return answer


def _variants() -> dict[str, Any]:
    """AVX2, the baseline, what a plain -O3 build would be, and two threads.

    Eight lanes gain the more the larger splats are: fitted scenes beside synthetic ones.
    """
    group = _group(TASKS[0])
    answer: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        plain = plain_build(Path(folder))
        for name, scene, source in _subjects(group):
            rasters = {n: Raster(scene, source, 0) for n in ("avx2", "baseline", "plain -O3")}
            rasters["baseline"].lanes = 4
            rasters["plain -O3"]._library = plain
            times = best({n: _drawer(raster, 0) for n, raster in rasters.items()}, ROWS, 3)
            answer[name] = {n: round(ms, 3) for n, ms in times.items()} | {
                "avx2 against baseline": round(times["baseline"] / times["avx2"], 2),
                "avx2 against plain -O3": round(times["plain -O3"] / times["avx2"], 2),
            }
    path = find_scene(group.model)
    assert path is not None
    scene, walls = CompiledScene(read_scene(path), group.model), {}
    for threads in (1, 2):
        work = _drawer(Raster(scene, _group(TASKS[0], threads).source, 0), 0)
        work()
        walls[threads] = min(_wall(work) for _ in range(30))
    return answer | {"two threads against one, wall": round(walls[1] / walls[2], 2)}


def _subjects(group: Any) -> Iterator[tuple[str, CompiledScene, Any]]:
    """Fitted scenes, and synthetic ones of every size."""
    for task in TASKS[:3]:
        own = _group(task)
        path = find_scene(own.model)
        assert path is not None
        yield task, CompiledScene(read_scene(path), own.model), own.source
    for count in (4_000, 10_000, 50_000, 200_000):
        scene = CompiledScene(Scene((Part(room(count)),)), group.model)
        yield f"synthetic {count}", scene, group.source


def plain_build(folder: Path) -> ctypes.CDLL:
    """Compile the eight-wide kernel for any processor, as a build without dispatch would be."""
    kernel = SPLAT.parent / "sim/kernel"
    for name in ("lanes.h", "pool.h", "widest.h", "key.h", "rows.h"):
        text = (kernel / name).read_text().replace('#pragma GCC target("avx2,fma")', "")
        # Eight lanes by the compiler's own means, without intrinsics of AVX2.
        (folder / name).write_text(text.replace("defined(__x86_64__)", "defined(__none__)"))
    for path in SPLAT.iterdir():
        if path.suffix in (".cc", ".inc", ".h"):
            text = path.read_text()
            if path.suffix == ".inc":
                text = text.replace("defined(__x86_64__)", "defined(__none__)")
            (folder / path.name).write_text(text)
    sources = [str(folder / n) for n in ("kernel_avx2.cc", "kernel_base.cc", "raster.cc")]
    flags = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
    subprocess.run(
        ["g++", *flags, "-fPIC", "-shared", f"-I{folder}", *sources, "-o", str(folder / "p.so")],
        check=True,
    )
    return ctypes.CDLL(str(folder / "p.so"))


def _wall(work: Callable[[], None]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _start() -> dict[str, Any]:
    """Size of the extension, memory of a worker, and the first picture after the import."""
    code = """
import time, numpy, psutil, maniple.sim.fast.renderer, maniple.envs.group
from maniple.registry import recipe
group = recipe("PiperMobileRobot-v0", {}).group(1, 1)
group.reset(numpy.arange(1), [0])
memory = psutil.Process().memory_info().rss
began = time.process_time()
import maniple.splat.renderer
imported = time.process_time()
from maniple.sim.renderer import make_renderer, render_still
renderer = make_renderer("splat", group.source, (128, 128))
render_still(renderer, 0, 0, 128, 128)
print(imported - began, time.process_time() - imported,
      (psutil.Process().memory_info().rss - memory) / 1e6, renderer.raster.kept_bytes / 1e6)
"""
    runs = []
    for _ in range(5):
        order = [sys.executable, "-c", code]
        done = subprocess.run(order, capture_output=True, text=True, check=True)
        runs.append([float(word) for word in done.stdout.split()])
    imported, first, memory, kept = np.min(runs, 0)
    workers = {name: min(_worker_memory(name) for _ in range(3)) for name in ("fast", "splat")}
    library = next(SPLAT.glob("_raster*.so"))
    return {
        "extension kB": round(library.stat().st_size / 1e3),
        "import ms": round(1e3 * imported),
        "first picture ms": round(1e3 * first),
        "more memory MB": round(memory, 1),
        "of it kept layers MB": round(kept, 1),
        "PSS of a worker MB": workers,
        "more than with fast MB": round(workers["splat"] - workers["fast"], 1),
    }


def _worker_memory(renderer: str) -> float:
    """Memory of one of four workers that have drawn, MB."""
    code = f"""
import maniple, numpy, psutil
envs = maniple.make_vec("PiperMobileRobot-v0", num_envs=4, engine="process", workers=4,
                        renderer="{renderer}")
envs.reset(seed=0)
for _ in range(5):
    envs.step(numpy.zeros(envs.action_space.shape, numpy.float32))
zygote, = psutil.Process().children()
workers = [child.memory_full_info().pss for child in zygote.children()]
print(sum(workers) / len(workers) / 1e6)
envs.close()
"""
    order = [sys.executable, "-c", code]
    done = subprocess.run(order, capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def environments() -> dict[str, Any]:
    """PiperMobileRobot-v0: steps per second and memory, ours and SyncVectorEnv."""
    import gymnasium

    import maniple

    answer: dict[str, Any] = {}
    for count in (1, 4, 8, 10):
        kinds: dict[str, Any] = {
            "ours": maniple.make_vec("PiperMobileRobot-v0", num_envs=count),
            "sync": gymnasium.vector.SyncVectorEnv([_one_env for _ in range(count)]),
        }
        for envs in kinds.values():
            envs.reset(seed=0)
            _turn(envs, 3)
        # Who else runs on the machine changes from second to second: turns are short, and the one
        # before is compared with the one after.
        turns = [{name: _turn(envs) for name, envs in kinds.items()} for _ in range(TURNS)]
        for envs in kinds.values():
            envs.close()
        wall = np.array([turn["sync"][0] / turn["ours"][0] for turn in turns])
        cpu = np.array([turn["sync"][1] / turn["ours"][1] for turn in turns])
        seconds = {name: np.median([turn[name][0] for turn in turns]) for name in kinds}
        answer[str(count)] = {
            "ours, images/s": round(1 / seconds["ours"]),
            "SyncVectorEnv, cache off, one thread": round(1 / seconds["sync"]),
            "ratio": round(float(np.median(wall)), 2),
            "ratio, a quarter of the turns below": round(float(np.quantile(wall, 0.25)), 2),
            "ratio of CPU time": round(float(np.median(cpu)), 2),
            "PSS of ours alone, MB": _memory(count),
        }
        print(count, json.dumps(answer[str(count)]))
    return answer


def _turn(envs: Any, steps: int = 10) -> tuple[float, float]:
    """Seconds per environment step, by the clock and of the processor."""
    actions = np.zeros(envs.action_space.shape, np.float32)
    began, cpu = perf_counter(), process_time()
    for _ in range(steps):
        envs.step(actions)
    count = steps * envs.num_envs
    return (perf_counter() - began) / count, (process_time() - cpu) / count


def _memory(count: int) -> int:
    """Memory of a fresh process with environments that have drawn, and of its children, MB."""
    code = f"""
import maniple, numpy, psutil
envs = maniple.make_vec("PiperMobileRobot-v0", num_envs={count})
envs.reset(seed=0)
for _ in range(5):
    envs.step(numpy.zeros(envs.action_space.shape, numpy.float32))
processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
print(sum(p.memory_full_info().pss for p in processes) / 1e6)
"""
    order = [sys.executable, "-c", code]
    return round(float(subprocess.run(order, capture_output=True, text=True, check=True).stdout))


def _one_env() -> Any:
    """One environment with the same kernel, keeping nothing, on one thread."""
    import maniple

    env = maniple.make("PiperMobileRobot-v0")
    env.reset(seed=0)
    raster = env.unwrapped._group._cameras._get_renderer().raster  # type: ignore[attr-defined]
    raster.close()
    return env


def plot(answer: dict[str, Any], path: Path) -> None:
    """Draw images per second of every renderer, scene by scene."""
    from maniple.cli.chart_style import LINE_COLOURS, dress, new_figure, save

    names = ("moving camera", "still camera, kept", "fast, moving", "fast, kept", "mujoco")
    figure = new_figure(8.0, 4.2)
    axes = figure.add_subplot()
    for k, task in enumerate(TASKS[:3]):
        for j, name in enumerate(names):
            rate = answer[task]["images/s"].get(name)
            if rate:
                whose = "splat, " if "camera" in name else ""
                label = f"{whose}{name}" if k == 0 else None
                axes.bar(k + 0.16 * (j - 2), rate, 0.15, color=LINE_COLOURS[j], label=label)
                axes.annotate(str(rate), (k + 0.16 * (j - 2), rate), ha="center", va="bottom",
                              fontsize=6)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(range(3), TASKS[:3])
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    dress(axes, "128 x 128, one core", "images per second of CPU time")
    save(figure, path)


if __name__ == "__main__":
    main()
