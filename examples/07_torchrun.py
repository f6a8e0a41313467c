"""Run ranks of environments under torchrun and add their speed up.

    torchrun --standalone --nproc-per-node 2 examples/07_torchrun.py --num-envs 16

--num-envs is per rank. Seeds, cores and displays are split with no configuration; rank 0 prints.
Use the backend nccl on GPUs.
"""

import argparse
import time

import numpy as np
import torch
import torch.distributed as dist

import maniple
from maniple.core.rank import Rank

parser = argparse.ArgumentParser()
parser.add_argument("--task", default="so101/Reach-v0")
parser.add_argument("--num-envs", type=int, default=8)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--engine", default="process")
options = parser.parse_args()

rank = Rank.here()
if rank.world_size > 1:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")

envs = maniple.make_vec(options.task, options.num_envs, engine=options.engine)
first, _ = envs.reset(seed=0)
rng = np.random.default_rng(rank.rank)
start = time.perf_counter()
for _ in range(options.steps):
    envs.step(rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32))
mine = options.num_envs * options.steps / (time.perf_counter() - start)

# The first target of every rank: different, although all of them were given the same seed.
told = torch.tensor([mine, float(options.num_envs), float(first["target_pos"][0, 0])]).double()
everyone = [told]
if rank.world_size > 1:
    everyone = [torch.zeros_like(told) for _ in range(rank.world_size)]
    dist.all_gather(everyone, told)
if rank.is_main:
    table = torch.stack(everyone)
    print(f"{rank.world_size} ranks, {int(table[:, 1].sum())} environments")
    print(f"{table[:, 0].sum():,.0f} env-steps/s together")
    print("first targets:", " ".join(f"{x:.6f}" for x in table[:, 2]))
envs.close()
if rank.world_size > 1:
    dist.destroy_process_group()
