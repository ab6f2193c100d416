//go:build ignore

// What a program says of itself: steps, and phases of its host.
#include "lockstep.h"
#include "ring_internal.h"

#define OPEN_SCOPES 1024u // of all threads together
#define GENERATION_SHIFT 16

// One scope that has begun. The generation makes a second end of it harmless.
struct open_scope {
    lockstep_word generation;
    uint64_t begin;
    uint32_t step, tid;
    uint16_t name, depth, phase;
};

static struct open_scope scopes[OPEN_SCOPES];
static struct free_stack free_scopes;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;
static _Thread_local uint16_t depth;

static void init_scopes(void) { usable = free_stack_init(&free_scopes, OPEN_SCOPES) == 0; }

static uint32_t current_step(const struct lockstep_ring *r)
{
    uint64_t step = atomic_load_explicit(&r->header->step, memory_order_relaxed);
    return step < LOCKSTEP_NO_STEP ? (uint32_t)step : LOCKSTEP_NO_STEP;
}

void lockstep_step_begin(int64_t step)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    atomic_store_explicit(&r->header->step, (uint64_t)step, memory_order_relaxed);
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_STEP, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = (uint64_t)step,
        [3] = lockstep_now(),
        [4] = ring_tid(),
    };
    lockstep_emit(r, word);
}

uint64_t lockstep_scope_begin(const char *name, int phase)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return 0;
    }
    pthread_once(&once, init_scopes);
    uint32_t index = usable ? free_stack_pop(&free_scopes) : 0;
    if (index == 0) {
        lockstep_drop(r, LOCKSTEP_D_SLOTS_FULL);
        return 0;
    }
    struct open_scope *s = &scopes[index - 1];
    s->name = lockstep_intern(r, name);
    s->phase = phase > 0 && phase <= LOCKSTEP_PHASE_INFERENCE ? (uint16_t)phase : LOCKSTEP_PHASE_NONE;
    s->depth = depth++;
    s->step = current_step(r);
    s->tid = (uint32_t)ring_tid();
    uint64_t generation = atomic_load_explicit(&s->generation, memory_order_relaxed) + 1;
    s->begin = lockstep_now();
    atomic_store_explicit(&s->generation, generation, memory_order_release);
    return generation << GENERATION_SHIFT | index;
}

void lockstep_scope_end(uint64_t scope)
{
    struct lockstep_ring *r = lockstep_ring_process();
    uint64_t index = scope & ((1u << GENERATION_SHIFT) - 1);
    if (r == NULL || index == 0 || index > OPEN_SCOPES) {
        return;
    }
    struct open_scope *s = &scopes[index - 1];
    struct open_scope copy;
    uint64_t generation = scope >> GENERATION_SHIFT;
    // Open scopes have an odd generation: the first who ends one makes it even.
    if (!atomic_compare_exchange_strong_explicit(&s->generation, &generation, generation + 1, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    copy.begin = s->begin;
    copy.step = s->step;
    copy.tid = s->tid;
    copy.name = s->name;
    copy.depth = s->depth;
    copy.phase = s->phase;
    free_stack_push(&free_scopes, (uint32_t)index - 1);
    depth = depth > 0 ? (uint16_t)(depth - 1) : 0;
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_SCOPE, LOCKSTEP_LEVEL_SUMMARY, 0, 0, copy.name & 0xff, 0),
        [2] = copy.begin,
        [3] = lockstep_now(),
        [4] = lockstep_pair(copy.step, copy.tid),
        [5] = lockstep_pair(copy.name, (uint32_t)copy.depth | (uint32_t)copy.phase << 16),
    };
    lockstep_emit(r, word);
}
