"""Train a policy to reach with SAC, then judge it on fresh episodes."""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from maniple.learn.evaluate import evaluate
from maniple.learn.judge import Judge
from maniple.learn.loop import train
from maniple.learn.presets import preset
from maniple.run.checkpoint import find


def main() -> None:
    """Train until nine in ten episodes succeed, or the steps are over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-steps", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    known = preset("sac", "so101/Reach-v0")
    config = replace(known, max_steps=options.max_steps, seed=options.seed, stop_at_success=0.9)
    with tempfile.TemporaryDirectory() as folder:
        result = train(
            config,
            Path(folder) / "run",
            listen=lambda step, told: print(f"{step:>6} success {told.get('success', 0):.0%}"),
        )
        judge = Judge(find(result.run_dir))
    envs = judge.envs(50)
    judged = evaluate(envs, judge.act, episodes=50, first_seed=2_000_000_000)
    envs.close()
    low, high = judged.success_ci95
    print(f"success {judged.success_rate:.0%} (95 %: {low:.0%} to {high:.0%})")


if __name__ == "__main__":
    main()
