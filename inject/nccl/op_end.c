// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// The end of operations: their records.
#include "op.h"

static unsigned small(unsigned n) { return n > 0xff ? 0xff : n; }

static void record_of(const struct op *o, uint64_t handle, uint64_t completed_at, uint64_t word[LOCKSTEP_WORDS])
{
    uint64_t began = get(&o->enqueue_began), ended = get(&o->enqueue_ended), slowest = get(&o->slowest);
    uint64_t n = get(&o->counts), took = ended > began ? ended - began : 0;
    uint64_t head = get(&o->head) & ~(0xffffull << 16);
    word[1] = head | (get(&o->flags) & 0xffff) << 16;
    word[2] = handle_and_sends(o, handle);
    word[3] = get(&o->seq);
    word[4] = get(&o->bytes);
    word[5] = get(&o->shape) | (slowest & 0xff) << 56;
    word[6] = began;
    word[7] = lockstep_pair(saturate(took), (uint32_t)get(&o->step));
    word[8] = get(&o->kernel_start);
    word[9] = get(&o->kernel_stop);
    word[10] = lockstep_pair(saturate(slowest >> 8), (uint32_t)get(&o->wire_peer));
    // Events of several threads may overtake each other on the way here.
    word[11] = completed_at != 0 && completed_at < began + took ? began + took : completed_at;
    if (get(&o->proxy_start) != 0) {
        word[12] = lockstep_pair(ticks_since(began, get(&o->proxy_start)), ticks_since(began, get(&o->proxy_stop)));
    }
    word[13] = (uint32_t)get(&o->group) | (get(&o->stream) & 0xffff) << 32 |
               (uint64_t)small(kernels_ended(n)) << 48 | (uint64_t)small(proxies_ended(n)) << 56;
    word[14] = waits_of(o, WAIT_GPU, WAIT_PEER);
    word[15] = waits_of(o, WAIT_WIRE, WAIT_FLUSH);
}

static void frontier_completed(struct op *o, bool inferred, uint64_t now)
{
    struct lockstep_frontier *f = atomic_load_explicit(&o->frontier, memory_order_relaxed);
    if (f == NULL) {
        return;
    }
    add(&f->open, (uint64_t)-1);
    if (now != 0) {
        lockstep_frontier_raise(&f->started, &f->started_at, get(&o->fseq), now);
        lockstep_frontier_raise(&f->completed, &f->completed_at, get(&o->fseq), now);
    }
    if (inferred) {
        add(&f->inferred, 1);
    }
}

// Ends an operation, once: the record first, then the slot. now 0: it was not
// seen to complete.
bool op_end(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle, unsigned flags,
            uint64_t now)
{
    if (!lockstep_slot_ending(s, handle)) {
        return false;
    }
    uint64_t n = atomic_load_explicit(&o->counts, memory_order_acquire);
    if (kernels_begun(n) != kernels_ended(n) || (get(&o->kernel_start) != 0 && kernels_ended(n) < get(&o->expected))) {
        flags |= LOCKSTEP_F_KERNEL_PART;
    }
    atomic_fetch_or_explicit(&o->flags, flags, memory_order_relaxed);
    uint64_t word[LOCKSTEP_WORDS] = {0};
    record_of(o, handle, now, word);
    lockstep_emit(r, word);
    bool inferred = (flags & LOCKSTEP_F_INFERRED) != 0;
    if (inferred) {
        lockstep_drop(r, LOCKSTEP_D_INFERRED);
    }
    frontier_completed(o, inferred, (flags & LOCKSTEP_F_ENQUEUED_ONLY) != 0 ? 0 : now);
    put(&o->handle, 0);
    n = atomic_fetch_or_explicit(&o->counts, OVER, memory_order_acq_rel);
    if (holders(n) == 0) {
        lockstep_slot_free(r, s, handle); // else the last who holds it does
    }
    return true;
}

// What is open when its communicator ends was not seen to complete, and is told
// so: with no time of completion.
void ops_abandon(struct lockstep_ring *r, struct context *c)
{
    for (uint64_t i = 0; i < r->nslots; i++) {
        struct lockstep_slot *s;
        uint64_t handle = atomic_load(&op_at(i)->handle);
        struct op *o = handle != 0 ? op_of(r, handle, &s) : NULL;
        if (o != NULL && get(&o->context) == context_index(c)) {
            uint64_t settled = op_settled_at(o, s, get(&o->counts));
            bool over = settled == 0 && completed_after(c, o) != 0;
            op_end(r, o, s, handle, over ? LOCKSTEP_F_INFERRED : 0, over ? lockstep_now() : settled);
        }
    }
}
