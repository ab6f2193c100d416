// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Judges the records of a buffer and writes those that can be to the ring. CUPTI is
// not believed: a record must be long enough, its times in order and near now.
#include "cupti.h"

#include <string.h>

#define SECOND 1000000000ull
// A device's stamps are converted to the host's clock: they may be a little ahead.
// Nothing that CUPTI still hands over is older than a day.
#define AHEAD (1 * SECOND)
#define BEHIND (86400 * SECOND)

static bool garbage(struct lockstep_ring *r)
{
    lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
    return false;
}

static bool times_are_possible(struct lockstep_ring *r, uint64_t start, uint64_t end, uint64_t now)
{
    if (start == 0 || end == 0) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_NO_TIME);
        return garbage(r);
    }
    // Without a reading of the clock, only their order is known.
    bool near = now == 0 || (end <= now + AHEAD && start + BEHIND >= now && start <= end);
    return start <= end && near ? true : garbage(r);
}

static uint32_t kind_of(const uint8_t *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    return kind;
}

void cupti_take_call(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now)
{
    struct cupti_call c;
    uint32_t kind = kind_of(record);
    if (kind != CUPTI_RUNTIME && kind != CUPTI_DRIVER) {
        return;
    }
    if (size < sizeof c) {
        garbage(r);
        return;
    }
    memcpy(&c, record, sizeof c);
    if (times_are_possible(r, c.start, c.end, now)) {
        cupti_launch_add(c.correlation, c.start, c.thread);
    }
}

// Adds the launch; its flag. One that began after its kernel is another's.
static unsigned add_launch(struct lockstep_ring *r, uint64_t *word, uint32_t correlation, uint64_t start)
{
    struct cupti_launch l;
    if (!atomic_load_explicit(&cupti_launches, memory_order_relaxed)) {
        return 0;
    }
    if (!cupti_launch_of(correlation, &l) || l.start > start) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_NO_LAUNCH);
        return 0;
    }
    word[4] = l.start;
    word[5] |= lockstep_pair(0, l.thread);
    return LOCKSTEP_K_LAUNCH;
}

static uint64_t place(uint32_t stream, uint32_t device, uint32_t context)
{
    return lockstep_pair(stream, cupti_saturate(device, UINT16_MAX) | cupti_saturate(context, UINT16_MAX) << 16);
}

static uint64_t shape(uint64_t x, int32_t y, int32_t z, unsigned shift)
{
    return x | (uint64_t)cupti_saturate(y < 0 ? 0 : (uint32_t)y, UINT16_MAX) << shift |
           (uint64_t)cupti_saturate(z < 0 ? 0 : (uint32_t)z, UINT16_MAX) << (shift + 16);
}

static uint32_t sum(int32_t a, int32_t b) { return (a > 0 ? (uint32_t)a : 0) + (b > 0 ? (uint32_t)b : 0); }

static bool take_kernel(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now)
{
    struct cupti_kernel k = {0};
    if (size < CUPTI_KERNEL4_SIZE) {
        return garbage(r);
    }
    memcpy(&k, record, size < sizeof k ? CUPTI_KERNEL4_SIZE : sizeof k);
    if (!times_are_possible(r, k.start, k.end, now)) {
        return false;
    }
    struct cupti_name name = cupti_name_of(r, k.name);
    uint64_t word[LOCKSTEP_WORDS] = {
        [2] = k.start,
        [3] = k.end,
        [5] = name.code,
        [6] = place(k.stream, k.device, k.context),
        [7] = lockstep_pair(k.correlation, k.graph),
        [8] = shape((uint32_t)k.grid[0], k.grid[1], k.grid[2], 32),
        [9] = shape(cupti_saturate((uint32_t)k.block[0], UINT16_MAX), k.block[1], k.block[2], 16) |
              (uint64_t)k.registers << 48,
        [11] = lockstep_pair(sum(k.static_shared, k.dynamic_shared), cupti_gpu_of(r, k.device)),
    };
    unsigned flags = add_launch(r, word, k.correlation, k.start);
    flags |= (k.graph != 0 ? LOCKSTEP_K_GRAPH : 0) | (name.communication ? LOCKSTEP_K_COMM : 0);
    word[1] = lockstep_head(LOCKSTEP_KERNEL, LOCKSTEP_LEVEL_COLLECTIVES, flags, 0, 0, 0);
    lockstep_emit(r, word);
    return true;
}

static bool take_memory(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now)
{
    struct cupti_memory m = {0};
    if (size < CUPTI_MEMORY_OLDEST_SIZE) {
        return garbage(r);
    }
    memcpy(&m, record, size < sizeof m ? CUPTI_MEMORY_OLDEST_SIZE : sizeof m);
    if (!times_are_possible(r, m.start, m.end, now)) {
        return false;
    }
    uint64_t word[LOCKSTEP_WORDS] = {
        [2] = m.start,
        [3] = m.end,
        [6] = place(m.stream, m.device, m.context),
        [7] = lockstep_pair(m.correlation, m.graph),
        [10] = m.bytes,
        [11] = lockstep_pair(0, cupti_gpu_of(r, m.device)),
    };
    unsigned flags = add_launch(r, word, m.correlation, m.start);
    flags |= (m.graph != 0 ? LOCKSTEP_K_GRAPH : 0) | (m.kind == CUPTI_COPY ? LOCKSTEP_K_COPY : LOCKSTEP_K_SET);
    word[1] = lockstep_head(LOCKSTEP_KERNEL, LOCKSTEP_LEVEL_COLLECTIVES, flags, 0, 0, 0);
    lockstep_emit(r, word);
    return true;
}

bool cupti_take_work(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now)
{
    switch (kind_of(record)) {
    case CUPTI_KERNEL:
        return take_kernel(r, record, size, now);
    case CUPTI_COPY:
    case CUPTI_SET:
        return take_memory(r, record, size, now);
    }
    return false;
}
