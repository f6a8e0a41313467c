"""Clone behaviour from demonstrations; the task is only needed for judging."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import torch

from maniple.core.errors import BadConfig
from maniple.core.rank import Rank
from maniple.data.mix import ring_of
from maniple.learn.config import TrainConfig
from maniple.learn.course import Listen, Result
from maniple.learn.demos import demonstrations
from maniple.learn.evaluate import FIRST_SEED, Evaluation, evaluate
from maniple.learn.make import judge_rows, make_agent, make_envs, stack_of
from maniple.learn.pupil import CALIBRATED_ON
from maniple.learn.save import Keeper
from maniple.run.when import Every, Until


def imitate(config: TrainConfig, run_dir: Path, listen: Listen, until: Until) -> Result:
    """Make `max_steps` updates from the demonstrations, then play."""
    began = perf_counter()
    torch.set_num_threads(config.torch_threads or Rank.here().num_cpus())
    keeper: Keeper | None = None
    envs = make_envs(config, judge_rows(config))
    try:
        agent = make_agent(config, envs.layout, envs.action_spec, config.seed)
        shown = demonstrations(config)
        if not shown:
            raise BadConfig("BC needs demonstrations: name --demo-path, or record with --demos 50.")
        stack = stack_of(config.agent)
        ring = ring_of(shown, envs.layout, envs.action_spec, config.seed, stack)
        agent.calibrate(ring.sample(CALIBRATED_ON).obs)
        keeper = Keeper(config, run_dir, resume=False, is_first=Rank.here().rank == 0)
        log_due, updates = Every(config.log_period), 0
        while until(updates):
            told = agent.update(ring.sample(config.batch_size))
            updates += 1
            if log_due(updates):
                told |= {"replay": len(ring), "clock/train_s": perf_counter() - began}
                keeper.log.write(updates, told)
                listen(updates, told)
        train_s = perf_counter() - began
        judged = _judge(config, envs, agent)
        keeper.save_policy(updates, agent, judged)
        score = judged.score if judged else float("nan")
        return Result(
            keeper.folder.path, updates, updates, judged, score, train_s, perf_counter() - began
        )
    finally:
        envs.close()
        if keeper is not None:
            keeper.close()


def _judge(config: TrainConfig, envs, agent) -> Evaluation | None:
    if config.eval_n_trajs == 0:
        return None
    act = lambda seen: agent.act(seen, explore=False)  # noqa: E731
    first_seed = FIRST_SEED + config.seed * 1_000_000
    return evaluate(envs, act, config.eval_n_trajs, first_seed, stack_of(config.agent))
