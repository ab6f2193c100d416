"""Rank 1 reduces a larger bucket of gradients than the others in the fifth step. Gloo ends
the process that receives more than it awaits."""

import torch
import torch.distributed as dist

import job


def main(tensor, data):
    for step in range(20):
        job.step(tensor, data)
        if step == 4:
            bucket = job.gradients
            if job.rank == 1:
                job.say_fault()
                bucket = torch.ones(5000)
            dist.all_reduce(bucket)


job.run(main)
