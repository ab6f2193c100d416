# SPDX-License-Identifier: Apache-2.0
"""Prints which CUDA the driver supports, as libcuda says, as one JSON object."""

import ctypes
import json


def cuda():
    """Returns the version such as 13.0; empty where there is no driver."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    number = ctypes.c_int()
    if library.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return ""
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


if __name__ == "__main__":
    print(json.dumps({"cuda": cuda()}))
