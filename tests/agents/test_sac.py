"""The agent computes what soft actor-critic says, and goes on exactly where it stopped."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from maniple.agents.augment import random_shift, random_shift_on_device
from maniple.agents.drq import DrQ, DrQConfig
from maniple.agents.eye import Eye, EyeConfig
from maniple.agents.nets import Ensemble, Policy
from maniple.agents.sac import SAC, SACConfig, Shown
from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions

LAYOUT = Layout({"a": ArraySpec((3,)), "b": ArraySpec((2,))})
ACTION = ArraySpec((2,), np.dtype(np.float32), np.array([-1.0, 0.0]), np.array([1.0, 4.0]))


def batch(rows: int = 32, seed: int = 0) -> Transitions:
    """Random transitions."""
    rng = np.random.default_rng(seed)
    obs = lambda: {n: rng.standard_normal((rows, *s.shape)).astype("f4") for n, s in LAYOUT.items()}  # noqa: E731
    low, high = ACTION.bounds()
    action = rng.uniform(low, high, (rows, 2)).astype(np.float32)
    discount = np.where(rng.random(rows) < 0.1, 0.0, 0.9).astype(np.float32)
    return Transitions(obs(), action, rng.standard_normal(rows).astype("f4"), discount, obs())


@pytest.mark.parametrize("norm", [False, True])
def test_ensemble_is_its_members_one_by_one(norm):
    """The batched product equals a loop over plain layers."""
    torch.manual_seed(0)
    nets = Ensemble(3, 5, (7, 6), norm)
    x = torch.randn(11, 5)
    together = nets(x)
    for member in range(3):
        y = x
        for k in range(3):
            y = y @ nets.weights[k][member] + nets.biases[k][member]
            if k < 2:
                y = torch.relu(torch.nn.functional.layer_norm(y, y.shape[-1:]) if norm else y)
        assert torch.allclose(together[member], y[:, 0], atol=1e-5)


def test_densities_are_those_of_a_squashed_gaussian():
    """Compared with torch's own distributions."""
    torch.manual_seed(0)
    policy = Policy(4, (8,), 3, norm=False)
    x, noise = torch.randn(50, 4), torch.randn(50, 3)
    action, density = policy.sample(x, noise)
    mean, log_std = policy(x)
    oracle = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean, log_std.exp()), torch.distributions.TanhTransform()
    )
    assert torch.allclose(density, oracle.log_prob(action).sum(-1), atol=1e-3)
    assert torch.allclose(policy.log_prob(x, action), density, atol=1e-2)


def test_actions_fill_the_bounds():
    """Drawn actions are within the environment's bounds, not the network's."""
    agent = SAC(LAYOUT, ACTION, SACConfig(), seed=1)
    actions = agent.act(batch(4000).obs)
    low, high = ACTION.bounds()
    assert (actions >= low).all() and (actions <= high).all()
    assert actions[:, 1].max() > 3.5 and actions[:, 1].min() < 0.5
    assert np.allclose(agent.range.to_env(agent.range.from_env(actions)), actions, atol=1e-5)


def test_critics_learn_the_reward_where_nothing_follows():
    """With a discount of 0 the value of an action is its reward."""
    agent = SAC(LAYOUT, ACTION, SACConfig(hidden=(64, 64)))
    data = batch(64)._replace(discount=np.zeros(64, np.float32))
    first = agent.update(data)["critic_loss"]
    for _ in range(400):
        last = agent.update(data)["critic_loss"]
    assert last < 0.05 * first


def test_termination_hides_the_future_and_truncation_does_not():
    """What is seen after a terminal step has no influence on the target."""
    agent = SAC(LAYOUT, ACTION, SACConfig())
    data = batch(8)
    obs = {n: torch.from_numpy(a) for n, a in data.next_obs.items()}
    other = {n: a + 5.0 for n, a in obs.items()}
    reward = torch.from_numpy(data.reward)
    with torch.no_grad():
        ended = [agent._goal(reward, torch.zeros(8), o) for o in (obs, other)]
        going = [agent._goal(reward, torch.full((8,), 0.9), o) for o in (obs, other)]
    assert torch.equal(ended[0], ended[1]) and torch.equal(ended[0], reward)
    assert not torch.equal(going[0], going[1])


@pytest.mark.parametrize(
    "config", [SACConfig(), SACConfig(critics=5, layer_norm=True, grad_clip=1.0, actor_every=2)]
)
def test_stored_and_restored_it_goes_on_bit_for_bit(config):
    """Weights, moments, temperature, counters and draws all come back."""
    one = SAC(LAYOUT, ACTION, config, seed=3)
    one.calibrate(batch(100).obs)
    for k in range(5):
        one.update(batch(seed=k))
    two = SAC(LAYOUT, ACTION, config, seed=99)
    two.load_state(one.state())
    for k in range(5):
        assert one.update(batch(seed=k)) == two.update(batch(seed=k))
    assert np.array_equal(one.act(batch().obs), two.act(batch().obs))


def test_inputs_are_brought_to_one_scale():
    """Numbers of any size look alike to the networks."""
    agent = SAC(LAYOUT, ACTION, SACConfig())
    obs = {n: a * 1000 + 300 for n, a in batch(5000).obs.items()}
    agent.calibrate(obs)
    seen = agent.actor_eye({n: torch.from_numpy(a) for n, a in obs.items()})
    assert seen.mean(0).abs().max() < 0.01
    assert (seen.std(0) - 1).abs().max() < 0.01


def test_weights_of_another_agent_are_refused():
    """Neither missing, nor stray, nor misshapen weights are loaded in silence."""
    agent = SAC(LAYOUT, ACTION, SACConfig())
    wider = SAC(LAYOUT, ACTION, SACConfig(hidden=(64, 64))).weights()
    with pytest.raises(BadConfig, match="have shape"):
        agent.load_weights(wider)
    some = dict(list(agent.weights().items())[1:])
    with pytest.raises(BadConfig, match="lack"):
        agent.load_weights(some)
    with pytest.raises(BadConfig, match="does not have"):
        agent.load_weights(agent.weights() | {"policy.more": np.zeros(1)})


def test_bad_settings_are_named():
    """Before anything is trained."""
    with pytest.raises(BadConfig, match="critics_used is 3"):
        SACConfig(critics=2, critics_used=3)
    with pytest.raises(BadConfig, match="bounded"):
        SAC(LAYOUT, ArraySpec((2,)), SACConfig())


PICTURES = Layout(
    {"front_rgb": ArraySpec((32, 32, 3), np.dtype(np.uint8), 0, 255, "rgb"), "own": ArraySpec((4,)),
     "truth": ArraySpec((2,))}
)  # fmt: skip


def pictures(rows: int, seed: int = 0) -> Transitions:
    """Random transitions with pictures."""
    rng = np.random.default_rng(seed)

    def obs() -> dict:
        return {
            "front_rgb": rng.integers(0, 255, (rows, 32, 32, 3)).astype(np.uint8),
            "own": rng.standard_normal((rows, 4)).astype("f4"),
            "truth": rng.standard_normal((rows, 2)).astype("f4"),
        }

    action = rng.uniform(*ACTION.bounds(), (rows, 2)).astype(np.float32)
    reward = rng.standard_normal(rows).astype("f4")
    return Transitions(obs(), action, reward, np.full(rows, 0.9, "f4"), obs())


@pytest.mark.parametrize("encoder", ["small", "resnet"])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_drq_learns_from_pictures_and_resumes(encoder, asymmetric):
    """Both encoders, with critics that see pictures or the state."""
    config = DrQConfig(eye=EyeConfig(encoder=encoder, width=8), asymmetric=asymmetric, hidden=(32,))
    one = DrQ(PICTURES, ACTION, config, sees=("own",), seed=1)
    before = {n: a.copy() for n, a in one.weights().items()}
    for k in range(3):
        one.update(pictures(8, k))
    moved = [n for n, a in one.weights().items() if not np.array_equal(a, before[n])]
    assert any("encoders" in n for n in moved)
    two = DrQ(PICTURES, ACTION, config, sees=("own",), seed=2)
    two.load_state(one.state())
    assert one.update(pictures(8, 7)) == two.update(pictures(8, 7))


def test_a_policy_on_pictures_does_not_see_the_truth():
    """What only the simulator knows has no influence on the action."""
    agent = DrQ(PICTURES, ACTION, DrQConfig(asymmetric=True, hidden=(32,)), sees=("own",))
    obs = pictures(6).obs
    other = obs | {"truth": obs["truth"] + 9.0}
    assert np.array_equal(agent.act(obs, explore=False), agent.act(other, explore=False))


def test_shifts_keep_size_and_content():
    """Every shifted picture is a window of the padded one, on both paths."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 255, (20, 9, 9, 3)).astype(np.uint8)
    wide = np.pad(frames, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="edge")
    generator = torch.Generator().manual_seed(0)
    on_device = random_shift_on_device(torch.from_numpy(frames), 2, generator).numpy()
    for moved in (random_shift(frames, 2, rng), on_device):
        for k in range(20):
            windows = [wide[k, y : y + 9, x : x + 9] for y in range(5) for x in range(5)]
            assert any(np.array_equal(moved[k], w) for w in windows)
    assert random_shift(frames, 0, rng) is frames


def test_only_demonstrations_that_are_worth_more_are_imitated():
    """The squared gap to what was shown, where the critics prefer that; nothing elsewhere."""
    agent = SAC(LAYOUT, ACTION, SACConfig(imitation=1.0), seed=3)
    looked, action = torch.randn(4, agent.actor_eye.width), torch.full((2, 2), 0.5)
    own = torch.tanh(agent.policy(looked)[0])
    gap = (own[:2] - 0.5).square().sum(-1)
    worth = torch.zeros(4)
    better = agent._unlike(Shown(action, torch.tensor([1.0, 1.0])), looked, worth)
    assert torch.isclose(better, gap.mean())
    half = agent._unlike(Shown(action, torch.tensor([-1.0, 1.0])), looked, worth)
    assert torch.isclose(half, gap[1] / 2)


def test_imitation_changes_the_policy_and_only_with_demonstrations():
    def after(weight, shown):
        agent = SAC(LAYOUT, ACTION, SACConfig(imitation=weight), seed=3)
        agent.update(batch()._replace(shown=shown))
        return agent.weights()["policy.head.weight"]

    assert np.array_equal(after(0.0, 16), after(0.0, 0))
    assert np.array_equal(after(5.0, 0), after(0.0, 0))
    assert not np.array_equal(after(5.0, 16), after(0.0, 16))


def test_a_relative_eye_sees_from_the_tip():
    """It adds every other position less the first one, and nothing else."""
    layout = Layout({
        "joints": ArraySpec((4,)),
        "tip_pos": ArraySpec((3,), points=(0,)),
        "poses": ArraySpec((14,), points=(0, 7)),
    })  # fmt: skip
    rng = np.random.default_rng(0)
    seen = {n: torch.from_numpy(rng.standard_normal((5, *s.shape))) for n, s in layout.items()}
    plain, relative = Eye(layout, tuple(layout)), Eye(layout, tuple(layout), is_relative=True)
    assert relative.width == plain.width + 6
    features = relative(seen)
    assert torch.equal(features[:, : plain.width], plain(seen))
    expected = [seen["poses"][:, at : at + 3] - seen["tip_pos"] for at in (0, 7)]
    assert torch.allclose(features[:, plain.width :], torch.cat(expected, -1).float())
    assert Eye(layout, ("joints",), is_relative=True).width == 4
