"""Nothing is wrong: the job takes step after step without a rest, so that dumps are taken
in the midst of one, and its recorder holds the last operations only. Dumps are asked for
without stacks, and written at once."""

import os

os.environ["TORCH_FR_BUFFER_SIZE"] = "100"

import job


def main(tensor, data):
    for step in range(1_000_000):
        job.step(tensor, data)
        if job.rank == 0 and step == 100:
            job.say_fault()


job.run(main)
