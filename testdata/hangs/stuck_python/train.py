"""Rank 2 waits for a lock that its own thread holds, before its eighth step."""

import threading

import job

lock = threading.Lock()


def main(tensor, data):
    for step in range(20):
        if job.rank == 2 and step == 7:
            lock.acquire()
            job.say_fault()
            lock.acquire()
        job.step(tensor, data)


job.run(main)
