"""What Gymnasium's own vector environments do with any environment, ours do too, bit for bit."""

import functools

import gymnasium
import numpy as np
import pytest
from conftest import same
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import maniple
from maniple.core.errors import BadConfig

MODES = pytest.mark.parametrize("mode", list(AutoresetMode))
ENGINES = pytest.mark.parametrize("engine", ["native", "serial", "process"])


class Nested(gymnasium.Env):
    """Nested observations, infos of every kind, episodes of different length."""

    observation_space = spaces.Dict(
        {
            "robot": spaces.Dict({"q": spaces.Box(-9, 9, (3,), np.float64)}),
            "pair": spaces.Tuple([spaces.Discrete(100), spaces.MultiBinary(3)]),
        }
    )
    action_space = spaces.MultiDiscrete([4, 5])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 6))
        return self.seen(), {"length": self.left}

    def seen(self):
        q = self.np_random.normal(size=3).clip(-9, 9)
        return {"robot": {"q": q}, "pair": (self.left, np.array([1, 0, 1], np.int8))}

    def step(self, action):
        self.left -= 1
        info = {"sum": int(action.sum()), "deep": {"half": self.left / 2}}
        if self.left % 2:
            info["odd"] = np.full(2, self.left)
        return self.seen(), float(action[0]), self.left == 0, False, info


def cart_pole():
    return gymnasium.make("CartPole-v1")


def run(envs, mode, steps=60):
    envs.action_space.seed(7)
    told = [envs.reset(seed=11)]
    for _ in range(steps):
        result = envs.step(envs.action_space.sample())
        told.append(result)
        ended = result[2] | result[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            told.append(envs.reset(options={"reset_mask": ended}))
    envs.close()
    return told


@MODES
@ENGINES
@pytest.mark.parametrize("maker", [cart_pole, Nested, lambda: gymnasium.make("Pendulum-v1")])
def test_equal_to_sync_vector_env(maker, engine, mode):
    """Observations, rewards, flags and batched infos, in all three modes of autoreset."""
    want = run(SyncVectorEnv([maker] * 3, autoreset_mode=mode), mode)
    mine = run(maniple.make_vec(maker, 3, engine=engine, autoreset_mode=mode), mode)
    for k, (a, b) in enumerate(zip(want, mine, strict=True)):
        assert same(a, b), f"call {k}"


@ENGINES
def test_spaces_are_batched_as_gymnasium_batches_them(engine, make_vec):
    envs, theirs = make_vec(Nested, 3, engine=engine), SyncVectorEnv([Nested] * 3)
    assert envs.observation_space == theirs.observation_space
    assert envs.action_space == theirs.action_space
    assert envs.single_observation_space == theirs.single_observation_space


@ENGINES
def test_attributes_of_foreign_environments(engine, make_vec):
    envs = make_vec(Nested, 3, engine=engine)
    envs.reset(seed=0)
    assert len(envs.get_attr("left")) == 3
    envs.set_attr("left", [5, 6, 7])
    assert envs.get_attr("left") == (5, 6, 7)
    assert envs.call("seen")[0]["pair"][0] == 5
    with pytest.raises(BadConfig, match="no attribute 'lefty'"):
        envs.get_attr("lefty")


def test_ids_functions_and_options(make_vec):
    envs = make_vec("Pendulum-v1", 2, engine="process", workers=1, g=1.0)
    envs.reset(seed=0)
    assert envs.get_attr("g") == (1.0, 1.0)
    with pytest.raises(BadConfig, match="neither"):
        maniple.make_vec(3)


def test_an_action_space_of_several_parts_is_refused():
    class Two(Nested):
        action_space = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(2)})

    with pytest.raises(BadConfig, match="2 parts"):
        maniple.make_vec(Two, 1, engine="native")


def test_views_into_the_slab(make_vec):
    envs = make_vec(cart_pole, 4, engine="process", workers=2, copy_obs=False)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    obs, *_ = envs.step(envs.action_space.sample())
    kept = obs.copy()
    after, *_ = envs.step(envs.action_space.sample())
    assert np.array_equal(obs, kept) and not np.shares_memory(obs, after)
    with pytest.raises(ValueError, match="read-only"):
        obs[0] = 1


def of(**spaces_of_env):
    """An environment with other spaces."""
    return type("Other", (Nested,), spaces_of_env)


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (of(action_space=spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2))), {}, "2 parts"),
        (of(action_space=spaces.Tuple([spaces.Discrete(2)] * 2)), {}, "2 parts"),
        (of(observation_space=spaces.Text(5)), {}, "Text space"),
        (of(observation_space=spaces.Sequence(spaces.Discrete(2))), {}, "Sequence space"),
        (of(observation_space=spaces.Graph(spaces.Discrete(2), None)), {}, "Graph space"),
        (of(observation_space=spaces.OneOf([spaces.Discrete(2)])), {}, "OneOf space"),
        ([Nested, Nested], {}, "neither a task's id nor a function"),
        (Nested, {"observation_mode": "different"}, "no option 'observation_mode'"),
        (Nested, {"shared_memory": True}, "no option 'shared_memory'"),
        (lambda size=3: Nested(), {"sise": 4}, "Did you mean size"),
    ],
)  # fmt: skip
def test_what_is_refused(make, options, says):
    """The table in docs/reference/vector-env.md."""
    with pytest.raises(BadConfig, match=says):
        maniple.make_vec(make, 2, **options)


WRAPPERS = {
    "RecordEpisodeStatistics": (), "DictInfoToList": (), "NormalizeReward": (),
    "FlattenObservation": (), "FilterObservation": (["tip_pos"],), "ClipAction": (),
    "RescaleAction": (-2.0, 2.0), "ClipReward": (-1.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPERS)
def test_gymnasiums_vector_wrappers_give_what_they_give_around_their_own(name, make_vec):
    def play(envs):
        envs = getattr(gymnasium.wrappers.vector, name)(envs, *WRAPPERS[name])
        envs.action_space.seed(3)
        found = [envs.reset(seed=4)[0]]
        for _ in range(8):
            found.append(envs.step(envs.action_space.sample())[:4])
        return found

    mine = play(make_vec("so101/Reach-v0", 3, max_episode_steps=5))
    single = gymnasium.make("so101/Reach-v0", max_episode_steps=5).spec
    theirs = play(SyncVectorEnv([lambda: gymnasium.make(single)] * 3))
    assert all(same(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_wrapped_function_takes_what_its_wrapper_takes(make_vec):
    @functools.wraps(Nested)
    def noisy(*args, noise=0.0, **options):
        return Nested(*args, **options)

    make_vec(noisy, 1, engine="serial", noise=0.1).reset(seed=0)
