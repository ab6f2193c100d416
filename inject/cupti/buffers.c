//go:build ignore

// Buffers that CUPTI fills, and the walk through what it filled.
#include "cupti.h"

#include <stdlib.h>

#define MOST_BUFFERS 64u

enum state { FREE, MAKING, FILLING, READING };

// malloc's memory, not our own mapping: where a later client replaces our callbacks,
// CUPTI hands our buffers to it, and many clients free() what they are handed. Then
// it is gone from here, too: what CUPTI holds is never touched, and never given out
// again before it is back.
static struct buffer {
    _Atomic(uint8_t *) memory; // made when first asked for
    _Atomic int state;
} buffers[MOST_BUFFERS];

static _Atomic unsigned count;
static lockstep_word signs;

void cupti_buffers_init(unsigned n) { atomic_store(&count, n < MOST_BUFFERS ? n : MOST_BUFFERS); }

uint64_t cupti_signs(void) { return atomic_load_explicit(&signs, memory_order_relaxed); }

static uint8_t *take(struct buffer *b)
{
    int expected = FREE;
    if (!atomic_compare_exchange_strong(&b->state, &expected, MAKING)) {
        return NULL;
    }
    uint8_t *memory = atomic_load(&b->memory);
    if (memory == NULL) {
        void *made;
        if (posix_memalign(&made, LOCKSTEP_PAGE, CUPTI_BUFFER_SIZE) == 0) {
            memory = made;
            atomic_store(&b->memory, memory);
        }
    }
    atomic_store(&b->state, memory != NULL ? FILLING : FREE);
    return memory;
}

void cupti_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    struct lockstep_ring *r = lockstep_ring_process();
    *buffer = NULL;
    *size = 0;
    *max_records = 0; // as many as fit
    if (r == NULL) {
        return;
    }
    atomic_fetch_add_explicit(&signs, 1, memory_order_relaxed);
    for (unsigned i = 0; i < atomic_load(&count) && *buffer == NULL; i++) {
        *buffer = take(&buffers[i]);
    }
    if (*buffer == NULL) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_NO_BUFFER);
        return;
    }
    *size = CUPTI_BUFFER_SIZE;
}

static struct buffer *ours(const uint8_t *memory)
{
    for (unsigned i = 0; i < MOST_BUFFERS; i++) {
        int filling = FILLING;
        if (memory != NULL && atomic_load(&buffers[i].memory) == memory) {
            return atomic_compare_exchange_strong(&buffers[i].state, &filling, READING) ? &buffers[i] : NULL;
        }
    }
    return NULL;
}

// Every step goes forward by 8 bytes at least, so that it ends whatever CUPTI says;
// a record goes as far as the next one begins.
bool cupti_walk(struct lockstep_ring *r, uint8_t *buffer, size_t valid, uint64_t now, cupti_record_fn fn)
{
    uint8_t *end = buffer + valid, *next = NULL, *record = NULL;
    size_t done = 0;
    while (cupti.next_record(buffer, valid, &next) == CUPTI_OK) {
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
    return true;
}

static void count_dropped(struct lockstep_ring *r)
{
    size_t lost = 0;
    if (cupti.dropped != NULL && cupti.dropped(NULL, 0, &lost) == CUPTI_OK && lost > 0) {
        atomic_fetch_add_explicit(&r->header->drops[LOCKSTEP_D_CUPTI_LOST], lost, memory_order_relaxed);
    }
}

static void read_buffer(struct lockstep_ring *r, uint8_t *buffer, size_t valid)
{
    uint64_t now;
    if (cupti_clock(r, &now) != CUPTI_OK) {
        now = 0;
    }
    // Calls first: that of a kernel may stand after it.
    if (atomic_load_explicit(&cupti_launches, memory_order_relaxed)) {
        cupti_walk(r, buffer, valid, now, cupti_take_call);
    }
    if (!cupti_walk(r, buffer, valid, now, cupti_take_work)) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
    }
    atomic_fetch_or_explicit(&r->header->witnesses, LOCKSTEP_W_CUPTI, memory_order_relaxed);
}

void cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream;
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    atomic_fetch_add_explicit(&signs, 1, memory_order_relaxed);
    struct buffer *b = ours(buffer);
    if (b == NULL || size > CUPTI_BUFFER_SIZE || valid > size) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
        valid = 0;
    }
    if (valid > 0) {
        read_buffer(r, buffer, valid);
    }
    count_dropped(r);
    if (b != NULL) {
        atomic_store(&b->state, FREE);
    }
}
