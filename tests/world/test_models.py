"""World models predict from the action that is taken, open loop, with no trick in the shapes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from maniple.core.errors import BadConfig
from maniple.run.ranks import Ranks
from maniple.world.config import TeacherConfig
from maniple.world.models import MODELS, make_model
from maniple.world.moment import first_moment, moment_at, true_action
from maniple.world.prediction import rollout
from maniple.world.shapes import Batch, Shapes
from maniple.world.teacher_checkpoint import load_strictly
from maniple.world.updater import Updater

SHAPES = Shapes(("front_rgb",), ("joint_pos",), 32, 32, 3, 2)


def batch(rows=4, steps=4, shapes=SHAPES, seed=0) -> Batch:
    rng = torch.Generator().manual_seed(seed)
    frames = torch.rand(rows, 4 + steps, shapes.channels, 32, 32, generator=rng)
    return Batch(
        frames, torch.randn(rows, 4 + steps, shapes.state_size, generator=rng),
        torch.rand(rows, 3 + steps, 2, generator=rng), torch.zeros(rows, steps),
        torch.zeros(rows, steps), torch.full((rows, steps), 20),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["nano", "latent"])
@pytest.mark.parametrize("cameras", [1, 2])
def test_loss_has_gradients_everywhere(name, cameras):
    """DDP waits for every parameter: none may be left out of the loss."""
    shapes = replace(SHAPES, cameras=("front_rgb", "wrist_rgb")[:cameras])
    model = make_model(shapes, TeacherConfig(model=name), 0).train()
    sum(model(batch(shapes=shapes), 0).values()).backward()
    without = [n for n, p in model.named_parameters() if p.grad is None]
    assert not without


@pytest.mark.parametrize("name", ["nano", "latent"])
def test_the_present_action_changes_the_prediction(name):
    """The original was given only the actions before the present one."""
    model = make_model(SHAPES, TeacherConfig(model=name), 0).eval()
    some = batch()
    moment = moment_at(some, 0, 4, model.blank_memory(4))
    with torch.no_grad():
        said = [model.advance(model.begin(moment), torch.full((4, 2), a))[0] for a in (-1.0, 1.0)]
    assert (said[0].frame - said[1].frame).abs().max() > 1e-6
    # Last but not least: earlier actions are seen, too, where the model has them.
    other = moment._replace(past=moment.past + 1)
    with torch.no_grad():
        again = model.advance(model.begin(other), torch.full((4, 2), -1.0))[0]
    assert (said[0].frame - again.frame).abs().max() > 1e-7


@pytest.mark.parametrize("name", ["nano", "latent"])
def test_a_rollout_is_its_own_input(name):
    """Step by step and open loop are the same thing."""
    model = make_model(SHAPES, TeacherConfig(model=name), 0).eval()
    some = batch()
    moment, actions = moment_at(some, 0, 4, model.blank_memory(4)), some.action[:, 3:]
    with torch.no_grad():
        whole = list(rollout(model, moment, actions))
        at = model.begin(moment)
        for action, expected in zip(actions.unbind(1), whole, strict=True):
            said, at = model.advance(at, action)
            assert torch.equal(said.frame, expected.frame)


@pytest.mark.slow
def test_learning_beats_copying():
    """A square that moves as the action says: after a few hundred updates copying is worse."""
    torch.manual_seed(0)
    model = make_model(replace(SHAPES, state_size=0, states=()), TeacherConfig(model="nano"), 0)
    adam = torch.optim.Adam(model.parameters(), 2e-3)
    rng = np.random.default_rng(0)
    for _ in range(400):
        loss = 10 * model(moving_square(rng, 16), 0)["picture"]
        adam.zero_grad()
        loss.backward()
        adam.step()
    held = moving_square(rng, 32)
    model.eval()
    with torch.no_grad():
        moment = moment_at(held, 0, 4, model.blank_memory(32))
        said = next(rollout(model, moment, held.action[:, 3:4]))
    true = held.frames[:, 4]
    assert (said.frame - true).square().mean() < 0.5 * (moment.now - true).square().mean()


def moving_square(rng, rows) -> Batch:
    """A square goes up or down by four pixels as the action says."""
    action = rng.choice([-1.0, 1.0], (rows, 6, 2)).astype(np.float32)
    place = 12 + np.cumsum(np.concatenate([np.zeros((rows, 1)), action[..., 0]], 1), 1) * 2
    frames = np.full((rows, 7, 3, 32, 32), 0.5, np.float32)
    for row in range(rows):
        for t in range(7):
            top = int(place[row, t])
            frames[row, t, :, top : top + 6, 12:18] = 1.0
    none = torch.zeros(rows, 3)
    return Batch(torch.from_numpy(frames), torch.zeros(rows, 7, 0), torch.from_numpy(action), none,
                 none, torch.full((rows, 3), 20))  # fmt: skip


def test_an_episode_begins_with_its_first_frame():
    moment = first_moment(torch.rand(2, 3, 8, 8), torch.zeros(2, 1), 4, 2, torch.zeros(2, 5))
    assert (moment.frames == moment.now[:, None]).all() and not moment.past.any()


def test_how_the_state_last_changed_counts():
    """Two arms in the same place move on differently where they came from different ones."""
    model = make_model(SHAPES, TeacherConfig(model="nano"), 0).eval()
    moment = moment_at(batch(), 0, 4, model.blank_memory(4))
    came = moment.states.clone()
    came[:, -2] += 1
    assert torch.equal(came[:, -1], moment.state)
    with torch.no_grad():
        said = [model.advance(m, torch.zeros(4, 2))[0].state
                for m in (moment, moment._replace(states=came))]  # fmt: skip
    assert (said[0] - said[1]).abs().min() > 0


def test_states_move_on_with_frames():
    moment = moment_at(batch(), 0, 4, torch.zeros(4, 5))
    new = torch.full((4, 3), 7.0)
    later = moment.after(torch.zeros(4, 2), moment.now, new, moment.memory)
    assert torch.equal(later.state, new) and torch.equal(later.states[:, :-1], moment.states[:, 1:])


def test_a_pace_is_for_its_part_alone():
    """Adam moves a weight by about its learning rate, whatever the gradient."""
    moved = {}
    for pace in (1.0, 3.0):
        model = make_model(SHAPES, TeacherConfig(model="nano"), 0)
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        updater = Updater(model, {}, 1e-3, Ranks(), paces={"moves": pace})
        updater.step([batch()])
        moved[pace] = {
            n: float((p.detach() - before[n]).abs().mean()) for n, p in model.named_parameters()
        }
    for name, way in moved[3.0].items():
        wanted = 3 if name.startswith("moves.") else 1
        assert way == pytest.approx(wanted * moved[1.0][name], rel=0.05), name


def test_weights_that_do_not_fit_are_told_by_name():
    """The original loaded 324 missing keys in silence."""
    nano = make_model(SHAPES, TeacherConfig(model="nano"), 0)
    weights = {f"model.{k}": v.numpy().copy() for k, v in nano.state_dict().items()}
    before = {k: v.clone() for k, v in nano.state_dict().items()}
    del weights["model.gru.weight_ih"]
    weights["model.stray"] = np.zeros(1)
    weights["model.gru.bias_ih"] = np.zeros(7)
    with pytest.raises(BadConfig) as told:
        load_strictly(nano, weights, "here")
    for part in ("1 missing: model.gru.weight_ih", "1 not known: model.stray",
                 "1 of another shape: model.gru.bias_ih: (7,), not (384,)"):  # fmt: skip
        assert part in str(told.value)
    assert all(torch.equal(before[k], v) for k, v in nano.state_dict().items())


def test_presets_grow():
    sizes = [sum(p.numel() for p in make_model(SHAPES, TeacherConfig(model=n), 0).parameters())
             for n in ("nano", "small")]  # fmt: skip
    assert sizes[0] < sizes[1]
    assert set(MODELS) == {"nano", "small", "base", "latent"}


def test_states_learn_from_steps_without_pictures():
    """Single steps that were drawn without pictures teach the walk, and it alone."""
    model = make_model(SHAPES, TeacherConfig(model="nano"), 0).train()
    assert "walk" not in model(batch(), 0)
    state = torch.randn(50, 1, 3).repeat(1, 5, 1)
    action = torch.rand(50, 4, 2) * 2 - 1
    state[:, -1, :2] += action[:, -1]
    model.calibrate(state)
    walked = batch()._replace(
        walk_state=state,
        walk_action=action,
        walk_reward=torch.zeros(len(state)),
        walk_success=torch.zeros(len(state)),
    )
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    first = None
    for _ in range(60):
        loss = model._walk_losses(walked)["walk"]
        first = loss.item() if first is None else first
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert loss.item() < 0.2 * first
    touched = {n.split(".")[0] for n, p in model.named_parameters() if p.grad is not None}
    assert touched == {"walk"}


def test_success_is_told_from_states_first():
    """Single steps teach where the task is solved; how calmly one moves there tells nothing."""
    model = make_model(SHAPES, TeacherConfig(model="nano"), 0).train()
    state = torch.randn(400, 5, 3)
    solved = (state[:, -1].norm(dim=-1) < 1.5).float()
    model.calibrate(state)
    walked = batch()._replace(walk_state=state, walk_action=torch.zeros(400, 4, 2),
                              walk_reward=solved, walk_success=solved)  # fmt: skip
    adam = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(200):
        adam.zero_grad()
        model._walk_losses(walked)["outcome"].backward()
        adam.step()
    touched = {n for n, p in model.named_parameters() if p.grad is not None}
    assert touched and all(n.startswith("outcome.from_state.") for n in touched)
    fresh = torch.randn(400, 3)
    said = model.outcome.from_state(model.scale(fresh))
    true = fresh.norm(dim=-1) < 1.5
    assert ((said[:, 1] > 0) == true).float().mean() > 0.9
    assert (said[:, 0] - true.float()).square().mean() < 0.1


def test_what_a_state_is_worth_does_not_move_it():
    """Success and reward change how a state is read, never where it is predicted to be."""
    model = make_model(SHAPES, TeacherConfig(model="nano"), 0).train()
    moment = moment_at(batch(), 0, 4, model.blank_memory(len(batch().frames)))
    said, _ = model.advance(moment, true_action(batch(), 0, 4))
    (said.success + said.reward).sum().backward()
    assert all(p.grad is None for p in model.walk.parameters())
    assert any(p.grad is not None for p in model.outcome.parameters())


def test_latents_are_told_the_state():
    """The encoder learns where the robot is; rewards only read what it learned."""
    model = make_model(SHAPES, TeacherConfig(model="latent"), 0).train()
    for term, changes in (("state", True), ("reward", False), ("picture", False)):
        model.zero_grad()
        model(batch(), 0)[term].backward()
        grads = [p.grad for p in model.encoder.parameters()]
        assert any(g is not None and g.abs().max() > 0 for g in grads) is changes, term


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("name", ["nano", "latent"])
def test_pictures_alone_are_enough(name):
    """With --state none there is no number to predict, and the loss stays one."""
    shapes = Shapes(("front_rgb",), (), 32, 32, 0, 2)
    model = make_model(shapes, TeacherConfig(model=name), 0).train()
    assert all(term.isfinite() for term in model(batch(shapes=shapes), 0).values())
