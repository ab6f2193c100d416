// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What a slice of the process's parameters hashes to.
#include "scope.h"

void lockstep_fingerprint(int64_t step, uint64_t hash, uint64_t start, uint64_t total, const char *group,
                          uint32_t replicas)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_FINGERPRINT, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = (uint64_t)step,
        [3] = hash,
        [4] = lockstep_now(),
        [6] = start,
        [7] = total,
    };
    if (step < 0) {
        lockstep_drop(r, LOCKSTEP_D_RESUMES);
        return;
    }
    // Of a group without a name nobody knows with whom to compare.
    if (!scope_put_text(r, &word[8], group)) {
        return;
    }
    struct scope_thread *t = scope_thread_of(r);
    if (!scope_take(r, t->lane, word[4])) {
        return;
    }
    word[5] = lockstep_pair(t->tid, replicas);
    scope_write(r, t, word);
}
