"""A classifier learns what success looks like, and can take the simulator's place."""

from __future__ import annotations

import numpy as np
import pytest

import maniple
from maniple.agents.classifier import Classifier, ClassifierConfig
from maniple.agents.eye import EyeConfig
from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.episode import Episode
from maniple.learn.reward import ClassifiedReward, teach

LAYOUT = Layout({"front_rgb": ArraySpec((24, 24, 3), np.dtype(np.uint8), 0, 255, "rgb")})
CONFIG = ClassifierConfig(eye=EyeConfig(width=8, features=16), hidden=16, lr=3e-3)


def episode(success: bool, seed: int, length: int = 8) -> Episode:
    """Grey noise; a green square appears in the last three frames of solved episodes."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(90, 120, (length + 1, 24, 24, 3)).astype(np.uint8)
    if success:
        y, x = rng.integers(2, 16, 2)
        frames[-3:, y : y + 6, x : x + 6] = (20, 220, 20)
    return Episode(
        {"front_rgb": frames}, np.zeros((length, 1), "f4"), np.zeros(length, "f4"),
        terminated=success, truncated=not success, success=success,
    )  # fmt: skip


def test_it_tells_success_in_pictures_it_never_saw():
    """Taught on some episodes, judged on others; and its weights can be stored."""
    classifier = Classifier(LAYOUT, CONFIG)
    teach(classifier, [episode(k % 2 == 0, k) for k in range(20)], updates=150)
    solved = np.stack([episode(True, 100 + k).obs["front_rgb"][-1] for k in range(40)])
    not_yet = np.stack([episode(True, 100 + k).obs["front_rgb"][0] for k in range(40)])
    assert (classifier.probability({"front_rgb": solved}) > 0.5).mean() > 0.9
    assert (classifier.probability({"front_rgb": not_yet}) < 0.5).mean() > 0.9
    twin = Classifier(LAYOUT, CONFIG, seed=5)
    twin.load_weights(classifier.weights())
    obs = {"front_rgb": solved}
    assert np.array_equal(twin.probability(obs), classifier.probability(obs))


def test_one_sided_data_is_refused():
    """Only failures teach nothing."""
    with pytest.raises(BadConfig, match="one is missing"):
        teach(Classifier(LAYOUT, CONFIG), [episode(False, 1)], 1)


class Sure:
    """Says yes for chosen rows."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def probability(self, obs) -> np.ndarray:
        found = np.zeros(3, np.float32)
        found[self.rows] = 1.0
        return found


def test_it_ends_episodes_and_they_begin_anew():
    """A row that is judged solved terminates with reward 1, and is reset in the next step."""
    envs = maniple.make_vec("so101/Reach-v0", 3)
    judge = Sure()
    judged = ClassifiedReward(envs, judge)  # type: ignore[arg-type]
    judged.reset(seed=[10_000, 10_001, 10_002])
    still = np.zeros((3, 4), np.float32)
    judged.step(still)
    judge.rows = [1]
    _, reward, terminated, truncated, _ = judged.step(still)
    assert reward.tolist() == [0, 1, 0] and terminated.tolist() == [False, True, False]
    judge.rows = []
    _, reward, terminated, truncated, _ = judged.step(still)
    assert not reward.any() and not terminated.any() and not truncated.any()
    assert envs.get_attr("elapsed_steps") == (3, 0, 3)
    assert envs.get_attr("episode")[1] == 1
    judged.close()
