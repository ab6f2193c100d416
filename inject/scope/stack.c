// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Scopes of one thread, in the order in which they began. They mostly end in the
// opposite order, but need not: generators that take turns end theirs as they come.
#include "scope.h"

#include <string.h>

_Thread_local struct scope_thread scope_mine;

// Whether no record of it will be made, taken from the stack.
static bool is_given_up(const struct scope_entry *e) { return e->key != KEY_HANDLE && !e->left_out; }

// What a thread leaves open is given up with it.
static void thread_leaves(void)
{
    struct scope_thread *t = &scope_mine;
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL || t->ring != r->id) {
        return;
    }
    for (uint32_t i = 0; i < t->height; i++) {
        if (is_given_up(&t->stack[i])) {
            lockstep_drop(r, LOCKSTEP_D_SCOPES_GIVEN_UP);
        }
    }
    if (t->handles) {
        scope_give_up_of(r, t->tid);
    }
    t->ring = 0;
}

void scope_thread_begin(struct lockstep_ring *r, struct scope_thread *t)
{
    ring_on_thread_end(thread_leaves);
    t->tid = (uint32_t)ring_tid();
    t->height = 0;
    t->handles = false;
    t->ring = r->id;
    t->lane = lockstep_lane_claim(r);
}

// Shows the innermost open scope on the thread's lane, 0 while it changes.
void scope_show(struct lockstep_ring *r, const struct scope_thread *t)
{
    if (t->lane == 0) {
        return; // the shared one is nobody's
    }
    struct lockstep_lane *l = &r->lanes[t->lane];
    atomic_store_explicit(&l->scope, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    if (t->height == 0) {
        atomic_store_explicit(&l->scope_at, 0, memory_order_relaxed);
        return;
    }
    const struct scope_entry *e = &t->stack[t->height - 1];
    atomic_store_explicit(&l->scope_at, e->begin, memory_order_relaxed);
    atomic_store_explicit(&l->scope, scope_shown(e->code, e->depth, e->phase), memory_order_release);
}

static bool is_gone(const struct scope_entry *e) { return e->key == KEY_HANDLE && !scope_is_open(e->handle); }

static void drop_entry(struct scope_thread *t, struct scope_entry *e)
{
    size_t above = (size_t)(&t->stack[t->height] - (e + 1));
    memmove(e, e + 1, above * sizeof *e);
    t->height--;
}

// Scopes that another thread ended, or that were given up, are still here: those
// on top are in the way, all of them where there is no room.
static void forget_gone(struct scope_thread *t)
{
    while (t->height > 0 && is_gone(&t->stack[t->height - 1])) {
        t->height--;
    }
    if (t->height < STACK) {
        return;
    }
    for (uint32_t i = t->height; i-- > 0;) {
        if (is_gone(&t->stack[i])) {
            drop_entry(t, &t->stack[i]);
        }
    }
}

// Of more than there is room for, the outermost is most likely one that never
// ends. One with a handle only loses its place here.
static void give_up_outermost(struct lockstep_ring *r, struct scope_thread *t)
{
    if (is_given_up(&t->stack[0])) {
        lockstep_drop(r, LOCKSTEP_D_SCOPES_GIVEN_UP);
    }
    drop_entry(t, &t->stack[0]);
}

static struct scope_entry *innermost(struct scope_thread *t, uint32_t key, uint16_t code)
{
    for (uint32_t i = t->height; i-- > 0;) {
        struct scope_entry *e = &t->stack[i];
        if (e->key == key && (key != KEY_NAME || e->code == code)) {
            return e;
        }
    }
    return NULL;
}

struct scope_entry *scope_enter(struct lockstep_ring *r, struct scope_thread *t, uint32_t key, uint16_t code,
                                uint8_t phase, uint64_t begin)
{
    forget_gone(t);
    if (t->height == STACK) {
        give_up_outermost(r, t);
    }
    struct scope_entry *e = &t->stack[t->height];
    e->begin = begin;
    e->key = key;
    e->step = scope_step(r);
    e->code = code;
    e->depth = (uint16_t)t->height;
    e->phase = phase;
    e->left_out = false;
    t->height++;
    return e;
}

int scope_push(struct lockstep_ring *r, uint32_t key, uint16_t code, uint8_t phase)
{
    struct scope_thread *t = scope_thread_of(r);
    const struct scope_entry *outer = key >= KEY_DOMAIN ? innermost(t, key, 0) : NULL;
    uint16_t level = outer != NULL ? (uint16_t)(outer->level + 1) : 0; // before it may move
    uint64_t now = lockstep_now();
    struct scope_entry *e = scope_enter(r, t, key, code, phase, now);
    e->level = level;
    e->left_out = !scope_take(r, t->lane, now);
    scope_show(r, t);
    return e->level;
}

int scope_pop(struct lockstep_ring *r, uint32_t key, uint16_t code, unsigned flags)
{
    struct scope_thread *t = scope_thread_of(r);
    struct scope_entry *e = innermost(t, key, code);
    if (e == NULL) {
        lockstep_drop(r, LOCKSTEP_D_SCOPES_UNBALANCED);
        return SCOPE_NONE;
    }
    int level = e->level;
    if (!e->left_out) {
        struct scope_words w = {e->begin, e->step, t->tid, e->code, e->depth, e->phase};
        scope_emit(r, t, &w, flags, lockstep_now());
    }
    drop_entry(t, e);
    forget_gone(t);
    scope_show(r, t);
    return level;
}

void scope_leave(struct lockstep_ring *r, struct scope_thread *t, uint64_t handle)
{
    for (uint32_t i = t->height; i-- > 0;) {
        if (t->stack[i].key == KEY_HANDLE && t->stack[i].handle == handle) {
            drop_entry(t, &t->stack[i]);
            forget_gone(t);
            scope_show(r, t);
            return;
        }
    }
}

uint32_t lockstep_scope_name(const char *name)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL && name != NULL ? lockstep_name_add(r, LOCKSTEP_N_SCOPE, name, strlen(name)) : 0;
}

#define CODE_BITS 16

void lockstep_scope_push(uint32_t name_phase)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return;
    }
    scope_witness(r, LOCKSTEP_W_SCOPES);
    scope_push(r, KEY_NAME, (uint16_t)name_phase, scope_phase((int)(name_phase >> CODE_BITS)));
}

void lockstep_scope_pop(uint32_t name_phase)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r != NULL) {
        scope_pop(r, KEY_NAME, (uint16_t)name_phase, 0);
    }
}
