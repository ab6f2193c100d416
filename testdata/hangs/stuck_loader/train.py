"""Rank 5's data loader never hands out the seventh batch."""

import queue
import threading

import job


class Loader:
    """Loads batches in a thread of its own."""

    def __init__(self):
        self.batches = queue.Queue(maxsize=2)
        threading.Thread(target=self.load, name="loader", daemon=True).start()

    def load(self):
        for batch in range(20):
            if job.rank == 5 and batch == 6:
                job.say_fault()
                threading.Event().wait()
            self.batches.put(batch)

    def next_batch(self):
        return self.batches.get()


def main(tensor, data):
    loader = Loader()
    for _ in range(20):
        loader.next_batch()
        job.step(tensor, data)


job.run(main)
