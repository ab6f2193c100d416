// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Slots of operations in flight.
#include "ring_internal.h"

#include <stdlib.h>

#define HANDLE_SLOT_BITS 16

static uint64_t word_of(uint64_t generation, enum lockstep_slot_state state) { return generation << 8 | state; }
static uint64_t generation_of_word(uint64_t word) { return word >> 8; }
static unsigned state_of_word(uint64_t word) { return (unsigned)(word & 0xff); }
static uint64_t generation_of_handle(uint64_t handle) { return handle >> HANDLE_SLOT_BITS; }

int free_stack_init(struct free_stack *s, uint32_t count)
{
    s->next = calloc(count, sizeof *s->next);
    if (s->next == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i + 1 < count; i++) {
        atomic_store_explicit(&s->next[i], i + 2, memory_order_relaxed);
    }
    atomic_store_explicit(&s->top, count > 0 ? 1 : 0, memory_order_relaxed);
    return 0;
}

static uint64_t tagged(uint64_t before, uint32_t index) { return ((before >> 32) + 1) << 32 | index; }

uint32_t free_stack_pop(struct free_stack *s)
{
    uint64_t top = atomic_load_explicit(&s->top, memory_order_acquire);
    for (;;) {
        uint32_t first = (uint32_t)top;
        if (first == 0) {
            return 0;
        }
        uint32_t next = atomic_load_explicit(&s->next[first - 1], memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&s->top, &top, tagged(top, next), memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return first;
        }
    }
}

void free_stack_push(struct free_stack *s, uint32_t index)
{
    uint64_t top = atomic_load_explicit(&s->top, memory_order_relaxed);
    do {
        atomic_store_explicit(&s->next[index], (uint32_t)top, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&s->top, &top, tagged(top, index + 1), memory_order_acq_rel,
                                                    memory_order_relaxed));
}

static void clear(struct lockstep_slot *s)
{
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        atomic_store_explicit(&s->word[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&s->order, 0, memory_order_relaxed);
    atomic_store_explicit(&s->children, 0, memory_order_relaxed);
    for (unsigned i = 0; i < sizeof s->waits / sizeof *s->waits; i++) {
        atomic_store_explicit(&s->waits[i].what, 0, memory_order_relaxed);
        atomic_store_explicit(&s->waits[i].since, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&s->last, 0, memory_order_relaxed);
}

uint64_t lockstep_slot_claim(struct lockstep_ring *r, struct lockstep_slot **out)
{
    *out = NULL;
    uint32_t index = free_stack_pop(&private_of(r)->free_slots);
    if (index == 0) {
        lockstep_drop(r, LOCKSTEP_D_SLOTS_FULL);
        return 0;
    }
    struct lockstep_slot *s = &r->slots[index - 1];
    // 32 bits, never 0: a handle stays below 2^48.
    uint64_t generation = (generation_of_word(atomic_load_explicit(&s->word[0], memory_order_relaxed)) + 1) & UINT32_MAX;
    if (generation == 0) {
        generation = 1;
    }
    atomic_store_explicit(&s->word[0], word_of(generation, LOCKSTEP_SLOT_CLAIMED), memory_order_relaxed);
    // Whoever reads a word of this operation sees that the slot was claimed.
    atomic_thread_fence(memory_order_release);
    clear(s);
    *out = s;
    return generation << HANDLE_SLOT_BITS | index;
}

struct lockstep_slot *lockstep_slot_of(struct lockstep_ring *r, uint64_t handle)
{
    uint64_t index = handle & ((1u << HANDLE_SLOT_BITS) - 1);
    if (index == 0 || index > r->nslots) {
        return NULL;
    }
    struct lockstep_slot *s = &r->slots[index - 1];
    uint64_t w = atomic_load_explicit(&s->word[0], memory_order_acquire);
    unsigned state = state_of_word(w);
    bool open = state >= LOCKSTEP_SLOT_CLAIMED && state <= LOCKSTEP_SLOT_STARTED;
    return open && generation_of_word(w) == generation_of_handle(handle) ? s : NULL;
}

// Moves the slot on from a state below `to`; false where it is another
// operation's by now, or has come so far already.
static bool move_on(struct lockstep_slot *s, uint64_t handle, enum lockstep_slot_state to)
{
    uint64_t generation = generation_of_handle(handle);
    uint64_t w = atomic_load_explicit(&s->word[0], memory_order_acquire);
    while (generation_of_word(w) == generation && state_of_word(w) != LOCKSTEP_SLOT_FREE && state_of_word(w) < to) {
        if (atomic_compare_exchange_weak_explicit(&s->word[0], &w, word_of(generation, to), memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

void lockstep_slot_state(struct lockstep_slot *s, uint64_t handle, enum lockstep_slot_state to)
{
    if (to > LOCKSTEP_SLOT_CLAIMED && to <= LOCKSTEP_SLOT_STARTED) {
        move_on(s, handle, to);
    }
}

bool lockstep_slot_ending(struct lockstep_slot *s, uint64_t handle) { return move_on(s, handle, LOCKSTEP_SLOT_ENDING); }

// Only the first of two who free the same operation puts it on the stack.
void lockstep_slot_free(struct lockstep_ring *r, struct lockstep_slot *s, uint64_t handle)
{
    uint64_t generation = generation_of_handle(handle);
    uint64_t w = atomic_load_explicit(&s->word[0], memory_order_relaxed);
    while (generation_of_word(w) == generation && state_of_word(w) != LOCKSTEP_SLOT_FREE) {
        if (atomic_compare_exchange_weak_explicit(&s->word[0], &w, word_of(generation, LOCKSTEP_SLOT_FREE),
                                                  memory_order_release, memory_order_relaxed)) {
            free_stack_push(&private_of(r)->free_slots, (uint32_t)(s - r->slots));
            return;
        }
    }
}
