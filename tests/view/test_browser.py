"""The page in a real browser: clicks, keys, and a person who solves tasks with them."""

import threading
import time

import numpy as np
import pytest
from browser import CHROMIUM, Browser, wait

pytest.importorskip("viser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing: apt-get install chromium"),
]


@pytest.fixture
def opened(tmp_path):
    """Open the page of a task and a browser on it; the page runs on a thread."""
    from maniple.view.live import open_live
    from maniple.view.server import PageServer
    from maniple.view.subject import Subject

    ends = []

    def open_task(task, acting, rows=1):
        live = open_live(
            Subject("task", task), rows, {}, 0, lambda: PageServer(port=0), tmp_path / "runs",
            tmp_path / "recorded", acting,
        )  # fmt: skip
        is_over = threading.Event()
        thread = threading.Thread(target=live.page.run, args=(lambda: not is_over.is_set(),))
        thread.start()
        ends.append(lambda: (is_over.set(), thread.join(), live.close()))
        browser = Browser(live.page.server.url, tmp_path, (1100, 750))
        ends.append(browser.close)
        wait(lambda: browser.find("Pause"))
        return live.page, browser

    yield open_task
    for end in reversed(ends):
        end()


def until(is_so, what, seconds=20):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not after {seconds} s: {what}"
        time.sleep(0.05)


def test_clicks(opened, tmp_path):
    """Every button of the tab Play does what it says."""
    page, browser = opened("so101/Reach-v0", "still", rows=2)
    session = page.session
    browser.click("Pause")
    until(lambda: session.is_paused, "paused")
    wait(lambda: browser.find("Go on"))
    before = session.totals.steps
    browser.click("Step")
    until(lambda: session.totals.steps == before + 1, "one step")
    seed = session.seed
    browser.click("Reset")
    until(lambda: session.seed != seed and session.totals.steps == 0, "a new episode")
    browser.tap("p")
    until(lambda: not session.is_paused, "the hotkey")
    browser.click("Drive")
    browser.click("Up (U)", hold_s=0.5)
    until(lambda: session.is_driven, "the pad takes over")
    browser.click("Give back")
    until(lambda: not session.is_driven, "given back")
    assert "Touch the red ball" in browser.text()
    browser.screenshot(tmp_path / "page.png")


KEYS = {(0, 1): "i", (0, -1): "k", (1, 1): "j", (1, -1): "l", (2, 1): "u", (2, -1): "o"}


class Driver:
    """A person who looks at the arm and taps keys; sees what the page's session sees."""

    def __init__(self, page, browser):
        self.page, self.browser = page, browser

    def seen(self, name):
        return np.array(self.page.session.obs[name][0][:3], float)

    def go(self, goal, near_m=0.008, seconds=60, axes=(0, 1, 2)):
        """Tap towards a goal, one axis after the other, until near it or solved."""
        end = time.monotonic() + seconds
        episode = self.page.session.seed
        while self.page.session.seed == episode:
            far = goal() - self.seen("tip_pos")
            far[[a for a in range(3) if a not in axes]] = 0.0
            axis = int(np.argmax(np.abs(far)))
            if abs(far[axis]) < near_m:
                return
            assert time.monotonic() < end, f"still {far} away"
            key = KEYS[axis, 1 if far[axis] > 0 else -1]
            self.browser.key(key)
            # Far away a key is held: it repeats, as a keyboard does.
            for _ in range(int(abs(far[axis]) / 0.02)):
                time.sleep(0.033)
                self.browser.key(key, repeat=True)
            self.browser.key_up(key)
            time.sleep(0.14)


def test_a_person_reaches(opened):
    page, browser = opened("so101/Reach-v0", "still")
    driver = Driver(page, browser)
    for _ in range(3):
        before = page.session.solved
        driver.go(lambda: driver.seen("target_pos"), near_m=0.004)
        until(lambda n=before: page.session.solved > n, "solved", 10)
    answer = page.latency_ms()
    print(f"Reach: {answer}")
    assert answer["keys"] > 20


def lift(driver):
    """Go above the cube, down to it, shut the gripper, and up."""
    cube, above = lambda: driver.seen("cube_pose"), np.array([-0.002, 0.0, 0.05])
    driver.go(lambda: cube() + above, near_m=0.005)
    driver.go(lambda: cube() + above, near_m=0.004, axes=(0, 1))
    driver.go(lambda: cube() + [-0.002, 0, 0], near_m=0.004)
    driver.browser.tap("h")
    until(lambda: not driver.page.session.keys.is_open, "the gripper shuts")
    time.sleep(1.0)
    seed = driver.page.session.seed
    driver.go(lambda: driver.seen("tip_pos") * [1, 1, 0] + [0, 0, 0.16], near_m=0.01, axes=(2,))
    end = time.monotonic() + 5
    while driver.page.session.seed == seed and time.monotonic() < end:
        time.sleep(0.05)


def test_a_person_lifts_and_records(opened, tmp_path):
    """Grasp and lift the cube with keys; the episode is in the dataset, marked step by step."""
    from maniple.data.lerobot.read import Dataset

    page, browser = opened("so101/LiftCube-v0", "still")
    driver = Driver(page, browser)
    browser.click("Drive")
    browser.check("Keep failures too")
    browser.click("Record episodes")
    browser.click_view()
    until(lambda: page.pad.is_recording, "recording")
    for _ in range(3):
        lift(driver)
        if page.session.solved:
            break
        # The cube has slipped, as it does to people.
        browser.click("Discard episode")
        time.sleep(0.5)
    assert page.session.solved == 1
    until(lambda: page.pad.recording.kept == 1, "kept", 20)
    wait(lambda: browser.find("Recording: 1 episodes are safe"))
    answer = page.latency_ms()
    print(f"LiftCube: {answer}")
    (episode,) = Dataset(tmp_path / "recorded")
    assert episode.success and episode.intervention.any() and not episode.intervention.all()
    assert answer["keys"] > 20


def test_a_visitor_who_leaves_gives_back(opened):
    page, browser = opened("so101/Reach-v0", "still")
    browser.tap("i")
    until(lambda: page.session.is_driven, "driving")
    browser.close()
    until(lambda: not page.session.is_driven, "given back")
