from standin import Acting


class TaskEnvironment(Acting):
    def reset(self, demo=None):
        return self.begin()
