"""Several learners under torchrun are one learner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from maniple.agents.sac import SACConfig
from maniple.core.rank import Rank
from maniple.learn.config import TrainConfig
from maniple.learn import loop

config = TrainConfig.of(num_envs=2, max_steps=200, random_steps=50, training_starts=50,
                        batch_size=16, eval_n_trajs=0, torch_threads=1,
                        agent=SACConfig(hidden=(16, 16)))
folder = Path(sys.argv[1])
made = []
class Collector(loop.Collector):
    def __init__(self, *args):
        super().__init__(*args)
        made.append(self)
loop.Collector = Collector
loop.train(config, folder / "run")
rank, (collector,) = Rank.here().rank, made
np.savez(folder / f"{rank}.npz", seen=collector.obs["target_pos"], **collector.learner.weights())
"""


def test_ranks_keep_equal_weights_and_play_their_own_episodes(tmp_path):
    """After learning on different steps both ranks hold the same weights; one run folder."""
    import numpy as np

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    torchrun = Path(sys.executable).with_name("torchrun")
    command = [str(torchrun), "--nproc-per-node", "2", "--master-port", "29517", str(script)]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = np.load(tmp_path / "0.npz"), np.load(tmp_path / "1.npz")
    assert not np.array_equal(one["seen"], two["seen"])
    for name in set(one.files) - {"seen"}:
        assert np.array_equal(one[name], two[name]), name
    assert (tmp_path / "run" / "metrics.jsonl").exists()
