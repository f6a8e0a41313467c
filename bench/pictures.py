"""Measure the renderer of primitives beside GL: CPU time, fidelity, whole environments, a plot.

    python bench/pictures.py                    # microseconds per picture and ratios to GL
    python bench/pictures.py --plot pictures.png
    python bench/pictures.py --fidelity         # every task against GL with many faces
    python bench/pictures.py --fine             # four rays where pixels differ, or in every pixel
    python bench/pictures.py --sheet sheet.png  # GL | fast | difference, to look at
    python bench/pictures.py --envs             # against AsyncVectorEnv over the same class with GL

Times are CPU times of one thread, the best of five rounds in which the contenders take turns.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter, thread_time_ns
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

import maniple
from maniple.data.video import save_png, tile
from maniple.registry import TASKS, recipe
from maniple.sim import gl_renderer
from maniple.sim.fast.renderer import FastRenderer
from maniple.sim.gl_renderer import GLRenderer

SCENES = ("so101/LiftCube-v0", "panda/OpenDrawer-v0", "panda/StackBlocks-v0")
KINDS = ("rgb", "depth", "segmentation")
ROWS, ROUNDS = 8, 5


def main() -> None:
    """Do what was asked, and print it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--plot", type=Path, help="draw the table as a PNG")
    options.add_argument("--fidelity", action="store_true")
    options.add_argument("--fine", action="store_true")
    options.add_argument("--sheet", type=Path)
    options.add_argument("--envs", action="store_true")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if given.fidelity:
        answer: Any = fidelity()
    elif given.fine:
        answer = fine(given.sheet)
    elif given.sheet:
        answer = sheet(given.sheet)
    elif given.envs:
        answer = environments()
    else:
        answer = speed()
        if given.plot:
            plot(answer, given.plot)
    if given.json:
        print(json.dumps(answer))


def group_of(task: str, rows: int = ROWS, threads: int = 1) -> Any:
    """Rows of a task that have moved a little."""
    group: Any = recipe(task, {}).group(rows, threads)
    group.reset(np.arange(rows), list(range(100, 100 + rows)))
    space, rng = group.contract.action_space, np.random.default_rng(0)
    for _ in range(12):
        low = np.maximum(space.low, -0.6)
        high = np.maximum(low, np.minimum(space.high, 0.6))
        group.step(rng.uniform(low, high, (rows, *space.shape)).astype(space.dtype))
    return group


def empty(rows: int, size: int, camera: int) -> dict[tuple[int, str], NDArray]:
    """Arrays for pictures of one camera."""
    shape = (rows, size, size)
    return {
        (camera, "rgb"): np.empty((*shape, 3), np.uint8),
        (camera, "depth"): np.empty(shape, np.float32),
        (camera, "segmentation"): np.empty(shape, np.int32),
    }


def speed() -> list[dict[str, Any]]:
    """Print and return microseconds per picture of every contender."""
    answers = []
    for task in SCENES:
        group = group_of(task)
        for size in (128, 64):
            tools = {
                "gl": GLRenderer(group._source, (size, size), "lean"),
                "full": FastRenderer(group._source, (size, size), "lean", layer_bytes=0),
                "kept": FastRenderer(group._source, (size, size), "lean"),
                "fine": FastRenderer(group._source, (size, size), "fine", layer_bytes=0),
                "fine_kept": FastRenderer(group._source, (size, size), "fine"),
                "smooth": FastRenderer(group._source, (size, size), "fine", layer_bytes=0),
            }
            tools["smooth"]._scene.light_casts_shadow[:] = 0  # 2 x 2 rays, no shadows
            for camera in ("front", "wrist"):
                answers.append(_one_camera(task, group, tools, camera, size))
        group.close()
    answers += [_two_threads(task) for task in SCENES[:2]]
    return answers


def _one_camera(
    task: str, group: Any, tools: dict[str, Any], camera: str, size: int
) -> dict[str, Any]:
    number = group.model.camera(camera).id
    out, rows = empty(ROWS, size, number), list(range(ROWS))
    cost: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, tool in tools.items():
            for kinds in (("rgb",), KINDS) if name in ("gl", "full") else (("rgb",),):
                key = name if kinds == ("rgb",) else f"{name}_all"
                tool.render(rows, [number], kinds, out)
                for _ in range(3 if name == "gl" else 20):
                    start = thread_time_ns()
                    tool.render(rows, [number], kinds, out)
                    spent = (thread_time_ns() - start) / 1e3 / ROWS
                    cost[key] = min(cost.get(key, np.inf), spent)
    ratios = {name: cost["gl"] / cost[name] for name in cost if name in tools}
    print(
        f"{task:22s} {camera:5s} {size:3d}  GL {cost['gl']:5.0f} us  full {cost['full']:5.1f} "
        f"({ratios['full']:.1f}x)  kept {cost['kept']:5.1f} ({ratios['kept']:.1f}x)  2x2 "
        f"{cost['smooth']:5.0f} ({ratios['smooth']:.1f}x)  2x2 and shadows {cost['fine']:5.0f} "
        f"({ratios['fine']:.2f}x)  kept {cost['fine_kept']:5.0f} ({ratios['fine_kept']:.2f}x)  "
        f"all kinds {cost['full_all'] / cost['full']:.2f} of rgb",
        flush=True,
    )
    return {"task": task, "camera": camera, "size": size, "us": cost, "ratio": ratios}


def _two_threads(task: str) -> dict[str, Any]:
    """A batch of 64 on one thread and on two; wall time, so that both cores must be free."""
    best = {}
    for threads in (1, 2):
        group = group_of(task, 64, threads)
        tool = FastRenderer(group._source, (128, 128), "lean", layer_bytes=0)
        out, camera = empty(64, 128, 0), 0
        for _ in range(30):
            start = perf_counter()
            tool.render(range(64), [camera], ("rgb",), out)
            best[threads] = min(best.get(threads, np.inf), perf_counter() - start)
        group.close()
    print(f"{task:22s} 64 rows: two threads {best[1] / best[2]:.2f}x one")
    return {"task": task, "threads": best[1] / best[2]}


def use_many_faces(model: Any, quality: str, width: int, height: int) -> None:
    """Let GL draw so many faces that its light, computed at corners, is right all over."""
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    shapes = model.vis.quality
    shapes.offsamples = shapes.shadowsize = 0
    shapes.numslices, shapes.numstacks, shapes.numquads = 128, 64, 16
    model.geom_size[model.geom_type == 0, 2] = 0.01


def fidelity() -> dict[str, float]:
    """Print how near the pictures of every task are to GL's."""
    gl_renderer._set_quality = use_many_faces
    decibels, same, depth = [], [], []
    for task in TASKS:
        group = group_of(task, 10)
        size = (128, 128)
        gl = GLRenderer(group._source, size, "lean")
        fast = FastRenderer(group._source, size, "lean")
        for number in range(min(2, group.model.ncam)):
            theirs, ours = empty(10, 128, number), empty(10, 128, number)
            gl.render(range(10), [number], KINDS, theirs)
            fast.render(range(10), [number], KINDS, ours)
            error = theirs[number, "rgb"].astype(float) - ours[number, "rgb"]
            squares = (error**2).mean((1, 2, 3))
            decibels += (10 * np.log10(255**2 / np.maximum(squares, 1e-6))).tolist()
            agree = theirs[number, "segmentation"] == ours[number, "segmentation"]
            same += agree.mean((1, 2)).tolist()
            apart = np.abs(theirs[number, "depth"] - ours[number, "depth"])
            solid = agree & (ours[number, "segmentation"] >= 0)
            depth += [float(np.median(apart[k][solid[k]])) for k in range(10) if solid[k].any()]
        print(f"{task:36s} worst {min(decibels[-20:]):.1f} dB, {min(same[-20:]):.2%} same geom")
        gl.close()
        group.close()
    answer = {
        "median_db": float(np.median(decibels)),
        "worst_db": min(decibels),
        "worst_segmentation": min(same),
        "median_segmentation": float(np.median(same)),
        "worst_depth_mm": 1e3 * max(depth),
    }
    print(answer)
    return answer


def fine(path: Path | None) -> dict[str, float]:
    """Print how near four rays where pixels differ come to four rays in every pixel.

    The sheet, if one is asked for, has both and eight times their difference.
    """
    medians, pictures = {}, []
    for task in TASKS:
        group = group_of(task, 4)
        some, every = (FastRenderer(group._source, (128, 128), "fine") for _ in range(2))
        every._tolerance = -1
        decibels: list[float] = []
        for number in range(min(2, group.model.ncam)):
            drawn = []
            for tool in (every, some):
                out = empty(4, 128, number)
                tool.render(range(4), [number], ("rgb",), out)
                drawn.append(out[number, "rgb"])
            error = np.abs(drawn[0].astype(int) - drawn[1])
            decibels += (
                10 * np.log10(255**2 / np.maximum((error**2).mean((1, 2, 3)), 1e-6))
            ).tolist()
            if task in SCENES:
                pictures += [
                    *(one[0] for one in drawn),
                    np.minimum(8 * error[0], 255).astype(np.uint8),
                ]
        medians[task] = float(np.median(decibels))
        print(f"{task:36s} median {medians[task]:.1f} dB, worst {min(decibels):.1f} dB")
        group.close()
    print(f"worst median of a task: {min(medians.values()):.1f} dB")
    if path:
        save_png(path, tile([np.kron(one, np.ones((3, 3, 1), np.uint8)) for one in pictures], 3))
        print(f"look at {path}")
    return medians


def sheet(path: Path) -> str:
    """Draw GL, fast and their difference (ten times) of some tasks into one PNG."""
    gl_renderer._set_quality = use_many_faces
    pictures = []
    for task in SCENES:
        group = group_of(task, 1)
        gl = GLRenderer(group._source, (192, 192), "lean")
        fast = FastRenderer(group._source, (192, 192), "lean")
        for camera in ("front", "wrist"):
            number = group.model.camera(camera).id
            drawn = []
            for tool in (gl, fast):
                out = empty(1, 192, number)
                tool.render([0], [number], ("rgb",), out)
                drawn.append(out[number, "rgb"][0])
            apart = np.abs(drawn[0].astype(int) - drawn[1]) * 10
            pictures += [*drawn, np.minimum(apart, 255).astype(np.uint8)]
        gl.close()
    save_png(path, tile(pictures, 6))
    print(f"look at {path}")
    return str(path)


def environments() -> list[dict[str, Any]]:
    """Whole environments with two cameras, against Gymnasium's workers that draw with GL."""
    from gymnasium.vector import AsyncVectorEnv

    answers = []
    cameras = {"cameras": ("front", "wrist"), "image_size": (128, 128)}
    for task in SCENES[:2]:
        options = {**cameras, **({"control": "delta_joint"} if task.startswith("panda") else {})}
        rates: dict[str, list[tuple[float, float]]] = {"fast": [], "async_gl": []}
        made: dict[str, Any] = {
            "fast": maniple.make_vec(task, 16, renderer="fast", **options),
            "async_gl": AsyncVectorEnv(
                [lambda t=task, o=options: maniple.make(t, renderer="mujoco", **o)] * 16
            ),
        }
        for _ in range(ROUNDS):
            for name, envs in made.items():
                rates[name].append(_rate(envs))
        for envs in made.values():
            envs.close()
        answers.append(_compare(task, rates))
    return answers


def _compare(task: str, rates: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """Print and return both ratios: of steps per second, and of CPU time per step."""
    wall = {name: float(np.median([rate for rate, _ in found])) for name, found in rates.items()}
    cpu = {name: min(spent for _, spent in found) for name, found in rates.items()}
    ratio, cpu_ratio = wall["fast"] / wall["async_gl"], cpu["async_gl"] / cpu["fast"]
    print(
        f"{task}: 16 rows, two 128 x 128 cameras: {wall['fast']:.0f} env-steps/s, "
        f"AsyncVectorEnv with GL {wall['async_gl']:.0f}: {ratio:.1f}x; CPU time per step "
        f"{cpu['fast']:.0f} and {cpu['async_gl']:.0f} us: {cpu_ratio:.1f}x"
    )
    return {"task": task, "ratio": ratio, "cpu_ratio": cpu_ratio, "rate": wall, "cpu_us": cpu}


def _rate(envs: Any, seconds: float = 2.0) -> tuple[float, float]:
    """Environment steps per second, and microseconds of CPU time per step, workers included."""
    envs.action_space.seed(0)
    envs.reset(seed=0)
    actions = [envs.action_space.sample() for _ in range(8)]
    steps, start, spent = 0, perf_counter(), _cpu_seconds()
    while perf_counter() - start < seconds:
        envs.step(actions[steps % 8])
        steps += 1
    count = steps * 16
    return count / (perf_counter() - start), 1e6 * (_cpu_seconds() - spent) / count


def _cpu_seconds() -> float:
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def plot(answers: list[dict[str, Any]], path: Path) -> None:
    """Draw microseconds per picture as bars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [one for one in answers if one.get("size") == 128]
    names = [f"{one['task'].split('/')[1].removesuffix('-v0')}\n{one['camera']}" for one in rows]
    figure, axes = pyplot.subplots(figsize=(9, 4))
    for k, (key, label) in enumerate(
        (("gl", "GL"), ("full", "fast"), ("kept", "fast, kept layer"))
    ):
        at = np.arange(len(rows)) + 0.27 * (k - 1)
        bars = axes.bar(at, [one["us"][key] for one in rows], 0.26, label=label)
        axes.bar_label(bars, fmt="%.0f", fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(rows)), names, fontsize=8)
    axes.set_ylabel("CPU microseconds per 128 x 128 picture")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"look at {path}")


if __name__ == "__main__":
    main()
