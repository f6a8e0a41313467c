"""Every flag changes what happens, not only what is parsed."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from maniple.core.errors import BadConfig
from maniple.run.ranks import Ranks
from maniple.world import probe as probes
from maniple.world.probe import Probe
from maniple.world.quality import HorizonQuality, Quality


def last(folder):
    return json.loads((folder / "episode_metrics.jsonl").read_text().splitlines()[-1])


def weights(folder, episode):
    """Everything that was learned, and where the gripper was, as bytes."""
    arrays = load_file(folder / f"checkpoint-{episode}/weights.safetensors")
    kinds = (".updater.model.", ".explorer.", ".coverage.")
    chosen = sorted(name for name in arrays if any(kind in name for kind in kinds))
    return b"".join(arrays[name].tobytes() for name in chosen)


def test_buffer_and_time_and_threads(inside, small, tmp_path):
    words = ["train", "wm", "1", "2", *small, "--num-episodes", "3"]
    inside(*words, "--buffer-frames", "30", "--torch-threads", "2", "--output-dir", tmp_path / "a")
    assert last(tmp_path / "a")["replay"] == 30 and torch.get_num_threads() == 2
    answer = inside(*words, "--max-minutes", "0", "--output-dir", tmp_path / "b", "--json").out
    assert json.loads(answer.strip().splitlines()[-1])["stopped_by"] == "minutes"
    told = inside(*words, "--device", "cuda", "--output-dir", tmp_path / "c", code=2).err
    assert "no CUDA GPU" in told or torch.cuda.is_available()


WAYS = {
    "student": {
        "algorithm": ["--algorithm", "ppo"], "horizon": ["--horizon", "2"],
        "samples": ["--samples", "12"], "action_cost": ["--action-cost", "50"],
        "disagreement": ["--disagreement", "0.001", "--action-cost", "1"],
        "novelty": ["--novelty", "0"],
    },
    "adversarial": {
        "replay_share": ["--replay-share", "0.9"], "prioritise": ["--no-prioritise"],
        "warm_up": ["--warm-up", "3"], "constraint": ["--constraint", "20"],
        "pool": ["--pool", "1"], "wander": ["--wander", "0"], "control": ["--seed", "3"],
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("phase", WAYS)
def test_settings_of_later_phases(inside, small, tmp_path, teacher_dir, phase):
    count = {
        "student": ["--num-episodes", "3", "--horizon", "4", "--samples", "8"],
        "adversarial": ["--total-iterations", "12", "--warm-up", "1", "--learning-rate", "0.02"],
    }[phase]
    words = ["train", phase, "1", "2", *small, "--teacher-path", teacher_dir, *count]
    episode = 3 if phase == "student" else 12
    found = {}
    for name, more in {"plain": [], **WAYS[phase], "again": []}.items():
        inside(*words, *more, "--output-dir", tmp_path / name)
        found[name] = weights(tmp_path / name, episode)
    assert found.pop("again") == found["plain"]
    same = [name for name in found if name != "plain" and found[name] == found["plain"]]
    assert not same


@pytest.mark.parametrize("name", ["memory_approach", "uncertainty", "raw_error"])
def test_weights_of_rewards_count(inside, small, tmp_path, teacher_dir, name):
    flag = f"--{name.replace('_', '-')}"
    words = ["train", "student", "1", "2", *small, "--teacher-path", teacher_dir, "--num-episodes"]
    words += ["1", "--algorithm", "ppo", "--disagreement", "0", "--action-cost", "0", flag, "2.0"]
    inside(*words, "--output-dir", tmp_path / "run")
    found = last(tmp_path / "run")
    assert found["reward/total"] == pytest.approx(2 * found[f"reward/{name}"], rel=1e-4)
    assert found["reward/total"] != 0


def test_memory_approach_needs_a_memory(inside, small, tmp_path):
    folder = tmp_path / "latent"
    inside("train", "wm", "1", "1", *small, "--num-episodes", "1", "--model", "latent",
           "--output-dir", folder)  # fmt: skip
    words = ["train", "student", "1", "1", *small, "--teacher-path", folder, "--num-episodes", "1"]
    words += ["--memory-approach", "1", "--output-dir", tmp_path / "s"]
    assert "mpc plans for disagreement; take --algorithm ppo" in inside(*words, code=2).err
    told = inside(*words, "--algorithm", "ppo", code=2)
    assert "memory_approach needs a teacher with a memory" in told.err


class Remembering:
    """An updater whose weights are one number."""

    def __init__(self):
        self.model, self.number, self.forgot = None, 0.0, 0

    def weights(self):
        return {"w": np.array([self.number])}

    def load_weights(self, weights):
        self.number = float(weights["w"][0])

    def forget_momentum(self):
        self.forgot += 1


@pytest.mark.parametrize(("guard", "rolled"), [(0.5, True), (3.0, False), (0.0, False)])
def test_the_guard_rolls_back(monkeypatch, guard, rolled):
    """A fall of two decibels is undone where the guard says half a decibel."""
    said = iter([10.0, 11.0, 9.0])
    make = lambda db: HorizonQuality(1, db, 0, 0, 0, db, 0, 0, 0)  # noqa: E731
    monkeypatch.setattr(
        probes, "measure", lambda *_: Quality([make(next(said))], float("nan"), 1, 0)
    )
    probe, updater = Probe(None, guard, Ranks()), Remembering()
    for number in (1.0, 2.0):
        updater.number = number
        assert not probe.look(updater)
    updater.number = 3.0
    assert probe.look(updater) is rolled
    assert updater.number == (2.0 if rolled else 3.0) and updater.forgot == int(rolled)
    assert probe.metrics()["probe/rollbacks"] == int(rolled)


@pytest.mark.parametrize(
    "word, made",
    [("environment.base=true", "--base"), ("--environment.base=False", "--no-base"),
     ("--no-base=false", "--base"), ("teacher.decoder=false", "--teacher.no-decoder"),
     ("training.seed=3", "--seed=3"), ("--renderer=true", "--renderer=true")],
)  # fmt: skip
def test_switches_may_have_a_value(word, made):
    from maniple.cli.train.phase import prepare

    assert prepare("train teacher", [word]) == [made]


def test_a_switch_in_a_file_is_true_or_false(tmp_path):
    from maniple.world.config import config_of

    assert config_of({"environment": {"base": True}}).environment.base is True
    with pytest.raises(BadConfig, match=r"environment.*base"):
        config_of({"environment": {"base": "false"}})


def test_bad_settings_are_told():
    from maniple.world.config import AdversarialConfig, EnvironmentConfig, TrainingConfig

    for make in (lambda: TrainingConfig(steps_per_episode=2, sequence_length=5),
                 lambda: TrainingConfig(mixed_precision="half"),
                 lambda: EnvironmentConfig(image_size=(60, 64)),
                 lambda: EnvironmentConfig(cameras=()),
                 lambda: EnvironmentConfig(perturb={"backgroud": 0.4}),
                 lambda: EnvironmentConfig(perturb={"light": -1.0}),
                 lambda: AdversarialConfig(replay_share=2.0)):  # fmt: skip
        with pytest.raises(BadConfig):
            make()


def test_worlds_differ_where_they_are_told_to(inside, small, tmp_path):
    """--perturb changes pictures of the teacher's episodes, and only there where it is given."""
    words = ["train", "wm", "1", "2", *small, "--num-episodes", "1"]
    found = {}
    for name, more in {"plain": [], "more": ["--perturb", "background", "0.4"]}.items():
        inside(*words, *more, "--output-dir", tmp_path / name)
        piece = min((tmp_path / name / "replay").rglob("*.safetensors"))
        found[name] = load_file(piece)["obs.front_rgb"]
    assert found["plain"].shape == found["more"].shape
    assert (found["plain"] != found["more"]).mean() > 0.2


def test_arms_and_base_are_driven_in_all_phases(inside, small, tmp_path):
    words = [*small, "--task", "PiperMobileRobot-v0", "--num-episodes", "1"]
    seen = ["--arms", "2", "--base", "--cameras", "overview", "--renderer", "fast"]
    inside("train", "wm", "1", "1", *words, *seen, "--output-dir", tmp_path / "wm")
    inside("train", "student", "1", "1", *words, "--teacher-path", tmp_path / "wm", "--horizon",
           "2", "--samples", "4", "--output-dir", tmp_path / "student")  # fmt: skip
    for phase in ("wm", "student"):
        piece = load_file(min((tmp_path / phase / "replay").rglob("*.safetensors")))
        assert piece["action"].shape[-1] == 16
        assert {"obs.state", "obs.right_pos", "obs.base_pose", "obs.overview_rgb"} <= set(piece)
    words += ["--no-base", "--teacher-path", tmp_path / "wm", "--output-dir", tmp_path / "other"]
    assert "overview" in inside("train", "student", "1", "1", *words, code=2).err


def test_rows_are_handed_over_at_a_step_of_their_own():
    from maniple.world.adapter import Relay

    class Always:
        def __init__(self, value):
            self.value, self.begun = value, 0

        def reset(self, rows):
            self.begun += 1

        def act(self, obs):
            return np.full((3, 2), self.value, np.float32)

    first, then = Always(1.0), Always(2.0)
    player = Relay(first, then, np.array([0.0, 1.5, 9.0]))
    for _ in range(2):
        player.reset(np.ones(3, np.bool_))
        acts = [player.act({})[:, 0].tolist() for _ in range(3)]
        assert acts == [[2, 1, 1], [2, 1, 1], [2, 2, 1]]
    assert first.begun == then.begun == 2


def test_a_noisy_player_keeps_rows_apart():
    from maniple.core.spec import ArraySpec
    from maniple.world.noise import NoisyPlayer, UniformNoise

    spec, rng = ArraySpec((3,), np.dtype(np.float32), -2.0, 2.0), np.random.default_rng(0)
    calm = UniformNoise(spec, 2, np.random.default_rng(1))
    noisy = NoisyPlayer(UniformNoise(spec, 2, np.random.default_rng(1)), spec,
                        np.array([0.0, 1.0]), rng)  # fmt: skip
    noisy.reset(np.ones(2, np.bool_))
    for _ in range(20):
        one, other = calm.act({}), noisy.act({})
        assert np.array_equal(one[0], other[0]) and not np.array_equal(one[1], other[1])
        assert np.abs(other).max() <= 2 and other.dtype == np.float32


@pytest.mark.parametrize("source", ["expert", "noisy_expert"])
def test_an_expert_of_one_arm_drives_no_base(inside, small, tmp_path, source):
    """A mix plays noise there; who asks for the expert is told."""
    words = ["train", "wm", "1", "1", *small, "--task", "mobile_piper/AppleInBowl-v0", "--base"]
    words += ["--source", source, "--output-dir", tmp_path]
    told = " ".join(inside(*words, code=2).err.split())
    assert "--arms nor --base" in told and "--source pink" in told
