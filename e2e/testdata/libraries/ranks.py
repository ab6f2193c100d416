"""Runs a function on several ranks that share one import of the libraries."""

import os
import socket

import torch._dynamo  # else each rank loads it when it first trains
import torch.multiprocessing as mp


def _work(rank, count, port, function, args):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    function(*args)


def run(count, function, *args):
    """Runs function(*args) on that many ranks and fails where one of them does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(_work, (count, port, function, args), count, start_method="fork")
