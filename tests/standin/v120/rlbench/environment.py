from standin import Stage

from rlbench.backend import exceptions
from rlbench.backend.observation import Observation
from rlbench.observation_config import ObservationConfig
from rlbench.task_environment import TaskEnvironment

_DEFAULT = ObservationConfig()


class Environment(Stage):
    def __init__(
        self, action_mode, dataset_root="", obs_config=_DEFAULT, headless=False,
        static_positions=False, robot_setup="panda", randomize_every=None, frequency=1,
        visual_randomization_config=None, dynamics_randomization_config=None,
        attach_grasped_objects=True, shaped_rewards=False, arm_max_velocity=1.0,
        arm_max_acceleration=4.0,
    ):  # fmt: skip
        self.keep(action_mode, obs_config, robot_setup, exceptions, Observation, TaskEnvironment)
