// SPDX-License-Identifier: Apache-2.0

// A profiler plugin of the kind that hands out pointers and follows them, of
// versions 1 to 5 (OLD_INTERFACE: to 4), to be chained behind ours.
#include "other_plugin.h"

#include "../abi.h"

#include <stdlib.h>

#define OWN 0x07eb07eb
#define EXPORT __attribute__((visibility("default")))

struct mine {
    _Atomic unsigned magic;
    _Atomic int type, stopped;
};

extern struct other_seen other_seen;
EXPORT struct other_seen other_seen;

static struct mine all[4096];
static _Atomic unsigned used;

static bool is_mine(const void *p)
{
    const struct mine *m = p;
    return m >= all && m < all + 4096 && m->magic == OWN;
}

static int init(unsigned v, void **ctx, int *mask)
{
    other_seen.version = v;
    other_seen.inits++;
    *ctx = &other_seen;
    __atomic_store_n(mask, T_COLL | T_KERNEL_CH | T_PROXY_STEP, __ATOMIC_RELAXED);
    return getenv("OTHER_FAILS") != NULL;
}

static int index_of(unsigned long type)
{
    int i = 0;
    while (type >> i > 1) {
        i++;
    }
    return i & 15;
}

static int start(void *ctx, void **handle, void *descr)
{
    const struct abi_event *e = descr;
    struct mine *m = &all[used++ % 4096];
    for (int i = 0; i < 16 && m->magic == OWN && m->stopped == 0; i++) { // those that are open stay
        m = &all[used++ % 4096];
    }
    m->magic = OWN;
    m->stopped = 0;
    int type = index_of(other_seen.version <= 4 ? e->type & 0xff : e->type);
    m->type = type;
    other_seen.bad += ctx != &other_seen || (e->parent != NULL && !is_mine(e->parent));
    other_seen.bad += (type == 4 || type == 6) && e->parent == NULL;
    if (type == 1 && other_seen.version >= 5) {
        other_seen.bad += !is_mine(e->coll.group);
    }
    if (type == 1 && other_seen.version == 4) {
        other_seen.bad += !is_mine(e->parent) || ((struct mine *)e->parent)->type != 0;
    }
    other_seen.parent[type] = e->parent;
    other_seen.starts[type]++;
    *handle = m;
    return 0;
}

static int stop(void *handle)
{
    struct mine *m = handle;
    if (!is_mine(m) || m->stopped++ != 0) {
        other_seen.bad++;
        return 3;
    }
    int type = m->type;
    other_seen.stops[type]++;
    return 0;
}

static int state(void *handle, int s, void *args)
{
    (void)s;
    (void)args;
    other_seen.bad += !is_mine(handle);
    return 0;
}

static int finalize(void *ctx)
{
    other_seen.bad += ctx != &other_seen;
    other_seen.finals++;
    return 0;
}

#define OLD(v)                                                              \
    static int init_v##v(void **ctx, int *mask) { return init(v, ctx, mask); } \
    extern const struct abi_table ncclProfiler_v##v;                        \
    EXPORT const struct abi_table ncclProfiler_v##v = {"other", {.v1 = init_v##v}, start, stop, state, finalize};
OLD(1)
OLD(2)
OLD(3)

static int init_v4(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank,
                   abi_logger log)
{
    other_seen.bad += name == NULL || hash != 7 || nodes != 1 || ranks != 2 || rank != 0 || log == NULL;
    return init(4, ctx, mask);
}
extern const struct abi_table ncclProfiler_v4;
EXPORT const struct abi_table ncclProfiler_v4 = {"other", {.v4 = init_v4}, start, stop, state, finalize};

#ifndef OLD_INTERFACE
static int init_v5(void **ctx, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank,
                   abi_logger log)
{
    init_v4(ctx, mask, name, hash, nodes, ranks, rank, log);
    other_seen.inits--;
    return init(5, ctx, mask);
}
extern const struct abi_table ncclProfiler_v5;
EXPORT const struct abi_table ncclProfiler_v5 = {"other", {.v5 = init_v5}, start, stop, state, finalize};
#endif
