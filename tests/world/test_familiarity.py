"""Where nothing alike was seen is unknown; what was visited is not."""

import numpy as np
import torch

from maniple.core.spec import ArraySpec, Layout
from maniple.world.config import StudentConfig, TeacherConfig
from maniple.world.coverage import BASE_FINENESS, GRIPPER_FINENESS, Place, find_place
from maniple.world.familiarity import Familiarity
from maniple.world.models import make_model
from maniple.world.mpc import MpcExplorer
from maniple.world.shapes import Shapes


def codes(count, seed=0, centre=0.0):
    return centre + 0.2 * torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


def test_visited_places_become_familiar():
    familiarity = Familiarity(6, 6.0)
    before = familiarity.unknown(codes(50))
    assert torch.allclose(before, torch.ones_like(before), atol=0.2)
    familiarity.add(codes(500))
    here, there = familiarity.unknown(codes(50, 1)), familiarity.unknown(codes(50, 1, 3.0))
    assert float(here.mean()) < 0.2 * float(there.mean())


def test_it_goes_on_from_what_was_stored():
    one, other = Familiarity(6, 6.0), Familiarity(6, 6.0)
    one.add(codes(100))
    other.load_state(one.state())
    assert torch.equal(one.unknown(codes(9, 2)), other.unknown(codes(9, 2)))


def test_the_places_of_gripper_and_base_are_found():
    """Among the numbers of a state, in the order in which the model sees them; bases first."""
    numbers = {"joint_pos": 6, "tip_pos": 3, "target_pos": 3, "base_pose": 3, "tip_pose": 7}
    layout = Layout({n: ArraySpec((k,), np.dtype(np.float64)) for n, k in numbers.items()})
    assert find_place(layout, ("joint_pos", "tip_pos")) == Place((6, 7, 8), GRIPPER_FINENESS)
    assert find_place(layout, ("joint_pos", "target_pos")) is None
    named = ("tip_pos", "joint_pos", "tip_pose", "base_pose")
    assert find_place(layout, named) == Place((16, 17, 18), BASE_FINENESS)


def test_only_the_place_counts():
    """Two codes that differ elsewhere are equally familiar."""
    shapes = Shapes(("front_rgb",), ("joint_pos",), 32, 32, 5, 2)
    model = make_model(shapes, TeacherConfig(model="latent"), 0).eval()
    action = ArraySpec((2,), np.dtype(np.float32), -1.0, 1.0)
    explorer = MpcExplorer(model, model.ensemble, action, StudentConfig(), Place((2, 3, 4)))
    code = torch.zeros(1, model.code_size)
    code[:, -5:] = torch.arange(5.0)
    assert code[:, explorer._place].tolist() == [[2.0, 3.0, 4.0]]


def test_plans_avoid_where_rows_have_been():
    """The same plans are worth less once their codes were seen."""
    shapes = Shapes(("front_rgb",), ("joint_pos",), 32, 32, 3, 2)
    model = make_model(shapes, TeacherConfig(model="latent"), 0).eval()
    action = ArraySpec((2,), np.dtype(np.float32), -1.0, 1.0)
    config = StudentConfig(horizon=3, samples=8)
    explorer = MpcExplorer(model, model.ensemble, action, config)
    explorer.begin(0)
    obs = {"front_rgb": np.zeros((2, 32, 32, 3), np.uint8), "joint_pos": np.zeros((2, 3))}
    explorer.act(obs)
    plans = torch.rand(2, 8, 3, 2)
    with torch.no_grad():
        first = explorer._cost_of(plans)
        for _ in range(20):
            explorer._note_codes()
        assert (explorer._cost_of(plans) > first).all()
    assert 0 < explorer.learn(np.zeros(0))["reward/novelty"] <= 1.2
    plain = MpcExplorer(model, model.ensemble, action, StudentConfig(novelty=0.0))
    assert plain.familiarity is None and plain.state() == {}


def test_a_driven_base_is_counted_too():
    from maniple.world.coverage import Coverage

    seen = Coverage()
    seen.add({"tip_pos": np.zeros((2, 3))})
    assert "coverage/base" not in seen.metrics()
    seen.add({"tip_pos": np.zeros((2, 3)), "base_pose": np.array([[0, 0, 0.1], [0.3, 0, 0.1]])})
    assert seen.metrics() == {"coverage/gripper": 1, "coverage/object": 0, "coverage/base": 2}
    seen.add({"base_pose": np.array([[0, 0, 0.1 + 2 * np.pi], [0, 0, 0.1 - 2 * np.pi]])})
    assert seen.metrics()["coverage/base"] == 2
