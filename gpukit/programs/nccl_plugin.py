# SPDX-License-Identifier: Apache-2.0
"""Calls a profiler plugin as NCCL 2.28 does (interface version 5), where there is no GPU.

Ranks are processes: they meet in files of a folder that all of them map.
"""

import ctypes
import mmap
import os
import platform
import queue
import struct
import threading
import time
import zlib

# Types of events, NCCL's own numbers.
GROUP, COLL, P2P, PROXY_OP, PROXY_STEP = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4
KERNEL_CH, GROUP_API, COLL_API, P2P_API, KERNEL_LAUNCH = 1 << 6, 1 << 8, 1 << 9, 1 << 10, 1 << 11
# States.
SEND_GPU_WAIT, SEND_WAIT, RECV_WAIT, RECV_FLUSH_WAIT, RECV_GPU_WAIT = 8, 9, 10, 11, 12
OP_IN_PROGRESS, SEND_PEER_WAIT, KERNEL_CH_STOP = 19, 20, 22
GROUP_START_API_STOP, GROUP_END_API_START = 23, 24

EVENT_BYTES = 112
CHANNELS = 2
STEPS = 4
CHUNK = 1 << 17
MAX_RANKS = 64
POLL_S = 0.0002
GLOBALTIMER_AHEAD_NS = 37_000_000  # the GPU's clock looks like Unix time, and is not

LOGGER = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p
)
VOID = ctypes.c_void_p
INIT = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(VOID), ctypes.c_uint64, ctypes.POINTER(ctypes.c_int), ctypes.c_char_p,
    ctypes.c_int, ctypes.c_int, ctypes.c_int, VOID)  # fmt: skip
START = ctypes.CFUNCTYPE(ctypes.c_int, VOID, ctypes.POINTER(VOID), VOID)
STOP = ctypes.CFUNCTYPE(ctypes.c_int, VOID)
STATE = ctypes.CFUNCTYPE(ctypes.c_int, VOID, ctypes.c_int, VOID)


class Table(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("init", INIT),
        ("start", START),
        ("stop", STOP),
        ("state", STATE),
        ("finalize", STOP),
    ]


texts = {}  # NCCL's are literals: they stay where they are


def text(value):
    """Returns the address of a string that is never freed."""
    kept = texts.setdefault(value, ctypes.create_string_buffer(value.encode()))
    return ctypes.addressof(kept)


def globaltimer():
    return time.time_ns() + GLOBALTIMER_AHEAD_NS


class Plugin:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        symbol = ctypes.c_char.in_dll(self.library, "ncclProfiler_v5")
        self.table = ctypes.cast(ctypes.addressof(symbol), ctypes.POINTER(Table)).contents
        self.mask = ctypes.c_int(0)  # one for the process, as in NCCL
        self.log = []
        self.logger = LOGGER(self.note)

    def note(self, level, flags, file, line, form, value):
        del level, flags, file, line
        self.log.append(form.decode().replace("%s", (value or b"").decode()))

    def start(self, context, kind, parent, rank, fields=()):
        """Starts an event and returns its handle; fields are (offset, format, value)."""
        event = ctypes.create_string_buffer(EVENT_BYTES)
        struct.pack_into("<QQi", event, 0, kind, parent or 0, rank)
        for offset, form, value in fields:
            struct.pack_into("<" + form, event, offset, value or 0)
        handle = VOID()
        if self.table.start(context, ctypes.byref(handle), ctypes.addressof(event)) != 0:
            raise RuntimeError(f"start event {kind}: the plugin failed")
        return handle.value

    def stop(self, handle):
        if handle:
            self.table.stop(handle)

    def state(self, handle, state, value=None):
        if handle:
            word = ctypes.c_uint64(value or 0)
            self.table.state(handle, state, None if value is None else ctypes.addressof(word))


class Communicator:
    """One rank of a communicator, with the thread that NCCL calls its proxy."""

    def __init__(self, plugin, folder, name, ranks, rank):
        self.plugin, self.ranks, self.rank = plugin, ranks, rank
        self.members = self.meeting(folder, name)
        self.sequence, self.batches = {}, 0
        seed = zlib.crc32(f"{folder} {name}".encode())
        logger = plugin.logger if platform.machine() == "x86_64" else None  # NCCL's takes any number of arguments
        context = VOID()
        plugin.table.init(
            ctypes.byref(context), seed << 32 | zlib.crc32(name.encode()), ctypes.byref(plugin.mask),
            name.encode(), ranks, ranks, rank, ctypes.cast(logger, VOID) if logger else None)  # fmt: skip
        self.context = context.value
        self.work = queue.Queue()
        self.thread = threading.Thread(target=self.progress, name="proxy", daemon=True)
        self.thread.start()

    def meeting(self, folder, name):
        descriptor = os.open(os.path.join(folder, "meet-" + name), os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(descriptor, 8 * MAX_RANKS)
        return memoryview(mmap.mmap(descriptor, 8 * MAX_RANKS)).cast("Q")

    def enqueue(self, ops):
        """Enqueues operations as one group: (function, count, bytes of an element, datatype, root or peer)."""
        plugin, rank = self.plugin, self.rank
        outer = plugin.start(self.context, GROUP_API, None, 0, [(24, "?", False), (28, "i", 1)])
        plugin.state(outer, GROUP_START_API_STOP)
        calls = [self.call(outer, op) for op in ops]
        plugin.state(outer, GROUP_END_API_START)
        group = plugin.start(self.context, GROUP, None, 0)
        # NCCL's planner takes the largest collective of a group first.
        order = sorted(range(len(ops)), key=lambda i: -ops[i][1] * ops[i][2])
        handles = [(ops[i], self.operation(calls[i], group, ops[i])) for i in order]
        plugin.stop(plugin.start(self.context, KERNEL_LAUNCH, outer, rank, [(24, "Q", 0x5EED)]))
        for _, handle in handles:
            plugin.stop(handle)
        plugin.stop(group)
        plugin.stop(outer)
        self.batches += 1
        self.work.put((self.batches, handles))

    def call(self, outer, op):
        function, count, _, datatype, peer = op
        common = [(24, "Q", text(function)), (32, "Q", count), (40, "Q", text(datatype))]
        if function in ("Send", "Recv"):
            handle = self.plugin.start(self.context, P2P_API, outer, 0, common + [(48, "Q", 0x5EED)])
        else:
            handle = self.plugin.start(self.context, COLL_API, outer, 0, common + [(48, "i", peer), (56, "Q", 0x5EED)])
        self.plugin.stop(handle)
        return handle

    def operation(self, call, group, op):
        function, count, size, datatype, peer = op
        if function in ("Send", "Recv"):
            return self.plugin.start(self.context, P2P, call, self.rank, [
                (24, "Q", text(function)), (40, "Q", text(datatype)), (48, "Q", count), (56, "i", peer),
                (60, "B", CHANNELS), (64, "Q", group)])  # fmt: skip
        if function in ("AllGather", "Broadcast"):  # NCCL moves these as bytes
            count, datatype = count * size, "ncclInt8"
        number = self.sequence.get(function, 0)
        self.sequence[function] = number + 1
        return self.plugin.start(self.context, COLL, call, self.rank, [
            (24, "Q", number), (32, "Q", text(function)), (56, "Q", count), (64, "i", peer),
            (72, "Q", text(datatype)), (80, "B", CHANNELS), (81, "B", 16), (88, "Q", text("RING")),
            (96, "Q", text("SIMPLE")), (104, "Q", group)])  # fmt: skip

    def progress(self):
        while True:
            item = self.work.get()
            if item is None:
                return
            self.run(*item)
            self.work.task_done()

    def run(self, number, handles):
        """What the device and the network do for the operations of one launch."""
        plugin = self.plugin
        kernels = [
            plugin.start(self.context, KERNEL_CH, handle, 0, [(24, "B", channel), (32, "Q", globaltimer())])
            for op, handle in handles
            if not self.to_itself(op)
            for channel in range(CHANNELS)
        ]
        self.members[self.rank] = number
        proxies = [p for op, handle in handles for p in self.proxies(op, handle)]
        while any(self.members[r] < number for r in range(self.ranks)):
            time.sleep(POLL_S)
        for proxy, step, send in proxies:
            self.steps(proxy, step, send)
        for kernel in kernels:
            plugin.state(kernel, KERNEL_CH_STOP, globaltimer())
            plugin.stop(kernel)

    def to_itself(self, op):
        """A message to itself, of which NCCL reports neither kernels nor proxies."""
        function, _, _, _, peer = op
        return function in ("Send", "Recv") and peer == self.rank

    def proxies(self, op, handle):
        if self.to_itself(op):
            return
        function, _, _, _, peer = op
        before, behind = (self.rank - 1) % self.ranks, (self.rank + 1) % self.ranks
        ends = {"Send": [(True, peer)], "Recv": [(False, peer)]}.get(function, [(True, behind), (False, before)])
        for send, other in ends:
            proxy = self.plugin.start(self.context, PROXY_OP, handle, self.rank, [
                (24, "i", os.getpid()), (28, "B", 0), (32, "i", other), (36, "i", STEPS), (40, "i", CHUNK),
                (44, "i", send)])  # fmt: skip
            self.plugin.state(proxy, OP_IN_PROGRESS)
            step = self.plugin.start(self.context, PROXY_STEP, proxy, self.rank, [(24, "i", 0)])
            self.plugin.state(step, SEND_GPU_WAIT if send else RECV_WAIT)
            yield proxy, step, send

    def steps(self, proxy, step, send):
        for number in range(STEPS):
            if number > 0:
                step = self.plugin.start(self.context, PROXY_STEP, proxy, self.rank, [(24, "i", number)])
                self.plugin.state(step, SEND_GPU_WAIT if send else RECV_WAIT)
            self.plugin.state(step, SEND_PEER_WAIT if send else RECV_FLUSH_WAIT, None if send else CHUNK)
            self.plugin.state(step, SEND_WAIT if send else RECV_GPU_WAIT, CHUNK if send else None)
            self.plugin.stop(step)
        self.plugin.stop(proxy)

    def synchronize(self):
        self.work.join()

    def close(self):
        self.work.put(None)
        self.thread.join()
        self.plugin.table.finalize(self.context)
