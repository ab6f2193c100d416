// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Pools of entries that are claimed and freed without a lock.
#include "plugin.h"

#include <stdlib.h>

#define INDEX_BITS 16
#define TRIES 16u

// Proxy steps in flight: 8 buffers for each direction, channel and connection.
enum { PROXY_STEPS = 16384, PROXY_OPS = 8192, KERNEL_CHS = 8192, NETS = 4096 };

struct pool proxy_ops, proxy_steps, kernel_chs, nets;

// Where a thread looks first, so that threads do not meet.
static _Thread_local uint32_t hint;

static bool pool_make(struct pool *p, uint32_t count)
{
    if (p->entries == NULL) {
        p->entries = calloc(count, sizeof *p->entries);
        p->count = count;
    }
    return p->entries != NULL;
}

bool pools_init(void)
{
    return pool_make(&proxy_ops, PROXY_OPS) && pool_make(&proxy_steps, PROXY_STEPS) &&
           pool_make(&kernel_chs, KERNEL_CHS) && pool_make(&nets, NETS);
}

void raise_to(lockstep_word *w, uint64_t v)
{
    uint64_t old = get(w);
    while (old < v && !atomic_compare_exchange_weak_explicit(w, &old, v, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void lower_to(lockstep_word *w, uint64_t v)
{
    uint64_t old = get(w);
    while ((old == 0 || v < old) &&
           !atomic_compare_exchange_weak_explicit(w, &old, v, memory_order_relaxed, memory_order_relaxed)) {
    }
}

// A generation's lowest bits are the entry's state. Every change of state is one
// of the generation, so that a claim of what was seen succeeds only where nothing
// happened since.
enum state { FREE = 0, CLAIMED = 1, TAKEN = 2 };
#define STATE_BITS 2

static unsigned state_of(uint64_t word) { return word & ((1u << STATE_BITS) - 1); }
static uint64_t next(uint64_t word, enum state s) { return ((word >> STATE_BITS) + 1) << STATE_BITS | s; }

// Taken, but by something that can end no more.
static bool orphaned(struct lockstep_ring *r, const struct entry *e)
{
    return lockstep_slot_of(r, get(&e->op)) == NULL;
}

static bool claim(struct lockstep_ring *r, struct entry *e)
{
    uint64_t w = atomic_load_explicit(&e->generation, memory_order_acquire);
    if (state_of(w) == CLAIMED || (state_of(w) == TAKEN && !orphaned(r, e))) {
        return false;
    }
    return atomic_compare_exchange_strong_explicit(&e->generation, &w, next(w, CLAIMED), memory_order_acq_rel,
                                                   memory_order_relaxed);
}

HOT struct entry *pool_claim(struct lockstep_ring *r, struct pool *p, uint64_t op)
{
    if (hint == 0) {
        hint = 1 + atomic_fetch_add_explicit(&p->next, 257, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < TRIES; i++) {
        struct entry *e = &p->entries[hint++ & (p->count - 1)];
        if (claim(r, e)) {
            put(&e->op, op);
            return e;
        }
    }
    lockstep_drop(r, LOCKSTEP_D_STEPS_FULL);
    return NULL;
}

#define GENERATION_MASK (BODY_MASK >> INDEX_BITS)

HOT uint64_t pool_publish(struct pool *p, enum tag tag, struct entry *e)
{
    uint64_t w = get(&e->generation), taken = next(w, TAKEN);
    // Nobody changes what is claimed but its claimer: it cannot fail.
    if (!atomic_compare_exchange_strong_explicit(&e->generation, &w, taken, memory_order_release,
                                                 memory_order_relaxed)) {
        return 0;
    }
    return tagged(tag, (taken & GENERATION_MASK) << INDEX_BITS | (uint64_t)(e - p->entries));
}

static uint64_t generation_in(uint64_t handle) { return body_of(handle) >> INDEX_BITS; }

HOT struct entry *pool_of(struct pool *p, enum tag tag, uint64_t handle)
{
    uint32_t index = handle & ((1u << INDEX_BITS) - 1);
    if (tag_of(handle) != tag || index >= p->count) {
        return NULL;
    }
    struct entry *e = &p->entries[index];
    uint64_t g = atomic_load_explicit(&e->generation, memory_order_acquire);
    return state_of(g) == TAKEN && (g & GENERATION_MASK) == generation_in(handle) ? e : NULL;
}

bool pool_free(struct entry *e, uint64_t handle)
{
    uint64_t g = get(&e->generation);
    return (g & GENERATION_MASK) == generation_in(handle) && state_of(g) == TAKEN &&
           atomic_compare_exchange_strong_explicit(&e->generation, &g, next(g, FREE), memory_order_acq_rel,
                                                   memory_order_relaxed);
}

uint64_t pool_taken(const struct entry *e)
{
    uint64_t g = atomic_load_explicit(&e->generation, memory_order_acquire);
    return state_of(g) == TAKEN ? g : 0;
}
