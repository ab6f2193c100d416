// SPDX-License-Identifier: Apache-2.0

// The profiler plugin, loaded and called as NCCL does it.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

struct profiler profiler;

static _Thread_local uint64_t spent;

static uint64_t tick(void) { return opt.callback_times ? now_ns() : 0; }
static void tock(uint64_t from)
{
    if (opt.callback_times) {
        spent += now_ns() - from;
    }
}

uint64_t callback_ns_take(void)
{
    uint64_t n = spent;
    spent = 0;
    return n;
}

static bool find_table(void)
{
    char name[32];
    for (int v = opt.abi != 0 ? opt.abi : 7; v >= (opt.abi != 0 ? opt.abi : 4); v--) {
        snprintf(name, sizeof name, "ncclProfiler_v%d", v);
        profiler.table = dlsym(profiler.lib, name);
        if (profiler.table != NULL) {
            profiler.abi = v;
            return true;
        }
    }
    fail("find a profiler table: the plugin has no %s", opt.abi != 0 ? name : "ncclProfiler_v4 to _v7");
    return false;
}

static void find_markers(void)
{
    // A function's address from dlsym: POSIX has it fit, ISO C does not know it.
    *(void **)&profiler.step_begin = dlsym(profiler.lib, "lockstep_step_begin");
    *(void **)&profiler.scope_begin = dlsym(profiler.lib, "lockstep_scope_begin");
    *(void **)&profiler.scope_end = dlsym(profiler.lib, "lockstep_scope_end");
}

bool profiler_load(void)
{
    const char *path = getenv("NCCL_PROFILER_PLUGIN");
    if (path == NULL || *path == '\0' || strcmp(path, "none") == 0) {
        return true;
    }
    profiler.lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (profiler.lib == NULL) {
        fail("load the profiler plugin: %s", dlerror());
        return false;
    }
    if (opt.markers) {
        find_markers();
    }
    return find_table();
}

__attribute__((format(printf, 5, 6))) static void log_line(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    (void)flags, (void)file, (void)line;
    const char *debug = getenv("NCCL_DEBUG");
    int shown = debug == NULL ? 0 : strcmp(debug, "INFO") == 0 ? 3 : strcmp(debug, "WARN") == 0 ? 2 : 0;
    if (level > shown) {
        return;
    }
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "rank %d: %s\n", opt.rank, text);
}

void profiler_init(uint64_t hash)
{
    if (profiler.table == NULL) {
        return;
    }
    int *mask = (int *)&profiler.mask, status;
    if (profiler.abi >= 5) {
        status = profiler.table->init.v5(&profiler.ctx, hash, mask, "demo", 1, opt.ranks, opt.rank, log_line);
    } else {
        status = profiler.table->init.v4(&profiler.ctx, mask, "demo", hash, 1, opt.ranks, opt.rank, log_line);
    }
    if (status != 0) {
        profiler.table = NULL; // as NCCL: the job goes on without
        fprintf(stderr, "rank %d: the profiler plugin declined: status %d\n", opt.rank, status);
    }
}

void profiler_finalize(void)
{
    if (profiler.table != NULL) {
        profiler.table->finalize(profiler.ctx);
    }
}

void *event_start(struct descr *d)
{
    if (profiler.table == NULL) {
        return NULL;
    }
    void *handle = NULL;
    uint64_t t = tick();
    profiler.table->start(profiler.ctx, &handle, d);
    tock(t);
    return handle;
}

void event_state(void *handle, int state, union state_args *args)
{
    if (handle != NULL) {
        uint64_t t = tick();
        profiler.table->state(handle, state, args);
        tock(t);
    }
}

void event_stop(void *handle)
{
    if (handle != NULL) {
        uint64_t t = tick();
        profiler.table->stop(handle);
        tock(t);
    }
}

uint64_t scope_begin(const char *name) { return scope_begin_phase(name, PHASE_TRAIN); }

uint64_t scope_begin_phase(const char *name, int phase)
{
    if (profiler.scope_begin == NULL) {
        return 0;
    }
    uint64_t t = tick();
    uint64_t scope = profiler.scope_begin(name, phase);
    tock(t);
    return scope;
}

void scope_end(uint64_t scope)
{
    if (scope != 0) {
        uint64_t t = tick();
        profiler.scope_end(scope);
        tock(t);
    }
}

void step_begin(int64_t step)
{
    if (profiler.step_begin != NULL) {
        uint64_t t = tick();
        profiler.step_begin(step);
        tock(t);
    }
}
