"""Rank 1 sends to rank 2, which never receives it and goes on to the next step."""

import torch.distributed as dist

import job


def main(tensor, data):
    for step in range(20):
        job.step(tensor, data)
        if step == 4 and job.rank == 1:
            job.say_fault()
            dist.send(job.activations, 2)


job.run(main)
