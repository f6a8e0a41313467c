class BoundaryError(Exception):
    pass


class WaypointError(Exception):
    def __init__(self, message, task):
        super().__init__(message)


class InvalidActionError(Exception):
    pass


class TaskEnvironmentError(Exception):
    pass
