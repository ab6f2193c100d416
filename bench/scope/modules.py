# SPDX-License-Identifier: Apache-2.0

"""Prints what a call of a submodule costs without the hook of modules and with it, in µs."""

import sys
import time

SUBMODULES = 1000
ROUNDS = 40


def best(model, x):
    took = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        model(x)
        took.append(time.perf_counter() - begin)
    return min(took) / SUBMODULES * 1e6


def main():
    try:
        import torch
    except ImportError:
        sys.exit(print("no PyTorch: the hook of modules is not measured"))
    import lockstep_scope

    class Same(torch.nn.Module):
        def forward(self, x):
            return x

    model, x = torch.nn.Sequential(*(Same() for _ in range(SUBMODULES))), torch.ones(1)
    plain = best(model, x)
    nothing = [
        torch.nn.modules.module.register_module_forward_pre_hook(lambda module, args: None),
        torch.nn.modules.module.register_module_forward_hook(lambda module, args, result: None, always_call=True),
    ]
    empty = best(model, x)
    for handle in nothing:
        handle.remove()
    lockstep_scope.install("modules")
    hooked = best(model, x)
    print(f"a submodule's call: {plain:.2f} µs, with hooks that do nothing {empty:.2f} µs, with ours {hooked:.2f} µs")


main()
