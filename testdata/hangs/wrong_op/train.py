"""Rank 2 gathers where the others reduce, in the fifth step."""

import torch
import torch.distributed as dist

import job


def main(tensor, data):
    for step in range(20):
        job.step(tensor, data)
        if step == 4 and job.rank == 2:
            job.say_fault()
            parts = [torch.empty_like(job.gradients) for _ in range(job.world)]
            dist.all_gather(parts, job.gradients)
        elif step == 4:
            dist.all_reduce(job.gradients)


job.run(main)
