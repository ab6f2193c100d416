// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What the process has loaded as it resumed.
#include "scope.h"

#include <string.h>

enum { FLAG_OPTIMIZER = 1, FLAG_RNG = 2, FLAG_CURSOR = 4, FLAG_REPLICA = 8 };

// How often the process has resumed. A ring says of which process it is.
static _Atomic uint32_t resumes;

// One that was cut would agree with others that begin alike.
bool scope_put_text(struct lockstep_ring *r, uint64_t *words, const char *text)
{
    size_t n = text != NULL ? strnlen(text, SCOPE_TEXT + 1) : 0;
    if (n > SCOPE_TEXT) {
        lockstep_drop(r, LOCKSTEP_D_RESUMES);
        return false;
    }
    memcpy(words, text != NULL ? text : "", n);
    return n > 0;
}

void lockstep_resumed(int64_t step, int64_t optimizer_step, const char *data_cursor, const uint8_t rng_digest[16],
                      const char *replica)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    if (step < 0) {
        lockstep_drop(r, LOCKSTEP_D_RESUMES);
        return;
    }
    // One that finds no room counts, too: those that follow would be compared with others' of before.
    uint32_t number = atomic_fetch_add_explicit(&resumes, 1, memory_order_relaxed) + 1;
    struct scope_thread *t = scope_thread_of(r);
    uint64_t now = lockstep_now();
    if (!scope_take(r, t->lane, now)) {
        return;
    }
    uint64_t word[LOCKSTEP_WORDS] = {[2] = (uint64_t)step, [4] = now, [5] = lockstep_pair(t->tid, number)};
    unsigned flags = 0;
    if (optimizer_step >= 0) {
        word[3] = (uint64_t)optimizer_step;
        flags |= FLAG_OPTIMIZER;
    }
    if (rng_digest != NULL) {
        memcpy(&word[6], rng_digest, 16);
        flags |= FLAG_RNG;
    }
    flags |= scope_put_text(r, &word[8], data_cursor) ? FLAG_CURSOR : 0;
    flags |= scope_put_text(r, &word[12], replica) ? FLAG_REPLICA : 0;
    word[1] = lockstep_head(LOCKSTEP_RESUME, LOCKSTEP_LEVEL_SUMMARY, flags, 0, 0, 0);
    scope_write(r, t, word);
}
