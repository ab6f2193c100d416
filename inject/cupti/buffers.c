// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Buffers that CUPTI fills: given out, and taken back on whichever thread it hands
// them over, which may be one of the program's. They are read by a thread of ours.
#include "cupti.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#define MOST_BUFFERS 64u

enum state { FREE, MAKING, FILLING, TAKING, FULL, READING };

// malloc's memory, not our own mapping: where a later client replaces our callbacks,
// CUPTI hands our buffers to it, and many clients free() what they are handed. Then
// it is gone from here, too: what CUPTI holds is never touched, and never given out
// again before it is back.
static struct buffer {
    _Atomic(uint8_t *) memory; // made when first asked for
    _Atomic int state;
    size_t valid;    // of a full one
    uint64_t number; // of a full one, in the order in which they came
} buffers[MOST_BUFFERS];

static _Atomic unsigned count;
static lockstep_word signs, numbers;
static _Atomic unsigned unread;
static sem_t full;

void cupti_buffers_init(unsigned n)
{
    sem_init(&full, 0, 0);
    atomic_store(&count, n < MOST_BUFFERS ? n : MOST_BUFFERS);
}

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
            return atomic_compare_exchange_strong(&buffers[i].state, &filling, TAKING) ? &buffers[i] : NULL;
        }
    }
    return NULL;
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
    bool possible = b != NULL && size <= CUPTI_BUFFER_SIZE && valid <= size;
    if (!possible) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
    }
    if (b == NULL) {
        return;
    }
    b->valid = possible ? valid : 0;
    b->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
    atomic_fetch_add(&unread, 1);
    atomic_store(&b->state, FULL);
    sem_post(&full);
}

static struct buffer *first_full(void)
{
    struct buffer *first = NULL;
    for (unsigned i = 0; i < MOST_BUFFERS; i++) {
        struct buffer *b = &buffers[i];
        if (atomic_load(&b->state) == FULL && (first == NULL || b->number < first->number)) {
            first = b;
        }
    }
    return first;
}

void cupti_read_next(struct lockstep_ring *r, cupti_read_fn read)
{
    while (sem_wait(&full) != 0 && errno == EINTR) {
    }
    struct buffer *b = first_full();
    if (b == NULL) {
        return;
    }
    atomic_store(&b->state, READING);
    read(r, atomic_load(&b->memory), b->valid);
    atomic_store(&b->state, FREE);
    atomic_fetch_sub(&unread, 1);
}

bool cupti_wait_read(uint64_t until)
{
    while (atomic_load(&unread) != 0) {
        if (lockstep_now() >= until) {
            return false;
        }
        const struct timespec a_while = {.tv_nsec = 100000};
        nanosleep(&a_while, NULL);
    }
    return true;
}
