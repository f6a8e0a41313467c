from standin import CameraConfig as CameraConfig
from standin import Configured


class ObservationConfig(Configured):
    def __init__(
        self,
        left_shoulder_camera=None,
        right_shoulder_camera=None,
        overhead_camera=None,
        wrist_camera=None,
        front_camera=None,
        joint_velocities=True,
        joint_velocities_noise=None,
        joint_positions=True,
        joint_positions_noise=None,
        joint_forces=True,
        joint_forces_noise=None,
        gripper_open=True,
        gripper_pose=True,
        gripper_matrix=False,
        gripper_joint_positions=False,
        gripper_touch_forces=False,
        wrist_camera_matrix=False,
        record_gripper_closing=False,
        task_low_dim_state=False,
    ):
        self.keep(dict(locals()))
