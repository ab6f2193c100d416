//go:build ignore

// Which GPU a device number of CUPTI's is, asked of the driver that the process has
// loaded already.
#include "cupti.h"

#include <dlfcn.h>

#define DEVICES 64u
#define KNOWN (1u << 31)

typedef int (*get_uuid)(uint8_t uuid[16], int device);

static uint32_t ask(struct lockstep_ring *r, uint32_t device)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (lib == NULL) {
        return 0;
    }
    get_uuid uuid_of = (get_uuid)dlsym(lib, "cuDeviceGetUuid_v2");
    uint8_t uuid[16];
    uint32_t gpu = 0;
    if (uuid_of != NULL && uuid_of(uuid, (int)device) == 0) {
        gpu = lockstep_gpu_add(r, uuid, (int32_t)device);
    }
    dlclose(lib);
    return gpu;
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
