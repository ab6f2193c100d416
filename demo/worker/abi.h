// SPDX-License-Identifier: Apache-2.0

// What NCCL's profiler interface looks like in memory, versions 4 to 7, which
// share every offset. Declared here on our own: no vendor header is needed.
#ifndef DEMO_ABI_H
#define DEMO_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_type {
    EV_GROUP = 1 << 0,
    EV_COLL = 1 << 1,
    EV_P2P = 1 << 2,
    EV_PROXY_OP = 1 << 3,
    EV_PROXY_STEP = 1 << 4,
    EV_KERNEL_CH = 1 << 6,
    EV_NET_PLUGIN = 1 << 7,
    EV_GROUP_API = 1 << 8,
    EV_COLL_API = 1 << 9,
    EV_P2P_API = 1 << 10,
    EV_KERNEL_LAUNCH = 1 << 11,
};

enum event_state {
    ST_SEND_WAIT = 9,
    ST_SEND_GPU_WAIT = 8,
    ST_SEND_PEER_WAIT = 20,
    ST_RECV_WAIT = 10,
    ST_RECV_FLUSH_WAIT = 11,
    ST_RECV_GPU_WAIT = 12,
    ST_PROXY_OP_IN_PROGRESS = 19,
    ST_KERNEL_CH_STOP = 22,
    ST_GROUP_START_API_STOP = 23,
    ST_GROUP_END_API_START = 24,
};

// The type is one byte in version 4; little-endian, its value is the same.
struct descr {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
            void *group; // since version 5
            const char *variant;
            bool symmetric;
            uint64_t user_tag; // since version 7
        } coll;
        struct {
            int32_t pid;
            uint8_t channel;
            int peer, steps, chunk, is_send;
        } proxy_op;
        struct {
            int step;
        } proxy_step;
        struct {
            uint8_t channel;
            uint64_t timer;
        } kernel_ch;
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
            uint64_t user_tag;
        } coll_api;
        struct {
            void *stream;
        } kernel_launch;
    };
};

_Static_assert(offsetof(struct descr, parent) == 8, "layout");
_Static_assert(offsetof(struct descr, rank) == 16, "layout");
_Static_assert(offsetof(struct descr, coll.seq) == 24, "layout");
_Static_assert(offsetof(struct descr, coll.datatype) == 72, "layout");
_Static_assert(offsetof(struct descr, coll.algo) == 88, "layout");
_Static_assert(offsetof(struct descr, coll.group) == 104, "layout");
_Static_assert(offsetof(struct descr, coll.user_tag) == 128, "layout");
_Static_assert(offsetof(struct descr, proxy_op.channel) == 28, "layout");
_Static_assert(offsetof(struct descr, proxy_op.is_send) == 44, "layout");
_Static_assert(offsetof(struct descr, kernel_ch.timer) == 32, "layout");
_Static_assert(offsetof(struct descr, coll_api.stream) == 56, "layout");
_Static_assert(sizeof(struct descr) == 136, "layout");

union state_args {
    size_t trans_size;
    uint64_t timer;
};

typedef void (*logger)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

// init's arguments differ between versions.
struct table {
    const char *name;
    union {
        int (*v4)(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank, logger log);
        int (*v5)(void **ctx, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank, logger log);
    } init;
    int (*start)(void *ctx, void **handle, struct descr *d);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, union state_args *args);
    int (*finalize)(void *ctx);
};

#endif
