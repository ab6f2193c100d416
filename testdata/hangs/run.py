"""Runs one job of this folder: run.py FOLDER WORLD_SIZE OUT. Starts its ranks, waits for
the fault and WAIT seconds more, in which the others come to wait, asks the living for
their dumps, and ends all. seen.json says when each dump was written, by the file system,
and which processes had ended by themselves, with their exit status."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def wait_for(done, what, seconds):
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            sys.exit(f"wait for {what}: got none in {seconds} s")
        time.sleep(0.1)


folder, world, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
ranks = [
    subprocess.Popen([sys.executable, f"{folder}/train.py"], env={
        **os.environ, "RANK": str(rank), "WORLD_SIZE": str(world), "OUT": str(out), "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": f"{os.getcwd()}:{os.environ.get('PYTHONPATH', '')}",
    })
    for rank in range(world)
]
try:
    wait_for((out / "fault").exists, "the fault", 120)
    time.sleep(float(os.environ["WAIT"]))
    (out / "dump").touch()
    living = [rank for rank, process in enumerate(ranks) if process.poll() is None]
    wait_for(lambda: all((out / f"rank_{rank}").exists() for rank in living), "dumps", 60)
    ended = {rank: process.poll() for rank, process in enumerate(ranks) if process.poll() is not None}
    (out / "seen.json").write_text(json.dumps({
        "written": {rank: (out / f"rank_{rank}").stat().st_mtime_ns for rank in living}, "ended": ended,
    }, indent=1) + "\n")
    print(f"{folder}: dumps of {living}, ended {ended}")
finally:
    for process in ranks:
        process.kill()
        process.wait()
