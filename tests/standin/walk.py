"""Hold the stand-in to the signatures of a contract; print what differs, as JSON.

Runs in a process of its own, since the package must not be imported by the tests' own.
"""

import importlib
import inspect
import json
import sys
from pathlib import Path


def main(path):
    faults = []
    for module, parts in json.loads(Path(path).read_text()).items():
        found = importlib.import_module(module)
        for name, parameters in parts["functions"].items():
            faults += differ(f"{module}.{name}", getattr(found, name, None), parameters)
        for name, told in parts["classes"].items():
            kind = getattr(found, name, None)
            if kind is None:
                faults.append(f"{module}.{name} is missing")
                continue
            if told["bases"] == ["Exception"] and not issubclass(kind, Exception):
                faults.append(f"{module}.{name} is no exception")
            for member in told.get("members", ()):
                if not hasattr(kind, member):
                    faults.append(f"{module}.{name}.{member} is missing")
            for method, parameters in told["methods"].items():
                where = f"{module}.{name}.{method}"
                faults += differ(where, inspect.getattr_static(kind, method, None), parameters)
    print(json.dumps(faults))


def differ(where, found, parameters):
    if found is None:
        return [f"{where} is missing"]
    if isinstance(found, property):
        found = found.fget
    said = [(name, default is not None) for name, default in parameters]
    has = [
        (p.name, p.default is not inspect.Parameter.empty)
        for p in inspect.signature(found).parameters.values()
    ]
    if has != said:
        return [f"{where}{has} instead of {said}"]
    plain = ("True", "False", "''", "'panda'", "'world'", "0", "1", "1.0", "4.0", "(128, 128)")
    defaults = {p.name: repr(p.default) for p in inspect.signature(found).parameters.values()}
    return [
        f"{where}: {name}={defaults[name]} instead of {default}"
        for name, default in parameters
        if default in plain and defaults[name] != default
    ]


main(sys.argv[1])
