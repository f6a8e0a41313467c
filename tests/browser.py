"""Drive a page in headless Chromium over its DevTools socket: real clicks, real keys."""

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-quic", "--remote-debugging-port=0")  # fmt: skip
FIND = """(() => {
  const seen = [...document.querySelectorAll('button, [role=tab], label, input, p, span, div')]
    .filter(e => e.innerText && e.innerText.trim().startsWith(%s) && e.offsetParent !== null);
  if (!seen.length) return null;
  const e = seen.sort((a, b) => a.innerText.length - b.innerText.length)[0];
  e.scrollIntoView({block: 'center'});
  const r = e.getBoundingClientRect();
  return [r.x + r.width / 2, r.y + r.height / 2];
})()"""

BOXES = """[...document.querySelectorAll('input[type=checkbox]')].map(e => {
  const r = e.getBoundingClientRect();
  return [r.x + r.width / 2, r.y + r.height / 2];
})"""


class Browser:
    """One tab of a headless Chromium."""

    def __init__(self, url: str, folder: Path, size: tuple[int, int] = (1280, 800)) -> None:
        from websockets.sync.client import connect

        profile = folder / "profile"
        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={profile}",
             url], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = wait(lambda: (profile / "DevToolsActivePort").read_text().split()[0])
            tabs = f"http://127.0.0.1:{port}/json"
            address = wait(
                lambda: next(
                    tab["webSocketDebuggerUrl"]
                    for tab in json.load(urlopen(tabs))
                    if tab["type"] == "page"
                )
            )
            self._socket = connect(address, max_size=None, open_timeout=30)
        except BaseException:
            self.close()
            raise
        self._numbers = itertools.count(1)

    def call(self, method: str, **parameters):
        """Send one DevTools command and return its result."""
        number = next(self._numbers)
        text = json.dumps({"id": number, "method": method, "params": parameters})
        self._socket.send(text)
        while True:
            answer = json.loads(self._socket.recv(timeout=60))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def evaluate(self, code: str):
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True)
        return found["result"].get("value")

    def find(self, text: str):
        """Return where the smallest element is whose text begins so."""
        at = self.evaluate(FIND % json.dumps(text))
        if at is None:
            raise ValueError(f"nothing on the page says {text!r}")
        return at

    def click(self, text: str, hold_s: float = 0.0) -> None:
        """Press the mouse on a text, and let go."""
        x, y = wait(lambda: self.find(text))
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        time.sleep(hold_s)
        self.mouse("mouseReleased", x, y)

    def check(self, text: str) -> None:
        """Click the checkbox that stands beside a text."""
        _, y = wait(lambda: self.find(text))
        boxes = self.evaluate(BOXES)
        at = min(boxes, key=lambda box: abs(box[1] - y))
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, *at)

    def click_view(self) -> None:
        """Click into the 3D view, so that no field of the panel has the keys."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, 500, 600)

    def mouse(self, kind: str, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, letter: str, repeat: bool = False) -> None:
        """Send what a keyboard sends: down (again while it is held)."""
        is_space = letter == " "
        code = "Space" if is_space else f"Key{letter.upper()}"
        number = 32 if is_space else ord(letter.upper())
        self.call("Input.dispatchKeyEvent", type="keyDown", key=letter, code=code, text=letter,
                  windowsVirtualKeyCode=number, autoRepeat=repeat)  # fmt: skip

    def key_up(self, letter: str) -> None:
        code = "Space" if letter == " " else f"Key{letter.upper()}"
        self.call("Input.dispatchKeyEvent", type="keyUp", key=letter, code=code)

    def tap(self, letter: str) -> None:
        """Press a key, and let go."""
        self.key(letter)
        self.key_up(letter)

    def text(self) -> str:
        """Return everything that the page says."""
        return self.evaluate("document.body.innerText") or ""

    def screenshot(self, path: Path) -> Path:
        """Keep what the page looks like."""
        png = base64.b64decode(self.call("Page.captureScreenshot")["data"])
        path.write_bytes(png)
        return path

    def close(self) -> None:
        if hasattr(self, "_socket"):
            with contextlib.suppress(Exception):
                self._socket.close()
        self._process.terminate()
        self._process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def wait(what, seconds=40):
    """Try again until it works."""
    until = time.monotonic() + seconds
    while True:
        try:
            return what()
        except (OSError, ValueError, StopIteration):
            if time.monotonic() > until:
                raise
            time.sleep(0.3)
