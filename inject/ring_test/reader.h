// SPDX-License-Identifier: Apache-2.0

// The reader's side of the protocol in C, for the tests of the writers. What the
// collector uses is internal/ring.
#ifndef LOCKSTEP_READER_H
#define LOCKSTEP_READER_H

#include "ring.h"

#define READER_CLAIMED (1ull << 63)

enum read_result { READ_OK, READ_LOST, READ_NOT_YET };

// Copies record `number` of a lane whose head is beyond it.
static inline enum read_result read_record(const struct lockstep_ring *r, uint64_t lane, uint64_t number,
                                           uint64_t out[LOCKSTEP_WORDS])
{
    lockstep_word *slot = r->records + (lane * r->capacity + (number & (r->capacity - 1))) * LOCKSTEP_WORDS;
    uint64_t w = atomic_load_explicit(&slot[0], memory_order_acquire);
    if (w == (READER_CLAIMED | number)) {
        return READ_NOT_YET;
    }
    if (w != number + 1) {
        return READ_LOST;
    }
    out[0] = w;
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        out[i] = atomic_load_explicit(&slot[i], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot[0], memory_order_relaxed) == w ? READ_OK : READ_LOST;
}

#endif
