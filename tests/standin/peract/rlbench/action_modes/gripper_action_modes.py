class Discrete:
    def __init__(self, attach_grasped_objects=True, detach_before_open=True):
        self.attach_grasped_objects = attach_grasped_objects

    def action(self, scene, action):
        scene.open = 1.0 if action[0] > 0.5 else 0.0

    def action_shape(self, scene):
        return (1,)
