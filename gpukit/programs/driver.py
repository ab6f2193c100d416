# SPDX-License-Identifier: Apache-2.0
"""Prints which CUDA the driver supports, as libcuda reports it, as one JSON object."""

import json


def cuda():
    """Returns the version such as 13.0; empty where there is no driver."""
    try:
        import ctypes  # systems with a minimal Python lack it

        library = ctypes.CDLL("libcuda.so.1")
    except (ImportError, OSError):
        return ""
    number = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return ""
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


if __name__ == "__main__":
    print(json.dumps({"cuda": cuda()}))
