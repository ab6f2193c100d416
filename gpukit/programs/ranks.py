# SPDX-License-Identifier: Apache-2.0
"""Trains a small model on ranks that share one GPU, with Gloo or NCCL between them.

An ordinary program: it knows nothing of Lockstep, which is started around it. On request one
rank has a fault. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set as torchrun sets them.
Without a GPU (--stand-in) the model runs on the CPU, and a stand-in of CUPTI is given kernels
that take the time that the GPU's would. That one is loaded before PyTorch, which brings the
real CUPTI along. Prints what it did as one JSON object.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
from datetime import timedelta


def stand_in():
    """Loads the stand-in of CUPTI and Lockstep's library, as libcuda would; None: not asked for."""
    if "--stand-in" not in sys.argv:
        return None
    mock, plugin = sys.argv[sys.argv.index("--stand-in") + 1 :][:2]
    library = ctypes.CDLL(mock)
    ctypes.CDLL(plugin).InitializeInjection()
    return library


MOCK = stand_in()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

FAULTS = ("none", "compute", "work", "cpu", "data")
LAYERS = 4
# Of the GPU's time, after each layer: several of the slices, of some 2 ms, in which two
# processes take turns.
SPIN_MS = 6.0
CYCLES_PER_MS = 1_700_000  # the same on all ranks, whatever the clock: they share it
MORE = 12  # times as many rows
SLOWER = 2.0  # times as long, as a GPU at half its clock
ROWS = 16  # that a sample has
PROFILED = 20  # steps
LATE_S = 0.03  # of a host in each step, or of a batch
BUCKETS = 2
GEMM = b"_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4EEvNT_6ParamsE"
SPIN = b"_ZN2at4cuda40_GLOBAL__N__00000000_8_Sleep_cu_0000000011spin_kernelEl"


class Cuda:
    """The GPU."""

    width, batch = 1024, 4096

    def __init__(self):
        torch.cuda.set_device(0)
        self.torch_device = torch.device("cuda", 0)
        self.marks = []
        self.origin, self.origin_ms = min((self._anchor() for _ in range(20)), key=lambda anchor: anchor[2])[:2]

    def _anchor(self):
        """Returns an event, the host's time of it in ms, and how long both may be apart."""
        event = torch.cuda.Event(enable_timing=True)
        before = time.monotonic() * 1e3
        event.record()
        event.synchronize()
        after = time.monotonic() * 1e3
        return event, (before + after) / 2, after - before

    def mark(self):
        """Notes that the device has come to this place, once it does."""
        self.marks.append(torch.cuda.Event(enable_timing=True))
        self.marks[-1].record()

    def came_ms(self):
        """Returns the times of all marks, in ms of the host's monotonic clock."""
        return [self.origin_ms + self.origin.elapsed_time(event) for event in self.marks]

    def layer(self, function, x, milliseconds):
        result = function(x)
        torch.cuda._sleep(int(milliseconds * CYCLES_PER_MS))
        return result

    def wait(self):
        torch.cuda.synchronize()


class StandIn:
    """A GPU that is not there: kernels are sleep, and CUPTI's stand-in has their records."""

    width, batch = 64, 16
    torch_device = torch.device("cpu")

    def __init__(self, mock):
        self.mock = mock
        self.mock.mock_cupti_now.restype = ctypes.c_uint64
        times = [ctypes.c_uint64, ctypes.c_uint64]
        self.mock.mock_cupti_launch.argtypes = [ctypes.c_uint32, *times, ctypes.c_uint32]
        self.mock.mock_cupti_kernel.argtypes = [ctypes.c_char_p, *times, *[ctypes.c_uint32] * 3]
        self.launches = 0
        self.marks = []

    def mark(self):
        self.marks.append(time.monotonic() * 1e3)

    def came_ms(self):
        return self.marks

    def layer(self, function, x, milliseconds):
        self._kernel(GEMM, x.shape[0] / self.batch)
        result = function(x)
        self._kernel(SPIN, milliseconds)
        return result

    def _kernel(self, name, milliseconds):
        self.launches += 1
        now = self.mock.mock_cupti_now
        began = now()
        self.mock.mock_cupti_launch(self.launches, began, now(), os.getpid())
        start = now()
        time.sleep(milliseconds / 1e3)
        self.mock.mock_cupti_kernel(name, start, now(), 7, 0, self.launches)

    def wait(self):
        self.mock.mock_cupti_flush()


class Samples(Dataset):
    """Rows that a batch repeats, so that the host has little to do; each takes its time to be read."""

    def __init__(self, count, width, delay):
        self.count, self.width, self.delay = count, width, delay

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.delay:
            time.sleep(self.delay)
        source = torch.Generator().manual_seed(index)
        return torch.randn(ROWS, self.width, generator=source)


class Model(torch.nn.Module):
    def __init__(self, device, spin_ms):
        super().__init__()
        torch.manual_seed(1)
        self.device, self.spin_ms = device, spin_ms
        self.layers = torch.nn.ModuleList(torch.nn.Linear(device.width, device.width) for _ in range(LAYERS))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(self.device.layer(layer, x, self.spin_ms))
        return x


def reduce_gradients(model, world, backend):
    """Averages the gradients over the ranks in buckets; with Gloo by way of the host."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    size = -(-len(parameters) // BUCKETS)
    for at in range(0, len(parameters), size):
        bucket = parameters[at : at + size]
        flat = torch.cat([p.grad.flatten() for p in bucket])
        flat = flat.cpu() if backend == "gloo" else flat
        dist.all_reduce(flat)
        flat = (flat / world).to(bucket[0].device)
        for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
            p.grad.copy_(part.view_as(p))


def start_profiler(args):
    """Starts PyTorch's profiler, which writes the trace of the last steps; None: not asked for."""
    if not args.profile:
        return None
    path = os.path.join(args.profile, f"rank{dist.get_rank()}.json.gz")
    profiler = torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=args.steps - PROFILED - 4, warmup=3, active=PROFILED, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(path),
    )
    profiler.start()
    return profiler


def train(args, device, world):
    times = device.batch // ROWS * (MORE if args.fault == "work" else 1)
    model = Model(device, SPIN_MS * (SLOWER if args.fault == "compute" else 1)).to(device.torch_device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    samples = Samples(args.steps, device.width, LATE_S if args.fault == "data" else 0)
    took, losses = [], []
    profiler = start_profiler(args)
    for rows in DataLoader(samples, batch_size=None):
        began = time.perf_counter()
        if args.fault == "cpu":
            time.sleep(LATE_S)
        batch = rows.to(device.torch_device).repeat(times, 1)
        loss = model(batch).square().mean()
        loss.backward()
        device.mark()  # from here on it waits for the other rank
        reduce_gradients(model, world, args.backend)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        took.append((time.perf_counter() - began) * 1e3)
        if profiler:
            profiler.step()
    if profiler:
        profiler.stop()
    device.wait()
    return took, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fault", choices=FAULTS, default="none", help="of the rank --fault-rank")
    parser.add_argument("--fault-rank", type=int, default=1)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo")
    parser.add_argument("--profile", metavar="FOLDER", help="have PyTorch's profiler record the last steps")
    parser.add_argument("--stand-in", nargs=2, metavar=("CUPTI", "PLUGIN"), help="no GPU: these libraries")
    args = parser.parse_args()
    torch.set_num_threads(1)
    device = StandIn(MOCK) if MOCK else Cuda()
    dist.init_process_group(args.backend, timeout=timedelta(seconds=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    fault = args.fault
    if rank != args.fault_rank:
        args.fault = "none"
    took, losses = train(args, device, world)
    dist.destroy_process_group()
    print(json.dumps({
        "rank": rank, "world": world, "fault": fault, "fault_rank": args.fault_rank, "steps": len(took),
        "step_ms": round(statistics.median(took), 3), "loss_first": losses[0], "loss_last": losses[-1],
        "came_ms": [round(at, 3) for at in device.came_ms()],
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
