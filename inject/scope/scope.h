// SPDX-License-Identifier: Apache-2.0

// What the files of scopes share: scope.c has those with a handle, stack.c those of
// a thread, rate.c says how many there may be, nvtx.c makes them of NVTX ranges.
#ifndef LOCKSTEP_SCOPE_H
#define LOCKSTEP_SCOPE_H

#include "ring_internal.h"

#include "lockstep.h"

#define STACK 64u // open scopes of one thread that are known by their order

// Which end belongs to a scope on the stack.
enum scope_key {
    KEY_NAME,   // a pop of the same name
    KEY_HANDLE, // the end of its handle
    KEY_DOMAIN, // this and above: a pop of that NVTX domain
};

struct scope_entry {
    uint64_t begin, handle;
    uint32_t key, step;
    uint16_t code, depth, level; // level: how many of an NVTX domain were open below
    uint8_t phase;
    bool left_out; // by rate: its end makes no record either
};

// What is open on one thread, outermost first.
struct scope_thread {
    uint32_t ring; // whose id this belongs to; 0: the thread is new, or leaves
    uint32_t tid;
    uint32_t lane; // 0: the shared one, for now
    uint32_t height;
    bool handles;    // it began scopes with handles
    struct scope_entry stack[STACK];
};

extern _Thread_local struct scope_thread scope_mine;

void scope_thread_begin(struct lockstep_ring *r, struct scope_thread *t);

static inline struct scope_thread *scope_thread_of(struct lockstep_ring *r)
{
    struct scope_thread *t = &scope_mine;
    if (__builtin_expect(t->ring != r->id, 0)) {
        scope_thread_begin(r, t);
    }
    return t;
}

static inline uint32_t scope_step(const struct lockstep_ring *r)
{
    uint64_t step = atomic_load_explicit(&r->header->step, memory_order_relaxed);
    return step < LOCKSTEP_NO_STEP ? (uint32_t)step : LOCKSTEP_NO_STEP;
}

static inline uint8_t scope_phase(int phase)
{
    return phase > 0 && phase <= LOCKSTEP_PHASE_INFERENCE ? (uint8_t)phase : LOCKSTEP_PHASE_NONE;
}

static inline void scope_witness(struct lockstep_ring *r, enum lockstep_witness w)
{
    if ((atomic_load_explicit(&r->header->witnesses, memory_order_relaxed) & w) == 0) {
        atomic_fetch_or_explicit(&r->header->witnesses, w, memory_order_relaxed);
    }
}

// Words 2 to 5 of a scope's record, but for its end.
struct scope_words {
    uint64_t begin;
    uint32_t step, tid;
    uint16_t code, depth;
    uint8_t phase;
};

// A thread keeps its lane, so that the ring need not be asked for it each time;
// one on the shared lane may come to one of its own while it writes.
static inline void scope_write(struct lockstep_ring *r, struct scope_thread *t, const uint64_t word[LOCKSTEP_WORDS])
{
    if (__builtin_expect(t->lane != 0, 1)) {
        lockstep_emit_own(r, t->lane, word);
        return;
    }
    lockstep_emit(r, word);
    t->lane = lockstep_lane_of_thread - 1;
}

static inline void scope_emit(struct lockstep_ring *r, struct scope_thread *t, const struct scope_words *s,
                              unsigned flags, uint64_t end)
{
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_SCOPE, LOCKSTEP_LEVEL_SUMMARY, flags, 0, 0, 0),
        [2] = s->begin,
        [3] = end,
        [4] = lockstep_pair(s->step, s->tid),
        [5] = lockstep_pair(s->code, (uint32_t)s->depth | (uint32_t)s->phase << 16),
    };
    scope_write(r, t, word);
}

// What a lane shows of the innermost open scope.
static inline uint64_t scope_shown(uint16_t code, uint16_t depth, uint8_t phase)
{
    return lockstep_pair(code, (uint32_t)depth | (uint32_t)phase << 16);
}

// rate.c: whether a lane has room for one more scope.
bool scope_take(struct lockstep_ring *r, uint32_t lane, uint64_t now);

// resume.c: puts a text into four words; false where there is none, or it does not fit.
#define SCOPE_TEXT 32u // bytes
bool scope_put_text(struct lockstep_ring *r, uint64_t *words, const char *text);

// scope.c: scopes with handles.
uint64_t scope_open(struct lockstep_ring *r, uint16_t code, uint8_t phase, unsigned flags); // 0: left out
void scope_close(struct lockstep_ring *r, uint64_t handle);
bool scope_is_open(uint64_t handle);
void scope_give_up_of(struct lockstep_ring *r, uint32_t tid);

// stack.c: scopes of the calling thread.
#define SCOPE_NONE (-1)
int scope_push(struct lockstep_ring *r, uint32_t key, uint16_t code, uint8_t phase); // its level
int scope_pop(struct lockstep_ring *r, uint32_t key, uint16_t code, unsigned flags); // its level, or SCOPE_NONE
// A place on the stack, if need be the outermost's.
struct scope_entry *scope_enter(struct lockstep_ring *r, struct scope_thread *t, uint32_t key, uint16_t code,
                                uint8_t phase, uint64_t begin);
void scope_show(struct lockstep_ring *r, const struct scope_thread *t);
void scope_leave(struct lockstep_ring *r, struct scope_thread *t, uint64_t handle);

#endif
