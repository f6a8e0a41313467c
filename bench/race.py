"""Race SAC on so101/Reach-v0 against Stable-Baselines3: wall time to 90 % success.

Same environments, same number, same hyper-parameters, same judge: 100 episodes on held-out seeds
every 1,000 steps, whose time counts for nobody. The peer is also run with the observations scaled
as ours are, which Stable-Baselines3 does not do by itself. Every contender is a process of its own
with the same number of threads; wall time and CPU time are both reported.

    python bench/race.py --seeds 0 1 2 --threads 1
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import maniple
from maniple.agents.sac import SACConfig
from maniple.learn.config import TrainConfig
from maniple.learn.loop import train
from maniple.run.evaluation import FIRST_SEED, evaluate

TASK, ENVS, GOAL, EVERY, MOST = "so101/Reach-v0", 16, 0.9, 1_000, 60_000
AGENT = SACConfig()


def ours(seed: int, threads: int) -> dict[str, Any]:
    """Train as 'maniple train sac' does."""
    config = TrainConfig.of(
        task=TASK, num_envs=ENVS, seed=seed, max_steps=MOST, eval_period=EVERY, eval_n_trajs=100,
        stop_at_success=GOAL, checkpoint_period=0, torch_threads=threads, agent=AGENT,
    )  # fmt: skip
    began = process_time()
    with tempfile.TemporaryDirectory() as folder:
        result = train(config, Path(folder) / "run")
    assert result.evaluation is not None
    return {
        "seconds": result.train_s, "cpu_s": process_time() - began, "steps": result.steps,
        "updates": result.updates, "success": result.evaluation.success_rate,
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


def peer(seed: int, threads: int, is_scaled: bool) -> dict[str, Any]:
    """Train with Stable-Baselines3."""
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(threads)
    began, cpu_began = perf_counter(), process_time()
    scale = _scale_of_random_steps(seed) if is_scaled else None
    model = SAC(
        "MlpPolicy", DummyVecEnv([lambda: Flat(scale) for _ in range(ENVS)]),
        learning_rate=AGENT.lr, buffer_size=200_000, learning_starts=1_000, batch_size=256,
        tau=AGENT.tau, gamma=AGENT.discount, train_freq=1, gradient_steps=ENVS // 8,
        ent_coef=f"auto_{AGENT.temperature}", target_entropy=-2.0, seed=seed, device="cpu",
        policy_kwargs={"net_arch": list(AGENT.hidden)},
    )  # fmt: skip
    envs = maniple.make_vec(TASK, 32)
    reached: dict[str, Any] = {}

    class Evaluate(BaseCallback):
        evaluation_s, next_at = 0.0, EVERY

        def _on_step(self) -> bool:
            if self.num_timesteps < self.next_at:
                return True
            self.next_at += EVERY
            pause = perf_counter()
            result = evaluate(envs, _acts(model, scale), 100, FIRST_SEED + seed * 1_000_000)
            self.evaluation_s += perf_counter() - pause
            reached.update(
                seconds=perf_counter() - began - self.evaluation_s,
                cpu_s=process_time() - cpu_began, steps=self.num_timesteps,
                updates=model._n_updates, success=result.success_rate,
            )  # fmt: skip
            return result.success_rate < GOAL

    model.learn(MOST, callback=Evaluate())
    envs.close()
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


CONTENDERS = {
    "maniple": ours,
    "Stable-Baselines3, scaled": partial(peer, is_scaled=True),
    "Stable-Baselines3": partial(peer, is_scaled=False),
}


def main() -> None:
    """Race, one seed after the other, all contenders in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1, help="of torch, for every contender")
    parser.add_argument("--raw", action="store_true", help="also race the peer unscaled")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, seed = options.one
        print(json.dumps(CONTENDERS[name](int(seed), options.threads)))
        return
    contenders = list(CONTENDERS)[: 3 if options.raw else 2]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for seed in options.seeds:
        for name in contenders:
            result = _in_own_process(name, seed, options.threads)
            results[name].append(result)
            print(
                f"seed {seed} {name:<26} {result['seconds']:7.1f} s {result['cpu_s']:7.1f} CPU-s "
                f"{result['steps']:7,} steps {result['updates']:6,} updates "
                f"{result['success']:.0%}",
                flush=True,
            )
    for name in contenders[1:]:
        for unit in ("seconds", "cpu_s"):
            mine = [r[unit] for r in results["maniple"]]
            theirs = [r[unit] for r in results[name]]
            each = [round(t / m, 2) for t, m in zip(theirs, mine, strict=True)]
            ratio = statistics.median(theirs) / statistics.median(mine)
            print(f"{name}: {ratio:.2f}x our median {unit}; per seed {each}")
    print(json.dumps(results))


def _in_own_process(name: str, seed: int, threads: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--one", name, str(seed), "--threads", str(threads)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
