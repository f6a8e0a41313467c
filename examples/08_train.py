"""Train a policy to reach with SAC, then judge it on fresh episodes."""

import argparse
import tempfile
from pathlib import Path

import maniple
from maniple.learn.config import preset
from maniple.learn.loop import train
from maniple.run.evaluation import evaluate


def main() -> None:
    """Train until nine in ten episodes succeed, or the steps are over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-steps", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = preset("sac", "so101/Reach-v0").replace(
        max_steps=options.max_steps, seed=options.seed, stop_at_success=0.9
    )
    with tempfile.TemporaryDirectory() as folder:
        result = train(
            config,
            Path(folder) / "run",
            listen=lambda step, metrics: print(
                f"{step:>6} success {metrics.get('success', 0):.0%}"
            ),
        )
        policy = maniple.load_policy(result.run_dir)
    envs = policy.envs(25)
    measured = evaluate(envs, policy.act, episodes=50, first_seed=2_000_000_000)
    envs.close()
    low, high = measured.success_ci95
    print(f"success {measured.success_rate:.0%} (95 %: {low:.0%} to {high:.0%})")


if __name__ == "__main__":
    main()
