// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Which GPU this thread's communicator is on, asked of the driver that the
// process has loaded already; never loaded for that.
#define _GNU_SOURCE
#include "plugin.h"

#include <dlfcn.h>

typedef int (*get_device)(int *device);
typedef int (*get_uuid)(uint8_t uuid[16], int device);

uint32_t gpu_of_thread(struct lockstep_ring *r)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (lib == NULL) {
        return 0;
    }
    get_device device_of = (get_device)dlsym(lib, "cuCtxGetDevice");
    get_uuid uuid_of = (get_uuid)dlsym(lib, "cuDeviceGetUuid_v2");
    uint8_t uuid[16];
    int device;
    uint32_t gpu = 0;
    if (device_of != NULL && uuid_of != NULL && device_of(&device) == 0 && uuid_of(uuid, device) == 0) {
        gpu = lockstep_gpu_add(r, uuid, device);
    }
    dlclose(lib);
    return gpu;
}
