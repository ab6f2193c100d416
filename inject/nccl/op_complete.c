// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// When operations are over: with the last stop of a kernel channel or of a proxy
// operation. A stop that NCCL lost is made up for by operations that come later on
// the same communicator and stream.
#include "op.h"

// Order up to which operations on a stream are known to be over; NULL where
// streams share a number, or it is not known.
static lockstep_word *completed_of(struct context *c, uint64_t key, uint64_t stream)
{
    return key != 0 && stream < STREAMS ? &c->completed[stream] : NULL;
}

// By how many operations a completed one of the same stream is later than this; 0:
// none is known.
uint64_t completed_after(struct context *c, const struct op *o)
{
    const lockstep_word *last = completed_of(c, get(&o->key), get(&o->stream));
    uint64_t completed = last != NULL ? get(last) : 0, order = get(&o->order);
    return completed > order ? completed - order : get(&o->late) != 0;
}

static bool same_launch(const struct op *a, uint64_t group) { return group != 0 && get(&a->group) == group; }

// An operation of an earlier launch than one that completed on its stream is
// over, too. Its own last event may merely be delivered later: so it is ended at
// the second such completion, or by the sweep. What a proxy still sends for it is
// no loss of NCCL's and waited for, until nothing is heard of it any more.
static void infer(struct lockstep_ring *r, uint64_t handle, uint64_t key, uint64_t group, uint64_t now)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    if (o == NULL) {
        return;
    }
    uint64_t n = get(&o->counts);
    bool earlier = get(&o->key) == key && !same_launch(o, group);
    bool again = earlier && atomic_exchange_explicit(&o->late, now, memory_order_relaxed) != 0;
    op_release(r, o, s, handle);
    if (again && proxies_begun(n) == proxies_ended(n)) {
        op_end(r, o, s, handle, LOCKSTEP_F_INFERRED, now);
    }
}

static void infer_earlier(struct lockstep_ring *r, struct context *c, uint64_t order, uint64_t key, uint64_t group,
                          uint64_t now)
{
    uint64_t from = get(&c->swept) + 1;
    if (from + WINDOW - 1 < order) {
        from = order - (WINDOW - 1); // older ones are left to the sweep
    }
    bool all = true;
    for (uint64_t i = from; i < order; i++) {
        uint64_t handle = get(&c->window[i % WINDOW]);
        if (lockstep_slot_of(r, handle) != NULL) {
            infer(r, handle, key, group, now);
            all = all && lockstep_slot_of(r, handle) == NULL;
        }
        if (all) {
            raise_to(&c->swept, i);
        }
    }
}

// now: when it ended, which may be found out later.
static void op_complete(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle, uint64_t now)
{
    struct context *c = context_at((uint32_t)get(&o->context));
    uint64_t order = get(&o->order), key = get(&o->key), group = get(&o->group);
    lockstep_word *completed = completed_of(c, key, get(&o->stream));
    if (!op_end(r, o, s, handle, 0, now)) {
        return;
    }
    if (completed != NULL) {
        raise_to(completed, order);
    }
    if (key != 0) {
        infer_earlier(r, c, order, key, group, now);
    }
}

// Operations before this one on a communicator wait for kernel channels though
// proxies are done; if no channel ever came by then, none will.
#define PROXIES_ALONE_AFTER 2

static bool kernels_tell(const struct op *o)
{
    const struct context *c = context_at((uint32_t)get(&o->context));
    return get(&o->expected) != 0 && (get(&c->kernels_seen) != 0 || get(&o->order) <= PROXIES_ALONE_AFTER);
}

static bool none_open(uint64_t n)
{
    return (n & (ENQUEUED | OVER)) == ENQUEUED && kernels_begun(n) == kernels_ended(n) &&
           proxies_begun(n) == proxies_ended(n);
}

static bool is_complete(const struct op *o, uint64_t n)
{
    return none_open(n) && kernels_tell(o) && kernels_ended(n) >= get(&o->expected);
}

// Where kernels tell nothing, all that began has ended, and more may come: how
// many channels have a proxy, and in which directions, NCCL does not say. It is
// over when a later launch comes to its proxies, or nothing comes for a while.
uint64_t op_settled_at(const struct op *o, const struct lockstep_slot *s, uint64_t n)
{
    if (!none_open(n) || kernels_tell(o) || kernels_ended(n) + proxies_ended(n) == 0) {
        return 0;
    }
    uint64_t last = get(&o->proxy_stop);
    return last != 0 ? last : get(&s->last);
}

static void settle(struct lockstep_ring *r, uint64_t handle, uint64_t key, uint64_t group)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    if (o == NULL) {
        return;
    }
    bool earlier = get(&o->key) == key && !same_launch(o, group);
    uint64_t at = earlier ? op_settled_at(o, s, get(&o->counts)) : 0;
    op_release(r, o, s, handle);
    if (at != 0) {
        op_complete(r, o, s, handle, at);
    }
}

void op_settle_before(struct lockstep_ring *r, const struct op *o)
{
    struct context *c = context_at((uint32_t)get(&o->context));
    uint64_t order = get(&o->order), from = get(&c->swept) + 1, key = get(&o->key), group = get(&o->group);
    if (key == 0 || kernels_tell(o)) {
        return;
    }
    for (uint64_t i = from + WINDOW - 1 < order ? order - (WINDOW - 1) : from; i < order; i++) {
        settle(r, get(&c->window[i % WINDOW]), key, group);
    }
}

void op_check(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle, uint64_t n,
              uint64_t now)
{
    if (is_complete(o, n)) {
        op_complete(r, o, s, handle, now);
    }
}

// Without kernel channels and proxy operations nothing tells of completion.
// Whether a communicator has them shows when it has had so many operations and so
// much time: a kernel may have to wait for a long one that was there before it.
#define NO_CHILD_AFTER 16
#define NO_PROXY_AFTER_NS 1000000000ull
#define NO_KERNEL_AFTER_NS 60000000000ull

bool has_children(const struct context *c, uint64_t now)
{
    uint64_t asked = context_asked(c);
    if ((asked & (T_KERNEL_CH | T_PROXY_OP)) == 0) {
        return false;
    }
    bool kernels = get(&c->abi) >= 3 && (asked & T_KERNEL_CH) != 0;
    uint64_t limit = kernels ? NO_KERNEL_AFTER_NS : NO_PROXY_AFTER_NS, age = now - get(&c->created);
    return get(&c->children_seen) != 0 || get(&c->orders) <= NO_CHILD_AFTER || age < limit;
}

// A last event that is on its way arrives within this time.
#define LATE_NS 100000000ull

static void sweep_one(struct lockstep_ring *r, struct op *o, uint64_t handle, uint64_t now)
{
    struct lockstep_slot *s;
    if (op_of(r, handle, &s) != o) {
        return;
    }
    struct context *c = context_at((uint32_t)get(&o->context));
    bool over = get(&o->late) != 0 || completed_after(c, o) >= WINDOW;
    uint64_t late = get(&o->late);
    if (get(&s->last) > late) {
        late = get(&s->last);
    }
    uint64_t settled = op_settled_at(o, s, get(&o->counts));
    if (settled != 0) {
        if (now > settled && now - settled > LATE_NS) {
            op_complete(r, o, s, handle, settled);
        }
        return;
    }
    if ((get(&o->counts) & ENQUEUED) != 0 && !has_children(c, now)) {
        op_end(r, o, s, handle, LOCKSTEP_F_ENQUEUED_ONLY, get(&o->enqueue_ended));
        return;
    }
    if (over && now > late && now - late > LATE_NS) {
        op_end(r, o, s, handle, LOCKSTEP_F_INFERRED, now);
    }
}

void ops_sweep(struct lockstep_ring *r)
{
    uint64_t now = lockstep_now();
    for (uint64_t i = 0; i < r->nslots; i++) {
        uint64_t handle = get(&op_at(i)->handle);
        if (handle != 0) {
            sweep_one(r, op_at(i), handle, now);
        }
    }
}
