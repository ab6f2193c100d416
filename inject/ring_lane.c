// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Lanes: one for each thread, and a shared one for threads that found none.
#include "ring_internal.h"

_Thread_local uint32_t lockstep_lane_of_thread;
_Thread_local uint32_t lockstep_ring_of_thread;

// A thread on the shared lane looks for a free one after so many records.
#define LOOK_AGAIN 256u
// Tries on the shared lane; each that fails means that another thread got on.
#define SHARED_TRIES 256

static _Thread_local uint32_t shared_records;

// A lane that the thread has already (it used another ring meanwhile), or a free
// one; 0: none.
static uint32_t own_lane(struct lockstep_ring *r, uint64_t tid)
{
    for (uint64_t i = 1; i < r->nlanes; i++) {
        if (atomic_load_explicit(&r->lanes[i].owner, memory_order_relaxed) == tid) {
            return (uint32_t)i;
        }
    }
    for (uint64_t i = 1; i < r->nlanes; i++) {
        uint64_t free = 0;
        if (atomic_compare_exchange_strong_explicit(&r->lanes[i].owner, &free, tid, memory_order_acquire,
                                                    memory_order_relaxed)) {
            atomic_fetch_add_explicit(&r->lanes[i].claims, 1, memory_order_relaxed);
            return (uint32_t)i;
        }
    }
    return 0;
}

uint32_t lockstep_lane_claim(struct lockstep_ring *r)
{
    // A lane that nobody would give back is not taken.
    uint32_t lane = ring_watch_thread() == 0 ? own_lane(r, ring_tid()) : 0;
    lockstep_lane_of_thread = lane + 1;
    lockstep_ring_of_thread = r->id;
    return lane;
}

static void look_again(struct lockstep_ring *r)
{
    if (++shared_records % LOOK_AGAIN == 0 && r->nlanes > 1) {
        lockstep_lane_claim(r);
    }
}

static void fill(lockstep_word *slot, uint64_t number, const uint64_t word[LOCKSTEP_WORDS])
{
    // Whoever reads a word of this record sees that the slot is claimed.
    atomic_thread_fence(memory_order_release);
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        atomic_store_explicit(&slot[i], word[i], memory_order_relaxed);
    }
    atomic_store_explicit(&slot[0], number + 1, memory_order_release);
}

static bool advance(lockstep_word *head, uint64_t from)
{
    return atomic_compare_exchange_strong_explicit(head, &from, from + 1, memory_order_acq_rel, memory_order_relaxed);
}

enum claim { CLAIM_RETRY, CLAIM_WON, CLAIM_DROP };

// Tries to become the only writer of the slot of number t. A slot that is claimed
// is never written by another, however long its writer stands still.
static enum claim claim_slot(lockstep_word *head, lockstep_word *slot, uint64_t t)
{
    uint64_t w = atomic_load_explicit(&slot[0], memory_order_acquire);
    if ((w & SHARED_CLAIMED) != 0) {
        uint64_t of = w & ~SHARED_CLAIMED;
        if (of > t || !advance(head, t) || of == t) {
            return CLAIM_RETRY; // head was old, or is now helped on for the claimer
        }
        return CLAIM_DROP; // its writer stands still since an earlier lap: t is this record's, and lost
    }
    if (w > t || !atomic_compare_exchange_strong_explicit(&slot[0], &w, SHARED_CLAIMED | t, memory_order_acq_rel,
                                                          memory_order_relaxed)) {
        return CLAIM_RETRY;
    }
    advance(head, t);
    return CLAIM_WON;
}

static bool emit_shared(struct lockstep_ring *r, const uint64_t word[LOCKSTEP_WORDS])
{
    lockstep_word *head = &r->lanes[0].head;
    for (int i = 0; i < SHARED_TRIES; i++) {
        uint64_t t = atomic_load_explicit(head, memory_order_acquire);
        lockstep_word *slot = r->records + (t & (r->capacity - 1)) * LOCKSTEP_WORDS;
        enum claim c = claim_slot(head, slot, t);
        if (c == CLAIM_WON) {
            fill(slot, t, word);
            return true;
        }
        if (c == CLAIM_DROP) {
            return false;
        }
    }
    return false;
}

void lockstep_emit_shared(struct lockstep_ring *r, const uint64_t word[LOCKSTEP_WORDS])
{
    lockstep_drop(r, emit_shared(r, word) ? LOCKSTEP_D_SHARED_LANE : LOCKSTEP_D_SHARED_BUSY);
    look_again(r);
}
