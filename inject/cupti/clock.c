// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// CUPTI's clock beside the host's. Stamps stay as CUPTI gives them: it follows
// REALTIME unless another client gave it a clock of its own, and the reader
// converts by these records.
#include "cupti.h"

#define TRIES 5
#define SOURCE_CUPTI 1u

static uint64_t realtime_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Another client may have given CUPTI a clock of its own, and does not take it away as it
// ends: PyTorch's profiler has stamps in ticks of the processor. Only while no kind is
// enabled. Without that function, the clock is as it is.
#define FAR 1000000000u

cupti_result cupti_clock_restore(bool always)
{
    uint64_t stamp, realtime = realtime_now();
    cupti_result result = cupti.timestamp(&stamp);
    bool near = result == CUPTI_OK && stamp + FAR > realtime && realtime + FAR > stamp;
    if (result != CUPTI_OK || cupti.set_clock == NULL || (near && !always)) {
        return result;
    }
    result = cupti.set_clock(realtime_now);
    return near ? CUPTI_OK : result;
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
