"""Run maniple where torch is not installed."""

import subprocess
import sys

_CODE = """
import sys
class No:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, No())
from maniple.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def maniple_without_torch(*words):
    """Return what a command printed and how it ended."""
    command = [sys.executable, "-c", _CODE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
