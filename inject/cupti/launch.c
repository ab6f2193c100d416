// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Launches by correlation id. One entry for each low part of the id: an older
// launch gives way, and is then not found.
#include "cupti.h"

#define LAUNCHES 65536u // a power of two: more than the kernels that wait on a device

static struct entry {
    lockstep_word key; // correlation u32 | thread u32; 0: none
    lockstep_word start;
} launches[LAUNCHES];

#define WRITING UINT64_MAX

_Atomic bool cupti_launches;

void cupti_launch_add(uint32_t correlation, uint64_t start, uint32_t thread)
{
    struct entry *e = &launches[correlation & (LAUNCHES - 1)];
    uint64_t key = lockstep_pair(correlation, thread);
    uint64_t there = atomic_load_explicit(&e->key, memory_order_acquire);
    // A call of the runtime makes one of the driver, of the same id: the outer counts.
    if (correlation == 0 || there == WRITING || (there == key && atomic_load_explicit(&e->start, memory_order_relaxed) <= start)) {
        return;
    }
    if (!atomic_compare_exchange_strong(&e->key, &there, WRITING)) {
        return; // another launch is taking the place
    }
    atomic_store_explicit(&e->start, start, memory_order_release);
    atomic_store_explicit(&e->key, key, memory_order_release);
}

// It stays: one launch of a graph is that of many kernels.
bool cupti_launch_of(uint32_t correlation, struct cupti_launch *out)
{
    struct entry *e = &launches[correlation & (LAUNCHES - 1)];
    uint64_t key = atomic_load_explicit(&e->key, memory_order_acquire);
    out->start = atomic_load_explicit(&e->start, memory_order_acquire);
    out->thread = (uint32_t)(key >> 32);
    return correlation != 0 && (uint32_t)key == correlation &&
           atomic_load_explicit(&e->key, memory_order_relaxed) == key;
}
