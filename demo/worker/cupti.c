// SPDX-License-Identifier: Apache-2.0

// What CUPTI would tell of the device's work. There is no GPU and no libcuda here:
// the worker loads the library of CUDA_INJECTION64_PATH as libcuda does, and has a
// stand-in for libcupti hand it the records of what the simulated device ran.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../inject/cupti/test/mock_cupti.h"
#include "worker.h"

static __typeof__(mock_cupti_now) *now;
static __typeof__(mock_cupti_launch) *launch;
static __typeof__(mock_cupti_kernel) *kernel;
static __typeof__(mock_cupti_flush) *flush;
static _Atomic uint32_t last_correlation;

static bool find_stand_in(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) {
        fail("load the stand-in for CUPTI: %s", dlerror());
        return false;
    }
    *(void **)&now = dlsym(lib, "mock_cupti_now");
    *(void **)&launch = dlsym(lib, "mock_cupti_launch");
    *(void **)&kernel = dlsym(lib, "mock_cupti_kernel");
    *(void **)&flush = dlsym(lib, "mock_cupti_flush");
    if (now == NULL || launch == NULL || kernel == NULL || flush == NULL) {
        fail("find the stand-in for CUPTI: %s is none", path);
        return false;
    }
    return true;
}

bool cupti_load(void)
{
    const char *injected = getenv("CUDA_INJECTION64_PATH"), *path = getenv("LOCKSTEP_CUPTI");
    if (injected == NULL || path == NULL || *path != '/') {
        return true;
    }
    if (!find_stand_in(path)) {
        return false;
    }
    int (*initialize)(void) = NULL;
    void *lib = dlopen(injected, RTLD_NOW | RTLD_LOCAL);
    if (lib != NULL) {
        *(void **)&initialize = dlsym(lib, "InitializeInjection");
    }
    if (initialize == NULL) {
        fail("inject %s: %s", injected, dlerror());
        return false;
    }
    (void)initialize(); // libcuda goes on, whatever it returns
    return true;
}

uint64_t cupti_now(void) { return now != NULL ? now() : 0; }

uint32_t cupti_correlation(void) { return now != NULL ? atomic_fetch_add(&last_correlation, 1) + 1 : 0; }

void cupti_launched(uint32_t correlation, uint64_t start)
{
    if (now != NULL) {
        launch(correlation, start, now(), (uint32_t)syscall(SYS_gettid));
    }
}

void cupti_ran(const struct kernel *k, uint64_t start)
{
    if (now != NULL) {
        kernel(k->name, start, now(), k->stream, (uint32_t)opt.rank, k->correlation);
    }
}

void cupti_flush(void)
{
    if (now != NULL) {
        flush();
    }
}
