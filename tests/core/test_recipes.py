"""Recipes say what they need, and the registry asks nothing else."""

import inspect
import typing

import gymnasium
import pytest

import maniple
from maniple import registry
from maniple.core.errors import UnknownName
from maniple.core.group import Recipe
from maniple.envs.config import EnvConfig
from maniple.envs.env import ManipleEnv
from maniple.envs.extended import ExtendedRecipe
from maniple.envs.hosted import HostedRecipe
from maniple.envs.rlbench.recipe import RLBenchRecipe
from maniple.envs.task_recipe import TaskRecipe

STATE = registry.recipe("so101/Reach-v0", {})
PICTURES = registry.recipe("so101/Reach-v0", {"cameras": ("front",)})
GL_PICTURES = registry.recipe("so101/Reach-v0", {"cameras": ("front",), "renderer": "rays"})
HOSTED = HostedRecipe("CartPole-v1")
EXTENDED = ExtendedRecipe(object, EnvConfig())


@pytest.mark.parametrize(
    ("recipe", "num_envs", "workers", "engine"),
    [
        (STATE, 64, None, "native"),
        (STATE, 64, 2, "process"),
        (PICTURES, 64, None, "native"),
        (GL_PICTURES, 64, None, "process"),
        (PICTURES, 1, None, "native"),
        (HOSTED, 1, None, "native"),
        (HOSTED, 2, None, "process"),
        (EXTENDED, 1, 1, "process"),
        (EXTENDED, 1, None, "native"),
    ],
)
def test_the_recipe_chooses_the_engine(recipe, num_envs, workers, engine):
    assert recipe.preferred_engine(num_envs, workers) == engine
    assert not recipe.needs_own_process and recipe.process_options() == {}


@pytest.mark.parametrize("kind", [TaskRecipe, ExtendedRecipe, HostedRecipe, RLBenchRecipe])
def test_every_recipe_says_what_it_needs(kind):
    assert Recipe in kind.__mro__
    assert kind.__module__ in kind.preload
    assert kind.needs_own_process is (kind is RLBenchRecipe)


def test_the_registry_does_not_probe():
    source = inspect.getsource(registry)
    assert "getattr(made_of" not in source and "isinstance(made_of" not in source


def test_list_tasks():
    assert maniple.list_tasks() == list(registry.TASKS)
    assert "LeRobot-v0" in maniple.list_tasks(robot="so101")
    panda = maniple.list_tasks(robot="panda")
    assert len(panda) == len(registry.RLBENCH)
    with pytest.raises(UnknownName, match="Did you mean panda"):
        maniple.list_tasks(robot="pandas")


def test_public_names_have_types():
    from maniple.engine.vector import VectorEnv

    names = {"VectorEnv": VectorEnv, "ManipleEnv": ManipleEnv}
    assert typing.get_type_hints(registry.make, localns=names)["return"] is ManipleEnv
    assert inspect.signature(registry.make_vec).return_annotation == "VectorEnv"
    env = maniple.make("so101/Reach-v0")
    assert isinstance(env, ManipleEnv) and isinstance(env, gymnasium.Env)
    env.close()


def test_types_are_shipped():
    from importlib.resources import files

    assert files("maniple").joinpath("py.typed").is_file()
