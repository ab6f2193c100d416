// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What NCCL looks up in this library: a table for each version of its interface.
// NCCL takes the newest that it knows, so no version is converted into another.
#include "plugin.h"

static int init_before_4(void **ctx, int *mask, unsigned abi)
{
    struct naming n = {.nodes = LOCKSTEP_NONE, .ranks = LOCKSTEP_NONE, .rank = LOCKSTEP_NONE};
    return chain_init(ctx, mask, abi, &n);
}

static int init_v1(void **ctx, int *mask) { return init_before_4(ctx, mask, 1); }
static int init_v2(void **ctx, int *mask) { return init_before_4(ctx, mask, 2); }
static int init_v3(void **ctx, int *mask) { return init_before_4(ctx, mask, 3); }

static int init_v4(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank,
                   abi_logger log)
{
    struct naming n = {hash, name, nodes, ranks, rank, log};
    return chain_init(ctx, mask, 4, &n);
}

#define FROM_5(v)                                                                                                  \
    static int init_v##v(void **ctx, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank,   \
                         abi_logger log)                                                                           \
    {                                                                                                              \
        struct naming n = {hash, name, nodes, ranks, rank, log};                                                   \
        return chain_init(ctx, mask, v, &n);                                                                       \
    }
FROM_5(5)
FROM_5(6)
FROM_5(7)

#define TABLE(v, member)                                                                                           \
    static int start_v##v(void *ctx, void **handle, void *d) { return chain_start(v, ctx, handle, d); }            \
    static int stop_v##v(void *handle) { return chain_stop(handle); }                                           \
    static int state_v##v(void *handle, int s, void *args) { return chain_state(handle, s, args); }             \
    static int finalize_v##v(void *ctx) { return chain_finalize(ctx); }                                         \
    __attribute__((visibility("default"))) const struct abi_table ncclProfiler_v##v = {                            \
        "lockstep", {.member = init_v##v}, start_v##v, stop_v##v, state_v##v, finalize_v##v};

TABLE(1, v1)
TABLE(2, v1)
TABLE(3, v1)
TABLE(4, v4)
TABLE(5, v5)
TABLE(6, v5)
TABLE(7, v5)
