// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Finds libcupti. A copy that the process has loaded comes first: PyTorch loads
// that of its own package, and a second copy would be in its way.
#include "cupti.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct cupti_library cupti;

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", "libcupti.so.11.8"};

// Where packages put it, seen from the folder of a library of CUDA or PyTorch.
static const char *const places[] = {
    "libcupti.so.13",
    "libcupti.so.12",
    "../../cuda_cupti/lib/libcupti.so.12",
    "../../cuda_cupti/lib/libcupti.so.11.8",
    "../../nvidia/cu13/lib/libcupti.so.13",
    "../../nvidia/cuda_cupti/lib/libcupti.so.12",
    "../extras/CUPTI/lib64/libcupti.so.13",
    "../extras/CUPTI/lib64/libcupti.so.12",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void *open_named(int flags)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        void *lib = dlopen(names[i], RTLD_LAZY | flags);
        if (lib != NULL) {
            return lib;
        }
    }
    return NULL;
}

// The folders are noted first: dlopen within dl_iterate_phdr may wait for itself.
#define FOLDERS 8u

struct folders {
    char path[FOLDERS][PATH_MAX];
    unsigned count;
};

static int note_folder(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct folders *f = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (slash == NULL || (strncmp(slash, "/libcudart.", 11) != 0 && strncmp(slash, "/libtorch", 9) != 0 &&
                             strncmp(slash, "/libc10_cuda.", 13) != 0)) {
        return 0;
    }
    size_t n = (size_t)(slash - info->dlpi_name);
    if (n < sizeof f->path[0] && f->count < FOLDERS) {
        memcpy(f->path[f->count], info->dlpi_name, n);
        f->path[f->count++][n] = '\0';
    }
    return 0;
}

static void *open_beside(void)
{
    static struct folders f; // once in a process
    dl_iterate_phdr(note_folder, &f);
    for (unsigned i = 0; i < f.count; i++) {
        for (size_t k = 0; k < COUNT(places); k++) {
            char path[PATH_MAX + 64];
            snprintf(path, sizeof path, "%s/%s", f.path[i], places[k]);
            void *lib = dlopen(path, RTLD_LAZY);
            if (lib != NULL) {
                return lib;
            }
        }
    }
    return NULL;
}

static const char *resolve(void *lib)
{
    const struct {
        const char *name;
        void *into;
        bool optional;
    } functions[] = {
        {"cuptiGetVersion", &cupti.version, false},
        {"cuptiSubscribe", &cupti.subscribe, false},
        {"cuptiUnsubscribe", &cupti.unsubscribe, false},
        {"cuptiGetTimestamp", &cupti.timestamp, false},
        {"cuptiActivityEnable", &cupti.enable, false},
        {"cuptiActivityDisable", &cupti.disable, false},
        {"cuptiActivityGetNextRecord", &cupti.next_record, false},
        {"cuptiActivityFlushAll", &cupti.flush, false},
        {"cuptiActivityRegisterCallbacks", &cupti.register_callbacks, false},
        {"cuptiActivityGetNumDroppedRecords", &cupti.dropped, true},
        {"cuptiActivityFlushPeriod", &cupti.flush_period, true},
        {"cuptiActivityEnableRuntimeApi", &cupti.enable_runtime, true},
        {"cuptiActivityEnableDriverApi", &cupti.enable_driver, true},
        {"cuptiActivityEnableHWTrace", &cupti.enable_hardware, true},
        {"cuptiSetThreadIdType", &cupti.set_thread_ids, true},
        {"cuptiGetThreadIdType", &cupti.get_thread_ids, true},
        {"cuptiActivityRegisterTimestampCallback", &cupti.set_clock, true},
        {"cuptiActivityGetAttribute", &cupti.get_attribute, true},
        {"cuptiActivitySetAttribute", &cupti.set_attribute, true},
    };
    for (size_t i = 0; i < COUNT(functions); i++) {
        void *f = dlsym(lib, functions[i].name);
        if (f == NULL && !functions[i].optional) {
            return functions[i].name;
        }
        memcpy(functions[i].into, &f, sizeof f);
    }
    return NULL;
}

const char *cupti_load(const char *asked)
{
    static char why[512];
    void *lib = open_named(RTLD_NOLOAD);
    if (lib == NULL && asked != NULL) {
        lib = dlopen(asked, RTLD_LAZY);
        if (lib == NULL) {
            const char *reason = dlerror();
            snprintf(why, sizeof why, "%s", reason != NULL ? reason : asked);
            return why;
        }
    }
    if (lib == NULL) {
        lib = open_named(0);
    }
    if (lib == NULL) {
        lib = open_beside();
    }
    if (lib == NULL) {
        return "no libcupti.so.13 or .12 is loaded, on the linker's path, or beside CUDA's libraries";
    }
    const char *missing = resolve(lib);
    if (missing != NULL) {
        snprintf(why, sizeof why, "libcupti has no %s", missing);
        return why;
    }
    return NULL;
}
