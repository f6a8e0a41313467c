"""Race SAC on so101/Reach-v0 against Stable-Baselines3: wall time to 90 % success.

Same environments, same number, same hyper-parameters, same judge: 100 episodes on held-out seeds
every 1,000 steps, whose time counts for nobody. The peer is also run with the observations scaled
as ours are, which Stable-Baselines3 does not do by itself.

    python bench/race.py --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import maniple
from maniple.agents.sac import SACConfig
from maniple.learn.config import TrainConfig
from maniple.learn.evaluate import FIRST_SEED, evaluate
from maniple.learn.loop import train

TASK, ENVS, GOAL, EVERY, MOST = "so101/Reach-v0", 16, 0.9, 1_000, 60_000
AGENT = SACConfig()


def ours(seed: int) -> dict[str, Any]:
    """Train as 'maniple train sac' does."""
    config = TrainConfig(
        task=TASK, num_envs=ENVS, seed=seed, max_steps=MOST, eval_period=EVERY, eval_n_trajs=100,
        stop_at_success=GOAL, checkpoint_period=0, agent=AGENT,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        result = train(config, Path(folder) / "run")
    assert result.evaluation is not None
    return {
        "seconds": result.train_s, "steps": result.steps, "updates": result.updates,
        "success": result.evaluation.success_rate,
    }  # fmt: skip


class Flat(gymnasium.ObservationWrapper):
    """Our single environment with its observations in one vector, scaled if asked to."""

    def __init__(self, scale: tuple[NDArray, NDArray] | None) -> None:
        env = gymnasium.wrappers.FlattenObservation(gymnasium.make(TASK))
        super().__init__(env)
        self._scale = scale

    def observation(self, observation: NDArray) -> NDArray:
        """Bring every number to mean 0 and spread 1."""
        if self._scale is None:
            return observation
        mean, scale = self._scale
        return np.clip((observation - mean) * scale, -10, 10).astype(np.float32)


def peer(seed: int, is_scaled: bool) -> dict[str, Any]:
    """Train with Stable-Baselines3."""
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    began = perf_counter()
    scale = _scale_of_random_steps(seed) if is_scaled else None
    model = SAC(
        "MlpPolicy", DummyVecEnv([lambda: Flat(scale) for _ in range(ENVS)]),
        learning_rate=AGENT.lr, buffer_size=200_000, learning_starts=1_000, batch_size=256,
        tau=AGENT.tau, gamma=AGENT.discount, train_freq=1, gradient_steps=ENVS // 8,
        ent_coef=f"auto_{AGENT.temperature}", target_entropy=-2.0, seed=seed, device="cpu",
        policy_kwargs={"net_arch": list(AGENT.hidden)},
    )  # fmt: skip
    judges = maniple.make_vec(TASK, 100)
    reached: dict[str, Any] = {}

    class Judge(BaseCallback):
        aside_s, next_at = 0.0, EVERY

        def _on_step(self) -> bool:
            if self.num_timesteps < self.next_at:
                return True
            self.next_at += EVERY
            pause = perf_counter()
            result = evaluate(judges, _acts(model, scale), 100, FIRST_SEED + seed * 1_000_000)
            self.aside_s += perf_counter() - pause
            reached.update(
                seconds=perf_counter() - began - self.aside_s, steps=self.num_timesteps,
                updates=model._n_updates, success=result.success_rate,
            )  # fmt: skip
            return result.success_rate < GOAL

    model.learn(MOST, callback=Judge())
    judges.close()
    return reached


def _scale_of_random_steps(seed: int) -> tuple[NDArray, NDArray]:
    """What our learner takes from its random steps, as (mean, 1 / spread)."""
    env = maniple.make_vec(TASK, ENVS)
    obs, _ = env.reset(seed=seed)
    rng, seen = np.random.default_rng(seed), []
    for _ in range(1_000 // ENVS):
        seen.append(_flat(obs))
        obs, *_ = env.step(rng.uniform(-1, 1, env.action_space.shape).astype(np.float32))
    env.close()
    numbers = np.concatenate(seen)
    return numbers.mean(0), 1.0 / np.maximum(numbers.std(0), 1e-3)


def _flat(obs: dict[str, NDArray]) -> NDArray:
    rows = len(next(iter(obs.values())))
    return np.concatenate([obs[name].reshape(rows, -1) for name in _names()], 1)


@cache
def _names() -> list[str]:
    """Names in the order in which Gymnasium flattens them."""
    env = maniple.make(TASK)
    names = list(env.observation_space)  # type: ignore[arg-type]  (a Dict space)
    env.close()
    return names


def _acts(model: Any, scale: tuple[NDArray, NDArray] | None) -> Any:
    def act(obs: Any) -> NDArray:
        flat = _flat(obs)
        if scale is not None:
            flat = np.clip((flat - scale[0]) * scale[1], -10, 10).astype(np.float32)
        return model.predict(flat, deterministic=True)[0]

    return act


def main() -> None:
    """Race, one seed after the other, all contenders in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--raw", action="store_true", help="also race the peer unscaled")
    options = parser.parse_args()
    contenders = {"maniple": ours, "Stable-Baselines3, scaled": lambda seed: peer(seed, True)}
    if options.raw:
        contenders["Stable-Baselines3"] = lambda seed: peer(seed, False)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for seed in options.seeds:
        for name, contender in contenders.items():
            told = contender(seed)
            results[name].append(told)
            print(
                f"seed {seed} {name:<26} {told['seconds']:7.1f} s {told['steps']:7,} steps "
                f"{told['updates']:6,} updates {told['success']:.0%}",
                flush=True,
            )
    mine = [r["seconds"] for r in results["maniple"]]
    for name in list(contenders)[1:]:
        theirs = [r["seconds"] for r in results[name]]
        each = [t / m for t, m in zip(theirs, mine, strict=True)]
        ratio = statistics.median(theirs) / statistics.median(mine)
        print(f"{name}: {ratio:.2f}x our median time; per seed {[round(e, 2) for e in each]}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
