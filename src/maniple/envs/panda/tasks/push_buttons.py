"""PushButtons: press up to three buttons in the given order."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.button import PRESSED_M, TOP_M, add_button, depth_m
from maniple.envs.panda.expert import SHUT, Waypoint, over, script
from maniple.envs.panda.placement import lying, scatter
from maniple.envs.panda.table import PandaTask
from maniple.envs.panda.tasks.push_button import BUTTON_COLOURS, NUMBERS
from maniple.sim.state import State
from maniple.sim.userdata import add_note

BUTTONS = ("button0", "button1", "button2")
MOST, VARIATIONS = 3, 50
_ALL = list(itertools.permutations(range(len(BUTTON_COLOURS)), 3))
# Spread over all of them, so that every variation has another sentence.
TRIPLES = _ALL[:: len(_ALL) // (VARIATIONS // MOST + 1)][: VARIATIONS // MOST + 1]


class PushButtons(PandaTask):
    """Push the named buttons in order."""

    variations = VARIATIONS
    corners = ((-0.258, -0.339), (0.258, 0.339))
    reached = ((-0.15, 0, 0.3), (0.15, 0, 0.3), (0, 0.15, 0.3), (0, -0.15, 0.3))
    bodies = BUTTONS
    joints = tuple(f"{name}_joint" for name in BUTTONS)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        first, *then = [BUTTON_COLOURS[c] for c in TRIPLES[variation // MOST]][
            : 1 + variation % MOST
        ]
        return [
            f"push the {first} button" + "".join(f", then push the {c} button" for c in then),
            f"press the {first} button" + "".join(f", then press the {c} button" for c in then),
            f"push down the button with the {first} base"
            + "".join(f", then the {c} one" for c in then),
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add three buttons, and a note of how many were pressed in order."""
        for name in BUTTONS:
            add_button(spec, name)
        add_note(spec, "pressed")

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Scatter the buttons."""
        spots = scatter(rng, base, 3, (-0.2, -0.28), (0.2, 0.28), 0.15)
        colours = NUMBERS[np.array(TRIPLES)[variation // MOST]]
        places = {}
        for k, name in enumerate(BUTTONS):
            places[name] = lying(base, spots[:, k], 0.0)
            places[f"paint.{name}"] = colours[:, k]
        return places

    def after_step(self, s: State, active: NDArray[np.bool_] | None) -> None:
        """Count a button that is pressed when it is its turn."""
        pressed = s.note("pressed")
        depth = np.stack([depth_m(s, name) for name in BUTTONS])
        turn = np.minimum(pressed, MOST - 1).astype(np.intp)
        is_down = (depth[turn, np.arange(s.rows)] > PRESSED_M) & (pressed < MOST)
        if active is not None:
            is_down &= active
        pressed += is_down

    def aim(self, s: State) -> NDArray:
        """The next button."""
        turn = np.minimum(s.note("pressed"), MOST - 1).astype(np.intp)
        spots = np.stack([s.pos(name) for name in BUTTONS])
        return spots[turn, np.arange(s.rows)] + [0.0, 0.0, TOP_M]

    def progress(self, s: State) -> NDArray:
        """Buttons that are done."""
        return s.note("pressed") / (1 + s.note("variation") % MOST)

    def success(self, s: State) -> NDArray[np.bool_]:
        """All of them, in order."""
        return s.note("pressed") >= 1 + s.note("variation") % MOST


_STEPS = [
    [
        Waypoint(over(name, (0, 0, 0.09)), SHUT, tolerance_m=0.012),
        Waypoint(over(name, (0, 0, 0.015)), SHUT, tolerance_m=0.008, step_m=0.025, patience=9),
        Waypoint(over(name, (0, 0, 0.09)), SHUT, tolerance_m=0.02),
    ]
    for name in BUTTONS
]
expert = script(PushButtons, *_STEPS)
