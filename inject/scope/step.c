// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Steps of the job, and the spans of traces that they work for.
#include "scope.h"

#include <string.h>

void lockstep_step_begin(int64_t step)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    atomic_store_explicit(&r->header->step, (uint64_t)step, memory_order_relaxed);
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_STEP, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = (uint64_t)step,
        [3] = lockstep_now(),
        [4] = ring_tid(),
    };
    lockstep_emit(r, word);
}

// An id of zeroes is none, by the W3C's recommendation.
static bool is_zero(const uint8_t *id, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) {
        any |= id[i];
    }
    return any == 0;
}

void lockstep_link(const uint8_t trace_id[16], const uint8_t span_id[8])
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    if (trace_id == NULL || span_id == NULL || is_zero(trace_id, 16) || is_zero(span_id, 8)) {
        lockstep_drop(r, LOCKSTEP_D_LINKS);
        return;
    }
    struct scope_thread *t = scope_thread_of(r);
    uint64_t now = lockstep_now();
    if (!scope_take(r, t->lane, now)) {
        return;
    }
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_LINK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = atomic_load_explicit(&r->header->step, memory_order_relaxed), // none is -1 in both
        [6] = now,
        [7] = t->tid,
    };
    memcpy(&word[3], trace_id, 16);
    memcpy(&word[5], span_id, 8);
    scope_write(r, t, word);
}
