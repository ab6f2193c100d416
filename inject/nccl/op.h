// SPDX-License-Identifier: Apache-2.0

// What the files of operations share: op.c follows them, op_end.c writes their
// records, op_complete.c says when they are over.
#ifndef LOCKSTEP_NCCL_OP_H
#define LOCKSTEP_NCCL_OP_H

#include "plugin.h"

// counts: enqueued 1 | over 1 | kernel channels begun 8 | ended 8 | proxy
// operations begun 12 | ended 12 | held by 6 | generation of the slot 16. One word,
// so that exactly one event is the last, and so that none counts for the slot's
// next operation. Whoever writes into an operation holds it meanwhile: the slot of
// one that is over is free for the next when nobody does.
#define ENQUEUED 1ull
#define OVER 2ull
#define K_BEGUN 2
#define K_ENDED 10
#define P_BEGUN 18
#define P_ENDED 30
#define HOLDERS 42
#define GENERATION 48
#define K_MAX 0xffu
#define P_MAX 0xfffu
#define HOLDERS_MAX 0x3fu

static inline unsigned kernels_begun(uint64_t n) { return n >> K_BEGUN & K_MAX; }
static inline unsigned kernels_ended(uint64_t n) { return n >> K_ENDED & K_MAX; }
static inline unsigned proxies_begun(uint64_t n) { return n >> P_BEGUN & P_MAX; }
static inline unsigned proxies_ended(uint64_t n) { return n >> P_ENDED & P_MAX; }
static inline unsigned holders(uint64_t n) { return n >> HOLDERS & HOLDERS_MAX; }
static inline uint64_t generation_bits(uint64_t handle) { return (handle >> 16 & 0xffff) << GENERATION; }

static inline uint32_t ticks_since(uint64_t from, uint64_t to)
{
    return to > from ? saturate((to - from) / LOCKSTEP_TICK_NS) : 0;
}

#define SENDS_SHIFT 48
#define SENDS_MAX 0xffffull

// Words 2, and 14 or 15, of a record and of a slot alike.
static inline uint64_t handle_and_sends(const struct op *o, uint64_t handle)
{
    uint64_t n = get(&o->sends);
    return handle | (n < SENDS_MAX ? n : SENDS_MAX) << SENDS_SHIFT;
}

static inline uint64_t waits_of(const struct op *o, enum wait low, enum wait high)
{
    return lockstep_pair(saturate(get(&o->waits[low]) / LOCKSTEP_TICK_NS),
                         saturate(get(&o->waits[high]) / LOCKSTEP_TICK_NS));
}

struct op *op_at(uint64_t slot); // by the slot's index
struct op *op_hold(struct lockstep_ring *r, uint64_t handle, struct lockstep_slot **slot); // NULL: it is over
void op_release(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle);

// op_end.c
bool op_end(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle, unsigned flags,
            uint64_t now);

// op_complete.c
bool has_children(const struct context *c, uint64_t now);
void op_check(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle, uint64_t n,
              uint64_t now);
uint64_t op_settled_at(const struct op *o, const struct lockstep_slot *s, uint64_t n); // 0: it is not
void op_settle_before(struct lockstep_ring *r, const struct op *o);
uint64_t completed_after(struct context *c, const struct op *o);

#endif
