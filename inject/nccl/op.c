// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Operations: their beginning, and what is heard of them until their end.
#include "op.h"

#include <stdlib.h>

static struct op *ops;

bool ops_init(struct lockstep_ring *r)
{
    if (ops == NULL) {
        ops = calloc(r->nslots, sizeof *ops);
    }
    return ops != NULL;
}

uint32_t current_step(struct lockstep_ring *r)
{
    uint64_t step = get(&r->header->step);
    return step < LOCKSTEP_NO_STEP ? (uint32_t)step : LOCKSTEP_NO_STEP;
}

struct op *op_at(uint64_t slot) { return &ops[slot]; }

static struct op *private_of_handle(uint64_t handle) { return &ops[(handle & 0xffff) - 1]; }

HOT struct op *op_of(struct lockstep_ring *r, uint64_t handle, struct lockstep_slot **slot)
{
    struct lockstep_slot *s = lockstep_slot_of(r, handle);
    *slot = s;
    if (s == NULL) {
        return NULL;
    }
    struct op *o = private_of_handle(handle);
    return get(&o->handle) == handle ? o : NULL;
}

// One more in a field of counts, unless it is full.
static uint64_t counted(uint64_t n, unsigned shift, unsigned max)
{
    return (n >> shift & max) < max ? n + (1ull << shift) : n;
}

// Holds an operation and counts an event in the same step.
static struct op *hold(struct lockstep_ring *r, uint64_t handle, unsigned shift, unsigned max,
                       struct lockstep_slot **slot)
{
    struct op *o = op_of(r, handle, slot);
    uint64_t n = o != NULL ? atomic_load_explicit(&o->counts, memory_order_acquire) : OVER;
    do {
        if ((n & OVER) != 0 || n >> GENERATION != generation_bits(handle) >> GENERATION || holders(n) == HOLDERS_MAX) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(&o->counts, &n, counted(n, shift, max) + (1ull << HOLDERS),
                                                    memory_order_acq_rel, memory_order_acquire));
    return o;
}

// Counts an event and lets the operation go; what that made of it.
static uint64_t release(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle, unsigned shift,
                        unsigned max)
{
    uint64_t n = get(&o->counts), after;
    do {
        after = counted(n, shift, max) - (1ull << HOLDERS);
    } while (!atomic_compare_exchange_weak_explicit(&o->counts, &n, after, memory_order_acq_rel, memory_order_relaxed));
    if ((after & OVER) != 0 && holders(after) == 0) {
        lockstep_slot_free(r, s, handle);
    }
    return after;
}

#define NOTHING 0, 0 // to count

struct op *op_hold(struct lockstep_ring *r, uint64_t handle, struct lockstep_slot **slot)
{
    return hold(r, handle, NOTHING, slot);
}

void op_release(struct lockstep_ring *r, struct op *o, struct lockstep_slot *s, uint64_t handle)
{
    release(r, o, s, handle, NOTHING);
}

// Late events of the slot's former operation may look at it meanwhile.
static void assign(struct op *to, const struct op *from)
{
    put(&to->handle, 0);
    for (size_t i = 0; i < sizeof *to / sizeof(lockstep_word); i++) {
        put((lockstep_word *)to + i, get((const lockstep_word *)from + i));
    }
}

static uint64_t key_of(const struct context *c, const struct op_descr *d)
{
    if (get(&c->abi) < 5) {
        return KEY_COMM;
    }
    return d->on_stream ? d->stream | KEY_STREAM : 0;
}

static void fill_private(struct lockstep_ring *r, struct context *c, struct op *o, const struct op_descr *d)
{
    struct op fresh = {0};
    put(&fresh.counts, OVER); // until it has begun
    put(&fresh.context, context_index(c));
    put(&fresh.order, 1 + atomic_fetch_add_explicit(&c->orders, 1, memory_order_relaxed));
    put(&fresh.enqueue_began, lockstep_now());
    put(&fresh.flags, d->flags | (d->group != 0 ? LOCKSTEP_F_GROUP : 0));
    put(&fresh.group, d->group != 0 ? (uint32_t)body_of(d->group) : 0);
    put(&fresh.key, key_of(c, d));
    put(&fresh.stream, context_stream(c, get(&fresh.key)));
    put(&fresh.bytes, d->count * size_of_datatype(d->datatype));
    put(&fresh.seq, d->seq);
    put(&fresh.shape, (uint64_t)(uint32_t)d->peer | (uint64_t)d->channels << 32 |
                          (uint64_t)code_of(r, d->algo) << 40 | (uint64_t)code_of(r, d->proto) << 48);
    put(&fresh.step, current_step(r));
    put(&fresh.wire_peer, (uint32_t)LOCKSTEP_NONE);
    bool kernels = get(&c->abi) >= 3 && (context_asked(c) & T_KERNEL_CH) != 0;
    put(&fresh.expected, kernels ? (d->channels > 0 ? d->channels : 1) : 0);
    assign(o, &fresh);
}

static void slot_show(struct lockstep_slot *s, const struct op *o, uint64_t handle)
{
    put(&s->word[1], get(&o->head));
    put(&s->word[2], handle);
    put(&s->word[3], get(&o->seq));
    put(&s->word[4], get(&o->bytes));
    put(&s->word[5], get(&o->shape));
    put(&s->word[6], get(&o->enqueue_began));
    put(&s->word[7], lockstep_pair(0, (uint32_t)get(&o->step)));
    put(&s->word[10], lockstep_pair(0, (uint32_t)LOCKSTEP_NONE));
    put(&s->word[13], get(&o->group) | get(&o->stream) << 32);
    put(&s->order, get(&o->order));
    put(&s->last, get(&o->enqueue_began));
}

static void frontier_enqueued(struct lockstep_frontier *f, struct op *o)
{
    if (f == NULL) {
        return;
    }
    uint64_t total = atomic_fetch_add_explicit(&f->total, 1, memory_order_relaxed);
    bool message = (get(&o->flags) & (LOCKSTEP_F_SEND | LOCKSTEP_F_RECV)) != 0;
    put(&o->fseq, message ? total : get(&o->seq));
    add(&f->open, 1);
    lockstep_frontier_raise(&f->enqueued, &f->enqueued_at, get(&o->fseq), get(&o->enqueue_began));
}

// Whoever ends a communicator looks for its operations after having said so; who
// begins one looks whether that was said after having shown it. So one sees the
// other.
static bool ended_meanwhile(const struct context *c, uint64_t life)
{
    return (life & 0xff) != CTX_LIVE || atomic_load(&c->generation) != life;
}

uint64_t op_begin(struct lockstep_ring *r, struct context *c, const struct op_descr *d)
{
    struct lockstep_slot *s;
    uint64_t life = get(&c->generation);
    uint64_t handle = lockstep_slot_claim(r, &s);
    if (handle == 0) {
        return 0;
    }
    uint16_t comm = context_comm(r, c, d->hash, d->comm_name, d->rank);
    uint8_t func = code_of(r, d->func);
    struct op *o = private_of_handle(handle);
    fill_private(r, c, o, d);
    put(&o->head, lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, (unsigned)get(&o->flags), comm, func,
                                code_of(r, d->datatype)));
    struct lockstep_frontier *f = (d->flags & LOCKSTEP_F_CE) == 0 ? lockstep_frontier_of(r, comm, func) : NULL;
    atomic_store_explicit(&o->frontier, f, memory_order_relaxed);
    frontier_enqueued(f, o);
    slot_show(s, o, handle);
    atomic_store_explicit(&o->counts, generation_bits(handle), memory_order_release);
    atomic_store(&o->handle, handle);
    if (ended_meanwhile(c, life)) {
        lockstep_drop(r, LOCKSTEP_D_FINALIZED);
        op_end(r, o, s, handle, 0, 0);
        return 0;
    }
    put(&c->window[get(&o->order) % WINDOW], handle);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUEING);
    return tagged(TAG_OP, handle);
}

void op_enqueued(struct lockstep_ring *r, uint64_t handle)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    uint64_t now = lockstep_now();
    bool before = o != NULL && (get(&o->counts) & ENQUEUED) != 0;
    if (o == NULL || before) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        if (before) {
            op_release(r, o, s, handle);
        }
        return;
    }
    put(&o->enqueue_ended, now);
    put(&s->word[7], lockstep_pair(saturate(now - get(&o->enqueue_began)), (uint32_t)get(&o->step)));
    put(&s->last, now);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUED);
    bool children = has_children(context_at((uint32_t)get(&o->context)), now);
    uint64_t n = release(r, o, s, handle, 0, 1);
    if (children) {
        op_check(r, o, s, handle, n, now);
    } else {
        op_end(r, o, s, handle, LOCKSTEP_F_ENQUEUED_ONLY, now);
    }
}

void op_enqueued_only(struct lockstep_ring *r, uint64_t handle)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    uint64_t now = lockstep_now();
    if (o != NULL) {
        put(&o->enqueue_ended, now);
        op_release(r, o, s, handle);
        op_end(r, o, s, handle, LOCKSTEP_F_ENQUEUED_ONLY, now);
    }
}

static void op_started(struct op *o, struct lockstep_slot *s, uint64_t handle, uint64_t now)
{
    struct lockstep_frontier *f = atomic_load_explicit(&o->frontier, memory_order_relaxed);
    put(&s->last, now);
    if (f != NULL) {
        lockstep_frontier_raise(&f->started, &f->started_at, get(&o->fseq), now);
    }
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_STARTED);
}

static void see(lockstep_word *flag)
{
    if (get(flag) == 0) {
        put(flag, 1);
    }
}

HOT bool op_kernel_begin(struct lockstep_ring *r, uint64_t handle, uint64_t gpu_start, uint64_t now)
{
    struct lockstep_slot *s;
    struct op *o = hold(r, handle, K_BEGUN, K_MAX, &s);
    if (o == NULL) {
        return false;
    }
    struct context *c = context_at((uint32_t)get(&o->context));
    see(&c->kernels_seen);
    see(&c->children_seen);
    add(&s->children, 1);
    if (gpu_start != 0 && get(&s->word[8]) == 0) {
        put(&s->word[8], gpu_start);
    }
    op_started(o, s, handle, now);
    op_release(r, o, s, handle);
    return true;
}

static void fold_times(struct op *o, unsigned channel, uint64_t start, uint64_t stop)
{
    lower_to(&o->kernel_start, start);
    raise_to(&o->kernel_stop, stop);
    raise_to(&o->slowest, (stop - start) << 8 | (channel & 0xff));
    atomic_fetch_or_explicit(&o->flags, LOCKSTEP_F_KERNEL, memory_order_relaxed);
}

HOT void op_kernel_end(struct lockstep_ring *r, uint64_t handle, unsigned channel, uint64_t start, uint64_t stop,
                       bool times, uint64_t now)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    if (o == NULL) {
        return;
    }
    if (times) {
        fold_times(o, channel, start, stop);
    } else {
        atomic_fetch_or_explicit(&o->flags, LOCKSTEP_F_KERNEL_PART, memory_order_relaxed);
    }
    add(&s->children, (uint64_t)-1);
    put(&s->last, now);
    op_check(r, o, s, handle, release(r, o, s, handle, K_ENDED, K_MAX), now);
}

HOT bool op_proxy_begin(struct lockstep_ring *r, uint64_t handle, uint64_t now)
{
    struct lockstep_slot *s;
    struct op *o = hold(r, handle, P_BEGUN, P_MAX, &s);
    if (o == NULL) {
        return false;
    }
    see(&context_at((uint32_t)get(&o->context))->children_seen);
    add(&s->children, 1ull << 32);
    lower_to(&o->proxy_start, now);
    if (get(&s->word[12]) == 0) {
        put(&s->word[12], lockstep_pair(ticks_since(get(&o->enqueue_began), now), 0));
    }
    op_started(o, s, handle, now);
    if (proxies_begun(get(&o->counts)) == 1) {
        op_settle_before(r, o);
    }
    op_release(r, o, s, handle);
    return true;
}

HOT void op_proxy_end(struct lockstep_ring *r, uint64_t handle, const struct sent *sent, uint64_t now)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    if (o == NULL) {
        return;
    }
    if (sent->steps != 0) {
        raise_to(&o->wire_peer, (sent->wire / LOCKSTEP_TICK_NS + 1) << 32 | (uint32_t)sent->peer);
    }
    raise_to(&o->proxy_stop, now);
    atomic_fetch_or_explicit(&o->flags, LOCKSTEP_F_PROXY, memory_order_relaxed);
    add(&s->children, (uint64_t)-(1ll << 32));
    put(&s->last, now);
    op_check(r, o, s, handle, release(r, o, s, handle, P_ENDED, P_MAX), now);
}

HOT void op_waited(struct lockstep_ring *r, uint64_t handle, const uint64_t waits[WAITS], bool sent)
{
    struct lockstep_slot *s;
    struct op *o = op_hold(r, handle, &s);
    if (o == NULL) {
        return;
    }
    for (int i = 0; i < WAITS; i++) {
        if (waits[i] != 0) {
            add(&o->waits[i], waits[i]);
        }
    }
    if ((get(&o->flags) & LOCKSTEP_F_WAITS) == 0) {
        atomic_fetch_or_explicit(&o->flags, LOCKSTEP_F_WAITS, memory_order_relaxed);
        atomic_fetch_or_explicit(&s->word[1], (uint64_t)LOCKSTEP_F_WAITS << 16, memory_order_relaxed);
    }
    if (sent) {
        add(&o->sends, 1);
        put(&s->word[2], handle_and_sends(o, handle));
    }
    put(&s->word[14], waits_of(o, WAIT_GPU, WAIT_PEER));
    put(&s->word[15], waits_of(o, WAIT_WIRE, WAIT_FLUSH));
    op_release(r, o, s, handle);
}
