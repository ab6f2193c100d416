"""Rank 1 is killed in its sixth step, as the system does where memory is out."""

import os
import signal

import job


def main(tensor, data):
    for step in range(20):
        if job.rank == 1 and step == 5:
            job.say_fault()
            os.kill(os.getpid(), signal.SIGKILL)
        job.step(tensor, data)


job.run(main)
