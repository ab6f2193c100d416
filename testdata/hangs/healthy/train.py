"""Nothing is wrong: dumps are asked for while the job runs."""

import time

import job


def main(tensor, data):
    for step in range(1_000_000):
        job.step(tensor, data)
        time.sleep(0.1)
        if job.rank == 0 and step == 5:
            job.say_fault()


job.run(main)
