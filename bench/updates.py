"""Compare the CPU time of one SAC update with Stable-Baselines3 and CleanRL-style code.

All take turns in one run on the same data: batch 256, two hidden layers of 256.

    python bench/updates.py --threads 1
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
import torch
from torch import nn

from maniple.agents.sac import SAC, SACConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions

OBS, ACTIONS, BATCH = 18, 4, 256


def data() -> Transitions:
    """Random transitions."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    return Transitions(
        {"obs": draw(BATCH, OBS)},
        np.tanh(draw(BATCH, ACTIONS)),
        draw(BATCH),
        np.full(BATCH, 0.95, np.float32),
        {"obs": draw(BATCH, OBS)},
    )


def ours(critics: int) -> Callable[[], object]:
    """Our update, with a number of critics."""
    layout = Layout({"obs": ArraySpec((OBS,))})
    agent = SAC(
        layout, ArraySpec((ACTIONS,), np.dtype(np.float32), -1, 1), SACConfig(critics=critics)
    )
    batch = data()
    return lambda: agent.update(batch)


def stable_baselines() -> Callable[[], object]:
    """Stable-Baselines3's own train(), for one gradient step at a time."""
    import gymnasium
    from stable_baselines3 import SAC as Peer
    from stable_baselines3.common.logger import Logger

    env = gymnasium.make("Pendulum-v1")
    env.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
    env.action_space = gymnasium.spaces.Box(-1, 1, (ACTIONS,), np.float32)
    peer = Peer("MlpPolicy", env, policy_kwargs={"net_arch": [256, 256]}, device="cpu")
    peer.set_logger(Logger(None, []))
    batch, replay = data(), peer.replay_buffer
    assert replay is not None
    for k in range(BATCH):
        replay.add(
            batch.obs["obs"][k], batch.next_obs["obs"][k], batch.action[k], batch.reward[k],
            np.zeros(1), [{}],
        )  # fmt: skip
    return lambda: peer.train(gradient_steps=1, batch_size=BATCH)


def eager() -> Callable[[], object]:
    """The update as single-file implementations write it: two critics one after the other."""

    def net(n_in: int, n_out: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(n_in, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, n_out)
        )

    actor = net(OBS, 2 * ACTIONS)
    critics = [net(OBS + ACTIONS, 1) for _ in range(2)]
    targets = [net(OBS + ACTIONS, 1) for _ in range(2)]
    critic_optimizer = torch.optim.Adam([p for c in critics for p in c.parameters()], lr=1e-3)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha_optimizer = torch.optim.Adam([log_alpha], lr=1e-3)
    batch = data()
    obs, next_obs = (torch.from_numpy(o["obs"]) for o in (batch.obs, batch.next_obs))
    action, reward, discount = map(torch.from_numpy, (batch.action, batch.reward, batch.discount))

    def draw(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, log_std = actor(x).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        before = normal.rsample()
        squashed = torch.tanh(before)
        density = normal.log_prob(before) - torch.log(1 - squashed.pow(2) + 1e-6)
        return squashed, density.sum(1, keepdim=True)

    def update() -> None:
        with torch.no_grad():
            a, density = draw(next_obs)
            q = torch.min(*[t(torch.cat([next_obs, a], 1)) for t in targets])
            goal = reward[:, None] + discount[:, None] * (q - log_alpha.exp() * density)
        loss = sum(nn.functional.mse_loss(c(torch.cat([obs, action], 1)), goal) for c in critics)
        critic_optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportAttributeAccessIssue]
        critic_optimizer.step()
        a, density = draw(obs)
        q = torch.min(*[c(torch.cat([obs, a], 1)) for c in critics])
        actor_loss = (log_alpha.exp().detach() * density - q).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        alpha_loss = (-log_alpha.exp() * (density.detach() - ACTIONS)).mean()
        alpha_optimizer.zero_grad()
        alpha_loss.backward()
        alpha_optimizer.step()
        for c, t in zip(critics, targets, strict=True):
            for p, slow in zip(c.parameters(), t.parameters(), strict=True):
                slow.data.copy_(0.01 * p.data + 0.99 * slow.data)

    return update


def main() -> None:
    """Take turns, tell medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--updates", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    contenders = {
        "maniple, 2 critics": ours(2),
        "maniple, 10 critics": ours(10),
        "Stable-Baselines3": stable_baselines(),
        "eager, one by one": eager(),
    }
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    for update in contenders.values():
        for _ in range(10):
            update()
    for _ in range(options.turns):
        for name, update in contenders.items():
            clock, began = process_time(), perf_counter()
            for _ in range(options.updates):
                update()
            cpu[name].append((process_time() - clock) / options.updates * 1e3)
            wall[name].append((perf_counter() - began) / options.updates * 1e3)
    told = {}
    for name in contenders:
        told[name] = {
            "cpu_ms": round(statistics.median(cpu[name]), 3),
            "wall_ms": round(statistics.median(wall[name]), 3),
        }
        print(f"{name:<22} {told[name]['cpu_ms']:>8.2f} ms CPU {told[name]['wall_ms']:>8.2f} ms")
    print(json.dumps({"threads": options.threads, **told}))


if __name__ == "__main__":
    main()
