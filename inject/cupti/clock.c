// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// CUPTI's clock beside the host's. CUPTI stamps by REALTIME unless a client gives it
// another clock; then ours gives it REALTIME again as it begins. The receiver places
// stamps on the host's clock by the records that are written here.
#include "cupti.h"

#define TRIES 5
#define SOURCE_CUPTI 1u
// ns by which CUPTI's clock and REALTIME may differ and be the same clock. One call lies
// between the two readings; ticks since the boot are decades away from REALTIME.
#define SAME_CLOCK_NS 1000000000u

static uint64_t realtime_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cupti_result reads_realtime(bool *same)
{
    uint64_t stamp = 0, realtime = realtime_now();
    cupti_result result = cupti.timestamp(&stamp);
    *same = result == CUPTI_OK && stamp + SAME_CLOCK_NS > realtime && realtime + SAME_CLOCK_NS > stamp;
    return result;
}

bool cupti_clock_replaced(void)
{
    bool same;
    return reads_realtime(&same) == CUPTI_OK && !same;
}

// A client that gave CUPTI a clock does not take it away as it ends: PyTorch's profiler
// leaves ticks of the processor, which cannot be placed. Called while no kind of ours is
// enabled. A library that cannot set a clock has none but its own.
cupti_result cupti_clock_restore(bool always)
{
    bool same;
    cupti_result result = reads_realtime(&same);
    if (result != CUPTI_OK || cupti.set_clock == NULL || (same && !always)) {
        return result;
    }
    result = cupti.set_clock(realtime_now);
    return same ? CUPTI_OK : result;
}

cupti_result cupti_clock(struct lockstep_ring *r, uint64_t *now)
{
    uint64_t raw = 0, stamp = 0, realtime = 0, width = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = lockstep_now(), read = 0;
        cupti_result result = cupti.timestamp(&read);
        uint64_t took = lockstep_now() - before;
        if (result != CUPTI_OK) {
            return result;
        }
        if (took < width) {
            raw = before + took / 2;
            stamp = read;
            width = took;
            realtime = realtime_now() - (lockstep_now() - raw);
        }
    }
    *now = stamp;
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_CLOCK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = raw,
        [3] = stamp,
        [4] = realtime,
        [5] = lockstep_pair(cupti_saturate(width, UINT32_MAX), SOURCE_CUPTI),
    };
    lockstep_emit(r, word);
    return CUPTI_OK;
}
