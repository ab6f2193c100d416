// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What a program may ask.
#include "scope.h"

#include <stdio.h>

#define ABI 3u

uint32_t lockstep_abi(void) { return ABI; }

static const char *const cupti_words[] = {
    [LOCKSTEP_CUPTI_ACTIVE] = "active",
    [LOCKSTEP_CUPTI_YIELDED] = "left to another client",
    [LOCKSTEP_CUPTI_NO_LIBRARY] = "no library",
    [LOCKSTEP_CUPTI_REFUSED] = "refused",
    [LOCKSTEP_CUPTI_PAUSED] = "paused by the program",
};

static const char *cupti_word(uint32_t state)
{
    return state < sizeof cupti_words / sizeof cupti_words[0] ? cupti_words[state] : "in an unknown state";
}

const char *lockstep_status(void)
{
    // The thread's own, since what CUPTI does changes.
    static _Thread_local char text[1536];
    struct lockstep_ring *r = lockstep_ring_process();
    const char *ring = lockstep_ring_status();
    uint64_t cupti = r != NULL ? atomic_load_explicit(&r->header->cupti, memory_order_relaxed) : 0;
    uint32_t state = (uint32_t)cupti, result = (uint32_t)(cupti >> 32);
    if (state == LOCKSTEP_CUPTI_UNASKED) {
        return ring;
    }
    if (result == 0) {
        snprintf(text, sizeof text, "%s; CUPTI: %s", ring, cupti_word(state));
    } else {
        snprintf(text, sizeof text, "%s; CUPTI: %s (result %u)", ring, cupti_word(state), result);
    }
    return text;
}
