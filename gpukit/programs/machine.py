# SPDX-License-Identifier: Apache-2.0
"""Prints what PyTorch of this interpreter can use, as one JSON object (kit.Look reads it)."""

import glob
import json
import os
import sys


def beside(packages, pattern):
    """Returns the first file that matches below the package folders; empty where none does."""
    for folder in packages:
        found = sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", pattern)))
        if found:
            return found[0]
    return ""


def nccl_version(path):
    """Returns the version that the library reports, such as 2.28.9."""
    import ctypes  # systems with a minimal Python lack it

    number = ctypes.c_int()
    if ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number)) != 0:
        return ""
    major, rest = divmod(number.value, 10000)
    return f"{major}.{rest // 100}.{rest % 100}"


def device(torch):
    """Returns the first device, having used it once."""
    torch.ones(1, device="cuda").add_(1).item()
    seen = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info(0)
    return {
        "name": seen.name,
        "uuid": "GPU-" + str(getattr(seen, "uuid", "")).removeprefix("GPU-"),
        "capability": f"{seen.major}.{seen.minor}",
        "memory_mib": total >> 20,
        "free_mib": free >> 20,
        "count": torch.cuda.device_count(),
    }


def look():
    answer = {"python": sys.version.split()[0], "libc": " ".join(os.confstr("CS_GNU_LIBC_VERSION").split())}
    try:
        import ctypes  # noqa: F401  a minimal installation has none
    except Exception as error:
        answer["unusable"] = f"import ctypes: {type(error).__name__}: {error}"
        return answer
    try:
        import torch
    except Exception as error:  # a broken installation raises more than ImportError
        answer["reason"] = f"import torch: {type(error).__name__}: {error}"
        return answer
    site = [os.path.dirname(os.path.dirname(torch.__file__))]
    found = {
        "version": torch.__version__,
        "cuda": torch.version.cuda or "",
        "cupti": beside(site, "libcupti.so.1[0-9]"),
        "libnccl": beside(site, "libnccl.so.2"),
        "nccl": "",
        "reason": "",
    }
    answer["torch"] = found
    try:
        if found["libnccl"]:
            found["nccl"] = nccl_version(found["libnccl"])
        elif torch.version.cuda and torch.cuda.nccl.is_available is not None:
            found["nccl"] = ".".join(str(n) for n in torch.cuda.nccl.version())
    except Exception as error:
        answer["nccl_reason"] = f"{type(error).__name__}: {error}"
    try:
        if not torch.version.cuda:
            found["reason"] = f"PyTorch {torch.__version__} was built without CUDA"
        elif not torch.cuda.is_available():
            torch.cuda.init()  # raises with the reason
            found["reason"] = "torch.cuda.is_available() is False"
        else:
            answer["gpu"] = device(torch)
    except Exception as error:
        found["reason"] = f"{type(error).__name__}: {error}"
    return answer


if __name__ == "__main__":
    print(json.dumps(look()))
