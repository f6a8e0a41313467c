from standin import TaskClass


class InvalidTaskName(Exception):
    pass


def name_to_task_class(task_file):
    if task_file != task_file.lower():
        raise InvalidTaskName(f"The task name '{task_file}' is not valid.")
    return TaskClass(task_file)
