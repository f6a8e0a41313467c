import numpy as np


class ActionMode:
    def __init__(self, arm_action_mode, gripper_action_mode):
        self.arm_action_mode, self.gripper_action_mode = arm_action_mode, gripper_action_mode

    def action(self, scene, action):
        raise NotImplementedError

    def action_shape(self, scene):
        raise NotImplementedError


class MoveArmThenGripper(ActionMode):
    """Takes one number more than it says: whether to ignore collisions."""

    def action(self, scene, action):
        size = int(np.prod(self.arm_action_mode.action_shape(scene)))
        if len(action) != size + 2:
            raise scene.exceptions.InvalidActionError(f"{len(action)} numbers, not {size + 2}")
        self.arm_action_mode.action(scene, action[:size])
        self.gripper_action_mode.action(scene, action[size : size + 1])

    def action_shape(self, scene):
        return (self.arm_action_mode.action_shape(scene)[0] + 1,)
