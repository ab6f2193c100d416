"""What saves hold, so that two can be compared."""

import hashlib
import json
import os


def files(root, below, canonical=lambda name, path: None, skip=lambda name: False):
    """Returns the files at and below a path, by name, each with what it holds.

    canonical(name, path) returns what a file holds whose bytes differ from run to run, None for others.
    """
    out = {}
    top = os.path.join(root, below)
    if os.path.isfile(top):
        return {below: canonical(below, top) or digest(top)}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            if not skip(relative):
                out[relative] = canonical(relative, path) or digest(path)
    return out


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def value(v):
    """Returns a digest of a value as torch.load gives it."""
    h = hashlib.sha256()
    _add(h, v)
    return h.hexdigest()


def _add(h, v):
    import torch

    if isinstance(v, torch.Tensor):
        h.update(f"tensor {v.dtype} {tuple(v.shape)} ".encode())
        h.update(v.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    elif isinstance(v, dict):
        for k in sorted(v, key=repr):
            h.update(f"key {k!r} ".encode())
            _add(h, v[k])
    elif isinstance(v, (list, tuple)):
        h.update(f"list {len(v)} ".encode())
        for item in v:
            _add(h, item)
    elif hasattr(v, "__dict__"):
        h.update(type(v).__name__.encode())
        _add(h, vars(v))
    else:
        h.update(repr(v).encode())


def forked(load):
    """Returns what a load in a fork returns, {} where it raises or dies."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            with os.fdopen(write, "w") as f:
                json.dump(load(), f)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as f:
        data = f.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(data) if status == 0 else {}
