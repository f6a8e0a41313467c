"""Pictures of tasks: one sheet of all, and a short animation of each, by its expert."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cli.out import make_folder, writing

SIZE = (150, 200)
GIF_FPS = 12
MOST_FRAMES = 90
REST_STEPS = 24
"""Steps that are shown of a task without an expert."""
SHEET = "tasks.png"


def draw_tasks(ids: Sequence[str], folder: Path, is_shown: bool) -> list[Path]:
    """Write the sheet and the animations; return the files."""
    from maniple.cli.progress import bar
    from maniple.data.gif import save_gif
    from maniple.data.video import save_png
    from maniple.report.contact_sheet import contact_sheet

    make_folder(folder, "--pictures")
    cards, files = {}, [folder / SHEET]
    with bar("pictures", len(ids), is_shown) as tick:
        for id in ids:
            frames = _play(id)
            cards[id] = [frames[2 * len(frames) // 3]]
            files.append(folder / f"{_file_name(id)}.gif")
            with writing(str(files[-1])):
                save_gif(files[-1], frames, GIF_FPS)
            if tick:
                tick(1)
    save_png(files[0], contact_sheet(cards, columns=5))
    return files


def _file_name(id: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in id)


def _play(id: str) -> list[NDArray[np.uint8]]:
    """Return pictures of one episode, evenly apart."""
    from maniple.registry import EXPERTS, make

    env = make(id, render_mode="rgb_array", **_sees_all(id))
    try:
        obs, _ = env.reset(seed=3)
        script = _script(id) if id in EXPERTS else None
        every = max(1, round(env.metadata["render_fps"] / GIF_FPS))
        frames, steps = [_picture(env)], 0
        while len(frames) < MOST_FRAMES:
            action = env.action_space.sample() * 0 if script is None else _act(script, obs)
            obs, _, terminated, truncated, _ = env.step(action)
            steps += 1
            is_over = terminated or truncated or (script is None and steps >= REST_STEPS)
            if steps % every == 0 or is_over:
                frames.append(_picture(env))
            if is_over:
                break
        return frames
    finally:
        env.close()


def _sees_all(id: str) -> dict[str, Any]:
    from maniple.envs.extended import is_extended
    from maniple.registry import find

    # An expert may look at more than the task shows by itself; it looks at no pictures.
    return {} if is_extended(find(id)) else {"observations": "all", "cameras": ()}


def _script(id: str) -> Any:
    from maniple.registry import expert

    return expert(id, 1)


def _act(script: Any, obs: Any) -> NDArray:
    return script.act({name: np.asarray(value)[None] for name, value in obs.items()})[0]


def _picture(env: Any) -> NDArray[np.uint8]:
    height, width = SIZE
    return env.render(width, height)
