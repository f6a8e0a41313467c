from enum import Enum

from standin import ArmMode


class RelativeFrame(Enum):
    WORLD = 0
    EE = 1


class ArmActionMode(ArmMode):
    pass


class JointVelocity(ArmActionMode):
    def action(self, scene, action):
        self.move_joints(scene, 0.05 * action)

    def action_shape(self, scene):
        return (7,)


class JointPosition(ArmActionMode):
    def __init__(self, absolute_mode=True):
        self.is_absolute = absolute_mode

    def action(self, scene, action):
        self.move_joints(scene, action)

    def action_shape(self, scene):
        return (7,)


class JointTorque(ArmActionMode):
    def action(self, scene, action):
        self.check_shape(scene, action)

    def action_shape(self, scene):
        return (7,)


class EndEffectorPoseViaPlanning(ArmActionMode):
    def __init__(self, absolute_mode=True, frame=RelativeFrame.WORLD, collision_checking=False):
        self.is_absolute = absolute_mode

    def action(self, scene, action):
        self.move_to(scene, action, is_planned=True)

    def action_shape(self, scene):
        return (7,)


class EndEffectorPoseViaIK(ArmActionMode):
    def __init__(self, absolute_mode=True, frame=RelativeFrame.WORLD, collision_checking=False):
        self.is_absolute = absolute_mode

    def action(self, scene, action):
        self.move_to(scene, action, is_planned=False)

    def action_shape(self, scene):
        return (7,)
