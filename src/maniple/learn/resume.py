"""Put environments back into the middle of their episodes."""

from __future__ import annotations

from typing import Any

from maniple.core.errors import BadConfig


def env_states(envs: Any) -> list[dict[str, Any]] | None:
    """Return every row's state; None where the environments cannot tell theirs."""
    try:
        return list(envs.get_attr("sim_state"))
    except BadConfig:
        # A foreign environment: its episodes will begin anew.
        return None


def restore_envs(envs: Any, states: list[dict[str, Any]], seed: int) -> None:
    """Bring every row back to its state, and to its place in its stream of episodes."""
    envs.reset(seed=seed)
    envs.set_attr("sim_state", states)
