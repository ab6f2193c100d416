// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Which GPU a device number of CUPTI's is, asked of the driver that the process has
// loaded already.
#include "cupti.h"

#include <dlfcn.h>

#define DEVICES 64u
#define KNOWN (1u << 31)

typedef int (*get_uuid)(uint8_t uuid[16], int device);

static _Atomic(get_uuid) uuid_of;

// Not by the thread that reads: the loader's lock may be held for long.
void cupti_find_driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); // kept
    if (lib != NULL) {
        atomic_store(&uuid_of, (get_uuid)dlsym(lib, "cuDeviceGetUuid_v2"));
    }
}

static uint32_t ask(struct lockstep_ring *r, uint32_t device)
{
    get_uuid fn = atomic_load(&uuid_of);
    uint8_t uuid[16];
    return fn != NULL && fn(uuid, (int)device) == 0 ? lockstep_gpu_add(r, uuid, (int32_t)device) : 0;
}

// Asked once: a device that the driver does not know then is none of this process.
uint32_t cupti_gpu_of(struct lockstep_ring *r, uint32_t device)
{
    static _Atomic uint32_t known[DEVICES];
    if (device >= DEVICES) {
        return 0;
    }
    uint32_t gpu = atomic_load_explicit(&known[device], memory_order_relaxed);
    if (gpu == 0) {
        gpu = ask(r, device) | KNOWN;
        atomic_store_explicit(&known[device], gpu, memory_order_relaxed);
    }
    return gpu & ~KNOWN;
}
