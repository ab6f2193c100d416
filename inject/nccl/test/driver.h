// SPDX-License-Identifier: Apache-2.0

// What the tests share: the plugin, loaded and called as NCCL does, and a reader
// of the ring that is just good enough for a ring at rest.
#ifndef DRIVER_H
#define DRIVER_H

#include "../abi.h"
#include "ring.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond, ...)                                                  \
    do {                                                                  \
        if (!(cond)) {                                                    \
            printf("    %s:%d: %s: ", __FILE__, __LINE__, #cond);         \
            printf(" " __VA_ARGS__);                                      \
            printf("\n");                                                 \
            driver_failed = 1;                                            \
        }                                                                 \
    } while (0)

extern int driver_failed;
extern bool driver_mute; // NCCL has no logger
extern const char *driver_plugin, *driver_dir;

struct nccl {
    void *lib;
    const struct abi_table *table;
    unsigned v;
    int mask;
    int warnings;      // of the logger
    char warned[4096]; // their texts
};
extern struct nccl nccl;

void nccl_load(unsigned v);
void *comm_init(uint64_t hash, int ranks, int rank, const char *name);
void comm_finalize(void *ctx);

// Events. The descriptor lies in memory of exactly its version's size and is gone
// after the call; what the version leaves undefined is garbage.
struct coll {
    void *parent, *group;
    uint64_t seq;
    const char *func, *datatype, *algo, *proto;
    size_t count;
    int root, channels;
    uint64_t hash;
};
void *start_coll(void *ctx, struct coll c);
void *start_p2p(void *ctx, void *parent, void *group, bool send, int peer);
void *start_group(void *ctx, void *parent);
void *start_api(void *ctx, void *parent, uint64_t type, void *stream, bool captured);
void *start_proxy_op(void *ctx, void *parent, int pid, int channel, int peer, bool send);
void *start_proxy_step(void *ctx, void *parent, int step);
void *start_kernel(void *ctx, void *parent, int channel, uint64_t timer);
void *start_net(void *ctx, void *parent, int64_t id, const void *data);
void *start_raw(void *ctx, const void *descr, size_t size); // of the version's layout
void *start_new(void *ctx, const struct abi_event *e);      // versions 4 to 7
void stop(void *handle);
void state(void *handle, int s, uint64_t value);
void state_null(void *handle, int s); // without arguments

// Whole operations.
void *enqueue(void *ctx, uint64_t seq, int channels);      // group, call, AllReduce, stopped
void run_kernel(void *ctx, void *op, int channels, uint64_t start, uint64_t took);
void run_proxy(void *ctx, void *op, bool send, int peer);

// The ring.
struct reading {
    struct lockstep_header *header;
    char *base;
    size_t size;
};
struct reading ring_read(int pid);
// As many records, or what there is after five seconds.
size_t ring_await(struct reading *r, int kind, size_t n, uint64_t (*out)[LOCKSTEP_WORDS], size_t max);
size_t ring_records(struct reading *r, int kind, uint64_t (*out)[LOCKSTEP_WORDS], size_t max);
const struct lockstep_slot *ring_slot(struct reading *r, uint64_t index); // NULL beyond the end
const char *ring_string(struct reading *r, unsigned code);
const struct lockstep_comm *ring_comm(struct reading *r, unsigned index);
const struct lockstep_frontier *ring_frontier(struct reading *r); // the only one
struct lockstep_section *ring_section(struct reading *r, int kind);
uint64_t ring_drops(enum lockstep_drop d);

unsigned rec_flags(const uint64_t *w);
void nap(long us);

struct test {
    const char *name;
    unsigned from, to; // versions
    void (*run)(void);
    const char *env[4];
};
extern const struct test life_tests[], trap_tests[], level_tests[];

#endif
