"""A private home for every CoppeliaSim, so that their settings do not collide."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_NAME = f"maniple-coppelia-{os.getuid()}"


class Home:
    """Folders for HOME and XDG_RUNTIME_DIR that belong to this process alone.

    What processes that were killed have left behind is removed by the next one that starts.
    """

    def __init__(self, folder: Path | None = None) -> None:
        base = (folder or Path(tempfile.gettempdir())) / _NAME
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        if base.stat().st_uid != os.getuid():
            # Somebody else took the name; they must not be able to write into our home.
            base = Path(tempfile.mkdtemp(prefix=_NAME))
        _sweep(base)
        self.path = base / str(os.getpid())
        shutil.rmtree(self.path, ignore_errors=True)
        for path in (self.path, self.path / "home", self.path / "run"):
            path.mkdir(mode=0o700)

    def variables(self) -> dict[str, str]:
        """Return what to set; an X cookie of the real home stays in reach."""
        found = {
            "HOME": str(self.path / "home"),
            "XDG_RUNTIME_DIR": str(self.path / "run"),
        }
        cookie = Path.home() / ".Xauthority"
        if "XAUTHORITY" not in os.environ and cookie.is_file():
            found["XAUTHORITY"] = str(cookie)
        return found

    def close(self) -> None:
        """Remove the folders."""
        shutil.rmtree(self.path, ignore_errors=True)


def _sweep(base: Path) -> None:
    for path in base.iterdir():
        if path.name.isdigit() and not Path(f"/proc/{path.name}").exists():
            with contextlib.suppress(OSError):
                shutil.rmtree(path)
