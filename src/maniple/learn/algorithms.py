"""The table of algorithms: to add one is a row here and a file in agents/."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PIXELS: dict[str, Any] = {
    # Two cameras: how far away a small ball is cannot be seen with one. The arm never hides it from
    # the wrist's; from above, near its goal, it does so in four steps of ten.
    "env": {"cameras": ("front", "wrist"), "image_size": (64, 64)},
}
STEADY: dict[str, Any] = {
    "lr": 5e-4, "discount": 0.97, "tau": 0.005, "temperature": 0.05, "layer_norm": True,
}  # fmt: skip
"""For tasks in which an object has to be found and moved: slower, steadier learning."""
OBJECT_TASKS = ("so101/PushCube-v0", "so101/LiftCube-v0", "so101/StackCubes-v0")
SHOWN: dict[str, Any] = {
    "demos": 100,
    "n_step": 3,
    "max_steps": 150_000,
    "eval_period": 10_000,
    "agent": {"discount": 0.97, "temperature": 0.02, "layer_norm": True, "relative": True,
              "imitation": 1.0},
}  # fmt: skip
"""For tasks that chance never solves: the expert's demonstrations lead the way."""
TURNING = ("OpenDrawer", "CloseBox", "PressSwitch", "OpenBox", "TurnTap", "OpenMicrowave",
           "ToiletSeatDown", "PutItemInDrawer", "LightBulbIn", "CloseJar", "PutMoneyInSafe",
           "PlaceWineAtRackLocation", "SweepToDustpanOfSize", "ReachAndDrag",
           "MeatOffGrill")  # fmt: skip
"""Tasks that need a turned gripper: without turning it, their experts fail a fifth or more."""
PANDA: dict[str, dict[str, Any]] = {
    # Poses that are drawn at random are mostly out of reach: steps of the tip are not.
    "panda/*": {"env": {"control": "delta_position"}},
    **{f"panda/{name}-v0": {"env": {"control": "delta_ee"}} for name in TURNING},
}


@dataclass(frozen=True)
class Algorithm:
    """Where an algorithm is, and the settings that are known to work with it."""

    about: str
    """What 'maniple train' says of it."""
    agent: str
    config: str
    loop: str = "maniple.learn.loop:train"
    """What trains it in one process."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What a run begins with, by the names of the flags."""
    on_rlbench: dict[str, Any] = field(default_factory=dict)
    """Settings of the environment on the real RLBench."""
    by_task: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The same on top for tasks whose id fits a pattern, as in 'panda/*'."""
    acts_as_shown: bool = False
    """Nothing but recorded demonstrations says how it acts, where a run has them."""


ALGORITHMS: dict[str, Algorithm] = {
    "sac": Algorithm(
        "Learn a task from the simulator's state.",
        agent="maniple.agents.sac:SAC",
        config="maniple.agents.sac:SACConfig",
        on_rlbench={"control": "delta_position"},
        by_task={
            "so101/LiftCube-v0": {"agent": STEADY, "eval_period": 10_000},
            "so101/PushCube-v0": SHOWN,
            "so101/StackCubes-v0": SHOWN,
            **{tasks: SHOWN | row for tasks, row in PANDA.items()},
            # Its contacts cost twice as much: no more than ten minutes of a core here, too.
            "panda/TakeLidOffSaucepan-v0": {"max_steps": 90_000},
        },
    ),
    "drq": Algorithm(
        "Learn a task from pictures.",
        agent="maniple.agents.drq:DrQ",
        config="maniple.agents.drq:DrQConfig",
        on_rlbench={"control": "delta_position"},
        settings={
            **PIXELS,
            "num_envs": 8,
            "batch_size": 96,
            "steps_per_update": 4,
            "replay_buffer_capacity": 100_000,
            "eval_period": 4_000,
            "demos": 20,
            # A pixel is seven millimetres here: larger shifts would hide where things are.
            "agent": {"asymmetric": True, "actor_every": 1, "shift": 1},
        },
        by_task={
            **{key: {"agent": STEADY} for key in OBJECT_TASKS},
            **PANDA,
            # The camera that its users know looks from the mast; a small banana wants the wrist's.
            "PiperMobileRobot-v0": {"agent": STEADY, "env": {"cameras": ("3rd", "wrist")}},
            "*piper/*InBowl-v0": {"agent": STEADY},
        },
    ),
    "bc": Algorithm(
        "Imitate demonstrations.",
        agent="maniple.agents.bc:BC",
        config="maniple.agents.bc:BCConfig",
        loop="maniple.learn.imitation:train",
        settings={
            "demos": 50,
            # There is no environment: the length is a number of updates.
            "max_steps": None,
            "max_updates": 3_000,
            "log_period": 200,
            "eval_period": 0,
            "eval_n_trajs": 100,
            "checkpoint_period": 1_000,
        },
        acts_as_shown=True,
        # Steps of the tip, seen from the tip: poses of the table are hardly learned by imitation.
        by_task={tasks: row | {"agent": {"relative": True}} for tasks, row in PANDA.items()},
    ),
}
