// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Scopes with handles: they may end on another thread, or while later ones are
// open, and there are so many of all threads together. One that never ends would
// keep its place for ever: it is given up with the thread that began it, or when
// it is the oldest and there is no other place.
#include "scope.h"

#include <string.h>

#define OPEN_SCOPES 1024u
#define GENERATION_SHIFT 16
#define OLDEST_TRIES 8

// One scope that has begun. The generation is odd while it is open, and makes a
// second end of it harmless: whoever makes it even has ended it.
struct open_scope {
    lockstep_word generation;
    lockstep_word begin;
    lockstep_word who;  // step u32 | thread u32
    lockstep_word what; // code u16 | depth u16 | phase u8 | flags u8 | lane u16
};

static struct open_scope scopes[OPEN_SCOPES];
static struct free_stack free_scopes;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

static void init_scopes(void) { usable = free_stack_init(&free_scopes, OPEN_SCOPES) == 0; }

static uint64_t get(const lockstep_word *w) { return atomic_load_explicit(w, memory_order_relaxed); }
static void put(lockstep_word *w, uint64_t v) { atomic_store_explicit(w, v, memory_order_relaxed); }

static uint64_t what_of(uint16_t code, uint16_t depth, uint8_t phase, unsigned flags, uint32_t lane)
{
    return (uint64_t)code | (uint64_t)depth << 16 | (uint64_t)phase << 32 | (uint64_t)(flags & 0xff) << 40 |
           (uint64_t)(lane & 0xffff) << 48;
}

static unsigned flags_of(uint64_t what) { return what >> 40 & 0xff; }

static bool end_generation(struct open_scope *s, uint64_t generation)
{
    return (generation & 1) != 0 &&
           atomic_compare_exchange_strong_explicit(&s->generation, &generation, generation + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

// The place of the scope that is open longest, ended without a record; 0: others
// were quicker.
static uint32_t give_up_oldest(struct lockstep_ring *r)
{
    for (int try = 0; try < OLDEST_TRIES; try++) {
        uint64_t oldest = UINT64_MAX, generation = 0;
        uint32_t at = 0;
        for (uint32_t i = 0; i < OPEN_SCOPES; i++) {
            uint64_t g = atomic_load_explicit(&scopes[i].generation, memory_order_acquire);
            uint64_t begin = get(&scopes[i].begin);
            if ((g & 1) != 0 && begin < oldest) {
                oldest = begin;
                generation = g;
                at = i;
            }
        }
        if (end_generation(&scopes[at], generation)) {
            lockstep_drop(r, LOCKSTEP_D_SCOPES_GIVEN_UP);
            return at + 1;
        }
    }
    return 0;
}

static uint32_t place_for(struct lockstep_ring *r)
{
    pthread_once(&once, init_scopes);
    uint32_t index = usable ? free_stack_pop(&free_scopes) : 0;
    if (index == 0 && usable) {
        index = give_up_oldest(r);
    }
    if (index == 0) {
        lockstep_drop(r, LOCKSTEP_D_SLOTS_FULL);
    }
    return index;
}

uint64_t scope_open(struct lockstep_ring *r, uint16_t code, uint8_t phase, unsigned flags)
{
    struct scope_thread *t = scope_thread_of(r);
    uint64_t now = lockstep_now();
    uint32_t index = scope_take(r, t->lane, now) ? place_for(r) : 0;
    if (index == 0) {
        return 0;
    }
    struct open_scope *s = &scopes[index - 1];
    uint64_t generation = get(&s->generation) + 1, handle = generation << GENERATION_SHIFT | index;
    bool nests = (flags & LOCKSTEP_S_ASYNC) == 0;
    struct scope_entry *e = nests ? scope_enter(r, t, KEY_HANDLE, code, phase, now) : NULL;
    uint16_t depth = e != NULL ? e->depth : 0;
    put(&s->begin, now);
    put(&s->who, lockstep_pair(scope_step(r), t->tid));
    put(&s->what, what_of(code, depth, phase, flags, t->lane));
    atomic_store_explicit(&s->generation, generation, memory_order_release);
    if (e != NULL) {
        t->handles = true;
        e->handle = handle;
        scope_show(r, t);
    }
    return handle;
}

static struct open_scope *place_of(uint64_t handle)
{
    uint64_t index = handle & ((1u << GENERATION_SHIFT) - 1);
    return index != 0 && index <= OPEN_SCOPES ? &scopes[index - 1] : NULL;
}

bool scope_is_open(uint64_t handle)
{
    const struct open_scope *s = place_of(handle);
    // A handle holds 48 bits of the generation, which is enough for 2^47 scopes.
    return s != NULL && get(&s->generation) == handle >> GENERATION_SHIFT;
}

// The lane of the thread that began it shows it until that thread makes or ends
// another scope, unless it is told here.
static void hide_on(struct lockstep_ring *r, uint32_t lane, uint64_t begin, uint64_t shown)
{
    if (lane == 0 || lane >= r->nlanes || get(&r->lanes[lane].scope_at) != begin) {
        return;
    }
    atomic_compare_exchange_strong_explicit(&r->lanes[lane].scope, &shown, 0, memory_order_relaxed,
                                            memory_order_relaxed);
}

void scope_close(struct lockstep_ring *r, uint64_t handle)
{
    struct open_scope *s = place_of(handle);
    uint64_t now = lockstep_now();
    if (s == NULL || !end_generation(s, handle >> GENERATION_SHIFT)) {
        lockstep_drop(r, LOCKSTEP_D_SCOPES_UNBALANCED);
        return;
    }
    uint64_t who = get(&s->who), what = get(&s->what);
    struct scope_words w = {
        .begin = get(&s->begin),
        .step = (uint32_t)who,
        .tid = (uint32_t)(who >> 32),
        .code = (uint16_t)what,
        .depth = (uint16_t)(what >> 16),
        .phase = (uint8_t)(what >> 32),
    };
    unsigned flags = flags_of(what);
    free_stack_push(&free_scopes, (uint32_t)(s - scopes));
    struct scope_thread *t = scope_thread_of(r);
    if (w.tid == t->tid) {
        scope_emit(r, t, &w, flags, now);
        if ((flags & LOCKSTEP_S_ASYNC) == 0) {
            scope_leave(r, t, handle);
        }
        return;
    }
    // It nests in nothing that its own thread did, and is written to this lane.
    hide_on(r, (uint32_t)(what >> 48), w.begin, scope_shown(w.code, w.depth, w.phase));
    if (scope_take(r, t->lane, now)) {
        scope_emit(r, t, &w, flags | LOCKSTEP_S_ASYNC, now);
    }
}

// Those that nest in nothing belong to no thread, and outlive it.
void scope_give_up_of(struct lockstep_ring *r, uint32_t tid)
{
    for (uint32_t i = 0; i < OPEN_SCOPES; i++) {
        struct open_scope *s = &scopes[i];
        uint64_t generation = atomic_load_explicit(&s->generation, memory_order_acquire);
        if ((uint32_t)(get(&s->who) >> 32) != tid || (flags_of(get(&s->what)) & LOCKSTEP_S_ASYNC) != 0) {
            continue;
        }
        if (end_generation(s, generation)) {
            lockstep_drop(r, LOCKSTEP_D_SCOPES_GIVEN_UP);
            free_stack_push(&free_scopes, i);
        }
    }
}

uint64_t lockstep_scope_begin(const char *name, int phase)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return 0;
    }
    scope_witness(r, LOCKSTEP_W_SCOPES);
    uint16_t code = name != NULL ? lockstep_name_add(r, LOCKSTEP_N_SCOPE, name, strlen(name)) : 0;
    return scope_open(r, code, scope_phase(phase), 0);
}

void lockstep_scope_end(uint64_t scope)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r != NULL && scope != 0) {
        scope_close(r, scope);
    }
}
