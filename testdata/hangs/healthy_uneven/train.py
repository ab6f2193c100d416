"""Nothing is wrong: rank 1 has more to do in each step than the others, which wait for it
most of the time."""

import os
import time

os.environ["TORCH_FR_BUFFER_SIZE"] = "100"

import job


def main(tensor, data):
    for step in range(1_000_000):
        if job.rank == 1:
            time.sleep(0.3)
        job.step(tensor, data)
        if job.rank == 0 and step == 20:
            job.say_fault()


job.run(main)
