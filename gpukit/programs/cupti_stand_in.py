# SPDX-License-Identifier: Apache-2.0
"""A device without a device, for cupti.py: the stand-in of libcupti delivers a known list of
kernels, copies and sets, and another profiler writes what it got as torch.profiler does."""

import ctypes
import json
import threading
import time

SENTINELS = 64
BUFFER = 1 << 20
COPY, SET, RUNTIME, KERNEL = 1, 2, 5, 10
TAKEN = 39

# Mangled as CUPTI delivers a name, and as torch.profiler writes it; ns that one takes.
KERNELS = (
    ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
     "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)", 4100),
    ("_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_9"
     "ADAM_MODEE1ELb0EEEJPKfEEEvT_T0_DpT1_",
     "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<4>, "
     "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*>"
     "(at::native::(anonymous namespace)::TensorListMetadata<4>, "
     "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*)", 21000),
    ("_ZN8internal5gemvx6kernelIiiffffLb0ELb1ELb1ELb0ELi7ELb0E18cublasGemvParamsExIi30cublasGemvTensorStridedBatchedIKfES5_S3_IfEfEEE"
     "NSt9enable_ifIXntT5_EvE4typeET11_",
     "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float, false, true, true, false, 7, "
     "false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float>, float> >(cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float>)", 9300),
    ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", 55000),
    ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8",
     "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8", 47000),
    ("triton_poi_fused_add_gelu_3", "triton_poi_fused_add_gelu_3", 7700),
)
SPIN = ("_ZN2at4cuda12_GLOBAL__N_111spin_kernelEl", "at::cuda::(anonymous namespace)::spin_kernel(long)", 1000)
TINY = KERNELS[0]
STEP = tuple(KERNELS[i] for i in (0, 3, 0, 4, 5, 3, 2, 0, 5, 4, 3, 1, 1, 0)) * 3
SHOWN = {mangled: shown for mangled, shown, _ in (*KERNELS, SPIN)}
LEAD = 3000  # ns from a call to its kernel


class StandIn:
    def __init__(self, mode, cupti, plugin):
        self.graph = 7 if mode == "graph" else 0
        self.cupti = ctypes.CDLL(cupti)  # the plugin loads the same, by LOCKSTEP_CUPTI
        self.plugin = ctypes.CDLL(plugin)
        self.cupti.mock_cupti_now.restype = ctypes.c_uint64
        self.cupti.mock_cupti_kernel_size.restype = ctypes.c_size_t
        self.correlation, self.idle_at = 0, 0
        # Read as the process ends, when Python's own memory is gone.
        keep = ctypes.CDLL(None).strdup
        keep.restype = ctypes.c_void_p
        self.names = {mangled: keep(mangled.encode()) for mangled in SHOWN}

    def start(self):
        self.plugin.InitializeInjection()
        return {"torch": "", "gpu": "", "uuid": "", "parameters": 0, "memset": True, "teardown": ""}

    def now(self):
        return self.cupti.mock_cupti_now()

    def launch(self):
        """Returns the call's correlation and its begin."""
        self.correlation += 1
        begin = self.now()
        thread = threading.get_native_id()
        self.cupti.mock_cupti_launch(self.correlation, ctypes.c_uint64(begin), ctypes.c_uint64(begin + 1500), thread)
        return self.correlation, begin

    def span(self, begin, takes):
        start = max(self.idle_at, begin + LEAD)
        takes *= 2 if begin < 10**18 else 1  # ticks, where the clock counts them
        self.idle_at = start + takes
        return ctypes.c_uint64(start), ctypes.c_uint64(self.idle_at)

    def kernel(self, kernel):
        correlation, begin = self.launch()
        start, end = self.span(begin, kernel[2])
        self.cupti.mock_cupti_kernel(ctypes.c_void_p(self.names[kernel[0]]), start, end, 7, 0, correlation)

    def node(self, kernel, correlation, begin):
        """A kernel of a graph: the stand-in of libcupti has no call for it."""
        record = ctypes.create_string_buffer(self.cupti.mock_cupti_kernel_size(0))
        start, end = self.span(begin, kernel[2])

        def put(kind, at, value):
            kind.from_buffer(record, at).value = value

        put(ctypes.c_uint32, 0, KERNEL)
        put(ctypes.c_uint64, 16, start.value)
        put(ctypes.c_uint64, 24, end.value)
        put(ctypes.c_uint32, 48, 7)
        put(ctypes.c_uint32, 92, correlation)
        put(ctypes.c_uint64, 104, self.names[kernel[0]])
        put(ctypes.c_uint64, 144, 1)
        put(ctypes.c_uint32, 156, self.graph)
        if self.cupti.mock_cupti_enabled(KERNEL):
            self.cupti.mock_cupti_record(record, ctypes.c_size_t(len(record)))

    def step(self):
        correlation, begin = self.launch()
        start, end = self.span(begin, 5200)
        self.cupti.mock_cupti_copy(ctypes.c_uint64(1 << 20), start, end, 7, 0, correlation)
        correlation, begin = self.launch()
        start, end = self.span(begin, 1900)
        self.cupti.mock_cupti_set(ctypes.c_uint64(1 << 20), start, end, 7, 0, correlation)
        if self.graph:
            correlation, begin = self.launch()
        for kernel in STEP:
            if self.graph:
                self.node(kernel, correlation, begin)
            else:
                self.kernel(kernel)

    def sync(self):
        while self.now() < self.idle_at:
            time.sleep(0.0001)

    def mark(self):
        return None

    def between(self, first, last):
        return 0.0  # no events

    def sentinels(self):
        for _ in range(SENTINELS):
            self.kernel(SPIN)

    def tiny(self):
        self.kernel(TINY)

    def profile_begin(self):
        profiler = Other(self.cupti)
        profiler.begin()
        self.idle_at = 0  # the clock is another now
        return profiler

    def profile_end(self, profiler):
        profiler.end()

    def profile_export(self, profiler, path):
        profiler.export(path)


SIZE = ctypes.POINTER(ctypes.c_size_t)
REQUEST = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), SIZE, SIZE)
CLOCK = ctypes.CFUNCTYPE(ctypes.c_uint64)
COMPLETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


TICKS_FROM = time.time_ns() - 10**12


def ticks():
    """Imitates the processor's counter."""
    return 2 * (time.time_ns() - TICKS_FROM)


def of_ticks(stamp):
    return TICKS_FROM + stamp // 2


class Other:
    """Another client of CUPTI: as torch.profiler it passes over buffers that it did not give
    out, keeps its subscription, and leaves CUPTI a clock that counts ticks. That it flushes
    as it begins is this one's own."""

    clock = CLOCK(ticks)

    kept = []  # buffers, and functions that libcupti may call as long as the process lives
    subscriber = ctypes.c_void_p()

    def __init__(self, cupti):
        self.cupti, self.buffers, self.full, self.events = cupti, {}, [], []
        self.functions = (REQUEST(self.request), COMPLETE(self.complete))
        Other.kept.append(self.functions)

    def begin(self):
        if not Other.subscriber:
            result = self.cupti.cuptiSubscribe(ctypes.byref(Other.subscriber), None, None)
            if result != 0:
                raise OSError(f"cuptiSubscribe: got {result}; want 0: another holds the subscription")
        self.cupti.cuptiActivityRegisterTimestampCallback(Other.clock)
        self.cupti.cuptiActivityRegisterCallbacks(*self.functions)
        for kind in (KERNEL, COPY, SET, RUNTIME):
            self.cupti.cuptiActivityEnable(kind)
        self.cupti.cuptiActivityFlushAll(0)
        self.full.clear()

    def end(self):
        for kind in (KERNEL, COPY, SET, RUNTIME):
            self.cupti.cuptiActivityDisable(kind)
        self.cupti.cuptiActivityFlushAll(1)
        for address, valid in self.full:
            self.read(address, valid)

    def request(self, buffer, size, most):
        memory = ctypes.create_string_buffer(BUFFER + 8)
        address = -(-ctypes.addressof(memory) // 8) * 8
        Other.kept.append(memory)
        self.buffers[address] = memory
        buffer[0], size[0], most[0] = address, BUFFER, 0

    def complete(self, _context, _stream, buffer, _size, valid):
        if buffer in self.buffers:
            self.full.append((buffer, valid))

    def read(self, address, valid):
        record = ctypes.c_void_p()
        buffer, size = ctypes.c_void_p(address), ctypes.c_size_t(valid)
        while self.cupti.cuptiActivityGetNextRecord(buffer, size, ctypes.byref(record)) == 0:
            self.take(record.value)

    def take(self, at):
        def get(kind, offset):
            return kind.from_address(at + offset).value

        kind = get(ctypes.c_uint32, 0)
        if kind == RUNTIME:
            args = {"cbid": get(ctypes.c_uint32, 4), "correlation": get(ctypes.c_uint32, 32)}
            start, end, thread = get(ctypes.c_uint64, 8), get(ctypes.c_uint64, 16), get(ctypes.c_uint32, 28)
            self.add("cuda_runtime", "cudaLaunchKernel", start, end, thread, args)
        elif kind == KERNEL:
            name = SHOWN[ctypes.string_at(get(ctypes.c_uint64, 104)).decode()]
            args = {"device": 0, "context": 1, "stream": 7, "correlation": get(ctypes.c_uint32, 92)}
            self.add("kernel", name, get(ctypes.c_uint64, 16), get(ctypes.c_uint64, 24), 7, args)
        elif kind in (COPY, SET):
            args = {"device": 0, "context": 1, "stream": 7, "correlation": get(ctypes.c_uint32, 44)}
            args["bytes"] = get(ctypes.c_uint64, 8)
            cat, name = ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)") if kind == COPY else ("gpu_memset", "Memset (Device)")
            self.add(cat, name, get(ctypes.c_uint64, 16), get(ctypes.c_uint64, 24), 7, args)

    def add(self, cat, name, start, end, lane, args):
        self.events.append((cat, name, of_ticks(start), of_ticks(end), lane, args))

    def export(self, path):
        base = (min((e[2] for e in self.events), default=0) // 10**15) * 10**15
        events = []
        for cat, name, start, end, lane, args in self.events:
            span = {"ts": (start - base) / 1000, "dur": (end - start) / 1000}
            events.append({"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": lane, **span, "args": args})
        trace = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "stand-in"}],
            "traceEvents": events,
            "traceName": path,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": base,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
