# Writes python<protocol>.pickle: the dump of decode_test.go as Python's pickle writes it.
import pickle, sys

main = {"name": "main", "filename": "/job/train.py", "line": 40}
dump = {
    "version": "2.10",
    "pg_config": {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
        "7": {"name": "7", "desc": "pp", "ranks": "[1, 3]"},
    },
    "comm_lib_version": "2.27.3",
    "pg_status": {
        "0": {"last_enqueued_collective": 9, "last_started_collective": -1, "last_completed_collective": 8},
        "2": {"last_enqueued_collective": 4, "last_started_collective": 3, "last_completed_collective": 3},
    },
    "entries": [
        {
            "frames": [{"name": "forward", "filename": "/job/train.py", "line": 12}, main],
            "record_id": 20, "pg_id": 0, "process_group": ("0", "default_pg"),
            "thread_name": "python3", "thread_id": "23456244340032",
            "collective_seq_id": 8, "p2p_seq_id": 0, "op_id": 8, "profiling_name": "nccl:all_reduce",
            "time_created_ns": 1758580155793872443, "duration_ms": 2.5,
            "input_sizes": [[2048, 1, 5120]], "input_dtypes": ["BFloat16"],
            "output_sizes": [[2048, 1, 5120]], "output_dtypes": ["BFloat16"],
            "state": "completed", "time_discovered_started_ns": 1758580155793900000,
            "time_discovered_completed_ns": 1758580155796400000, "retired": True, "timeout_ms": 180000, "is_p2p": False,
        },
        {
            "frames": [{"name": "send", "filename": "/job/pipe.py", "line": 7}, main],
            "record_id": 21, "pg_id": 2, "process_group": ("7", "pp"),
            "thread_name": "pt_autograd_0", "thread_id": "23437663053504",
            "collective_seq_id": 1, "p2p_seq_id": 70000, "op_id": 70001, "profiling_name": "nccl:send 0->1",
            "time_created_ns": 1758580155793914277,
            "input_sizes": [[4], [], [3, 2]], "input_dtypes": ["Long", "Float", "Half"],
            "output_sizes": [], "output_dtypes": [],
            "state": "scheduled", "time_discovered_started_ns": None, "time_discovered_completed_ns": None,
            "retired": False, "timeout_ms": 600000, "is_p2p": True,
        },
    ],
}
for protocol in (2, 3, 4, 5):
    with open(f"python{protocol}.pickle", "wb") as f:
        pickle.dump(dump, f, protocol=protocol)
