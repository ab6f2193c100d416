// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// The thread that reads what CUPTI filled. All kernels are written on its lane: no
// thread of the program pays for them, or finds its own records lapped by them.
#include "cupti.h"

#include <time.h>

// A delivery may hold more than a lane does. A reader of the ring looks every 100 ms:
// in any such time at most 3/4 of a lane are written, in the long run half of one.
#define PACE_NS 50000000ull
#define PACE_PART 4u
#define NAP_NS 10000000u // the end of the process waits no longer for one that sleeps

// Set as the process ends: what is not in the ring then is lost without a trace, and
// what a reader has not come to is at least counted by it.
_Atomic bool cupti_hurry;

static uint64_t written, chunk_began;

static void sleep_until(uint64_t then)
{
    for (uint64_t now = lockstep_now(); now < then && !atomic_load(&cupti_hurry); now = lockstep_now()) {
        struct timespec t = {.tv_nsec = (long)(then - now < NAP_NS ? then - now : NAP_NS)};
        nanosleep(&t, NULL);
    }
}

static void pace(const struct lockstep_ring *r)
{
    if (written == 0) {
        chunk_began = lockstep_now();
    }
    if (++written >= r->capacity / PACE_PART) {
        sleep_until(chunk_began + PACE_NS);
        written = 0;
    }
}

static void take_paced(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now)
{
    if (cupti_take_work(r, record, size, now)) {
        pace(r);
    }
}

// Every step goes forward by 8 bytes at least, so that it ends whatever CUPTI says;
// a record goes as far as the next one begins. CUPTI says by another result than
// CUPTI_NO_MORE that a record is not complete (21, after a forced flush).
bool cupti_walk(struct lockstep_ring *r, uint8_t *buffer, size_t valid, uint64_t now, cupti_record_fn fn)
{
    uint8_t *end = buffer + valid, *next = NULL, *record = NULL;
    size_t done = 0;
    cupti_result result;
    while ((result = cupti.next_record(buffer, valid, &next)) == CUPTI_OK) {
        // Compared as numbers: it may point anywhere.
        uintptr_t at = (uintptr_t)next - (uintptr_t)buffer;
        if (at >= valid || at % 8 != 0 || (record != NULL && at < done + 8)) {
            return false;
        }
        if (record != NULL) {
            fn(r, record, (size_t)(at - done), now);
        }
        record = buffer + at;
        done = (size_t)at;
        next = record;
    }
    if (record != NULL) {
        fn(r, record, (size_t)(end - record), now);
    }
    return result == CUPTI_NO_MORE;
}

static void count_dropped(struct lockstep_ring *r)
{
    size_t lost = 0;
    if (cupti.dropped != NULL && cupti.dropped(NULL, 0, &lost) == CUPTI_OK && lost > 0) {
        atomic_fetch_add_explicit(&r->header->drops[LOCKSTEP_D_CUPTI_LOST], lost, memory_order_relaxed);
    }
}

static void read_records(struct lockstep_ring *r, uint8_t *buffer, size_t valid)
{
    uint64_t now;
    if (cupti_clock(r, &now) != CUPTI_OK) {
        now = 0;
    }
    cupti_names_begin();
    // Calls first: that of a kernel may stand after it.
    if (atomic_load_explicit(&cupti_launches, memory_order_relaxed)) {
        cupti_walk(r, buffer, valid, now, cupti_take_call);
    }
    if (!cupti_walk(r, buffer, valid, now, take_paced)) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
    }
    cupti_delivered(r);
}

static void read_buffer(struct lockstep_ring *r, uint8_t *buffer, size_t valid)
{
    if (valid > 0) {
        read_records(r, buffer, valid);
    }
    count_dropped(r);
}

void *cupti_reader(void *ring)
{
    for (;;) {
        cupti_read_next(ring, read_buffer);
    }
    return NULL;
}
