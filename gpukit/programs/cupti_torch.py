# SPDX-License-Identifier: Apache-2.0
"""A training step of a small transformer in PyTorch, and torch.profiler, for cupti.py."""

import ctypes
import os

LAYERS, WIDTH, HEADS = 6, 1024, 16
LAYERS_COMPILED = 2  # of which the compiler takes half a minute
BATCH, LENGTH = 8, 1024
SENTINELS = 64


def build(torch, layers, width, heads):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            qkv = self.qkv(self.first(x)).view(batch, length, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    return nn.Sequential(*[Block() for _ in range(layers)], nn.LayerNorm(width))


class Torch:
    """device "cpu" is a small model without CUDA, to try the rest."""

    def __init__(self, mode, device):
        self.mode, self.device = mode, device
        self.cuda = device == "cuda"
        self.graph = None
        self.memset = None

    def start(self):
        import torch

        self.torch = torch
        torch.manual_seed(7)
        layers = LAYERS_COMPILED if self.mode == "compile" else LAYERS
        layers, width, heads, batch, length = (layers, WIDTH, HEADS, BATCH, LENGTH) if self.cuda else (2, 64, 4, 2, 16)
        kind = torch.bfloat16
        model = build(torch, layers, width, heads).to(device=self.device, dtype=kind)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True, capturable=self.cuda)
        self.net = torch.compile(model, dynamic=False) if self.mode == "compile" else model
        # One sample: how long copies from the host take varies more than the kernels do.
        self.host = torch.randn(length, width, dtype=kind)
        if self.cuda:
            self.host = self.host.pin_memory()
            self.memset = find_memset()
        self.x = torch.randn(batch, length, width, dtype=kind, device=self.device)
        self.target = torch.randn(batch, length, width, device=self.device)
        self.scratch = torch.zeros(1 << 20, dtype=torch.uint8, device=self.device)
        self.seen = torch.zeros((), device=self.device)
        self.step()
        self.sync()
        if self.mode == "graph" and self.cuda:
            self.capture()
        return self.facts(model)

    def facts(self, model):
        torch = self.torch
        found = {
            "torch": torch.__version__,
            "parameters": sum(p.numel() for p in model.parameters()),
            "memset": self.memset is not None,
            "teardown": os.environ.get("TEARDOWN_CUPTI", ""),
        }
        if self.cuda:
            seen = torch.cuda.get_device_properties(0)
            found["gpu"] = seen.name
            found["uuid"] = "GPU-" + str(getattr(seen, "uuid", "")).replace("GPU-", "", 1)
        return found

    def capture(self):
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.optimizer.zero_grad(set_to_none=True)
                self.body()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.body()
        self.graph = graph

    def body(self):
        if self.memset is not None:
            stream = self.torch.cuda.current_stream().cuda_stream
            self.memset(self.scratch.data_ptr(), 0, self.scratch.numel(), stream)
        loss = self.torch.nn.functional.mse_loss(self.net(self.x).float(), self.target)
        loss.backward()
        self.optimizer.step()
        self.seen.copy_(loss.detach())

    def step(self):
        self.x[0].copy_(self.host, non_blocking=True)
        if self.graph is not None:
            self.graph.replay()
            return
        self.optimizer.zero_grad(set_to_none=True)
        self.body()

    def sync(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def mark(self):
        """Returns a CUDA event of now; None without CUDA."""
        if not self.cuda:
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first, last):
        """Returns ms between two events that are over, by the device's own clock."""
        return first.elapsed_time(last) if self.cuda else 0.0

    def sentinels(self):
        for _ in range(SENTINELS):
            if self.cuda:
                self.torch.cuda._sleep(100)

    def tiny(self):
        self.seen.add_(1.0)

    def profile_begin(self):
        import torch
        import torch.profiler

        kinds = [torch.profiler.ProfilerActivity.CPU]
        if self.cuda:
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        profiler = torch.profiler.profile(activities=kinds)
        profiler.start()
        return profiler

    def profile_end(self, profiler):
        profiler.stop()

    def profile_export(self, profiler, path):
        profiler.export_chrome_trace(path)


def find_memset():
    """Returns cudaMemsetAsync of the runtime that PyTorch has loaded; None where it has another name."""
    for name in ("libcudart.so.13", "libcudart.so.12"):
        try:
            # Only one that is loaded already: 4 is RTLD_NOLOAD.
            call = ctypes.CDLL(name, mode=os.RTLD_LAZY | getattr(os, "RTLD_NOLOAD", 4)).cudaMemsetAsync
        except (OSError, AttributeError):
            continue
        call.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p]
        return call
    return None
