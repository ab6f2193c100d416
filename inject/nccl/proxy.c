// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What NCCL's proxy threads do for an operation: transfers over the network, in
// steps, each of which waits three times.
#define _GNU_SOURCE
#include "plugin.h"

#include <sys/types.h>
#include <unistd.h>

// what of a proxy operation: peer u32 | channel u8 | send u8 | steps u16.
static uint64_t pack(const struct abi_proxy_op *p)
{
    uint64_t steps = p->steps < 0 ? 0 : p->steps > 0xffff ? 0xffff : (uint64_t)p->steps;
    return (uint32_t)p->peer | (uint64_t)p->channel << 32 | (uint64_t)(p->is_send != 0) << 40 | steps << 48;
}

static bool is_send(uint64_t what) { return (what >> 40 & 0xff) != 0; }

// A parent of another process (a transfer relayed through this one) looks like
// one of ours.
static bool foreign(struct lockstep_ring *r, int32_t pid)
{
    if ((uint64_t)pid == r->header->pid) {
        return false;
    }
    lockstep_drop(r, LOCKSTEP_D_FOREIGN_PID);
    return true;
}

// The waits of a step, by direction and place.
static const unsigned char states[2][3] = {
    {S_RECV_WAIT, S_RECV_FLUSH_WAIT, S_RECV_GPU_WAIT},
    {S_SEND_GPU_WAIT, S_SEND_PEER_WAIT, S_SEND_WAIT},
};

// What the oldest step that has not ended waits for, since NCCL begins several
// ahead and ends them in turn; 0: there is none.
static unsigned oldest_waits(const struct entry *p, bool send)
{
    uint64_t ended = get(&p->ended);
    for (int i = 2; i >= 0; i--) {
        if (get(&p->at[i]) > ended) {
            return states[send][i];
        }
    }
    return 0;
}

static struct lockstep_wait *place(struct lockstep_slot *s, uint64_t what)
{
    return &s->waits[(is_send(what) ? 0 : 2) + (what >> 32 & 1)];
}

// What a place shows of a proxy operation, without the state.
static uint64_t whose(uint64_t what) { return (what >> 32 & 0xffff) << 8 | (what & 0xffffffff) << 32; }

static unsigned state_in(uint64_t shown) { return shown & 0xff; }

static bool replace(lockstep_word *w, uint64_t before, uint64_t after)
{
    return atomic_compare_exchange_strong(w, &before, after);
}

// Shows what a proxy operation waits for; p is NULL where it is over. Each
// direction has places of its own, since one often goes on while the other hangs,
// and a place is one channel's until that waits no more.
static void show(struct lockstep_ring *r, uint64_t op, uint64_t what, struct entry *p, bool ended, uint64_t now)
{
    struct lockstep_slot *s = lockstep_slot_of(r, op);
    if (s == NULL) {
        return;
    }
    put(&s->last, now);
    unsigned state = p != NULL ? oldest_waits(p, is_send(what)) : 0;
    if (p != NULL && (ended || state != get(&p->state))) {
        put(&p->since, now);
        atomic_store_explicit(&p->state, state, memory_order_release);
    }
    struct lockstep_wait *w = place(s, what);
    uint64_t before = get(&w->what), after = whose(what) | state;
    bool others = state_in(before) != 0 && (before ^ after) >> 8 != 0;
    if (others || (before == after && !ended)) {
        return;
    }
    put(&w->since, p != NULL ? get(&p->since) : now);
    // A slot that passed to another operation meanwhile shows nothing of this one.
    if (replace(&w->what, before, after) && lockstep_slot_of(r, op) != s) {
        replace(&w->what, after, 0);
    }
}

// Shows, in places that are free, what waits without being shown: it came to its
// last state while another had the place, and tells nothing more.
void proxy_ops_show(struct lockstep_ring *r)
{
    for (uint32_t i = 0; i < proxy_ops.count; i++) {
        struct entry *p = &proxy_ops.entries[i];
        uint64_t generation = pool_taken(p), op = get(&p->op), what = get(&p->what);
        struct lockstep_slot *s = generation != 0 ? lockstep_slot_of(r, op) : NULL;
        unsigned state = s != NULL ? oldest_waits(p, is_send(what)) : 0;
        if (state == 0 || get(&p->state) != state) { // or since when is still to be written
            continue;
        }
        struct lockstep_wait *w = place(s, what);
        uint64_t before = get(&w->what), after = whose(what) | state;
        if (state_in(before) != 0 || !replace(&w->what, before, after)) {
            continue;
        }
        put(&w->since, get(&p->since));
        bool still = pool_taken(p) == generation && oldest_waits(p, is_send(what)) == state;
        if (!still || lockstep_slot_of(r, op) != s) {
            replace(&w->what, after, 0);
        }
    }
}

static void clear_places(struct entry *e)
{
    for (int i = 0; i < 3; i++) {
        put(&e->at[i], 0);
    }
}

HOT uint64_t proxy_op_start(struct lockstep_ring *r, const void *descr)
{
    const struct abi_event *e = descr;
    uint64_t parent = (uintptr_t)e->parent;
    if (foreign(r, e->proxy_op.pid)) {
        return 0;
    }
    struct lockstep_slot *s;
    if (tag_of(parent) != TAG_OP || op_of(r, body_of(parent), &s) == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return 0;
    }
    struct entry *p = pool_claim(r, &proxy_ops, body_of(parent));
    if (p == NULL) {
        return 0;
    }
    uint64_t now = lockstep_now();
    put(&p->begin, now);
    put(&p->what, pack(&e->proxy_op));
    put(&p->size, 0);
    put(&p->sum, 0);
    put(&p->nth, 0);
    put(&p->ended, 0);
    put(&p->newest, 0);
    put(&p->state, 0);
    put(&p->since, now);
    clear_places(p);
    uint64_t handle = pool_publish(&proxy_ops, TAG_PROXY_OP, p);
    op_proxy_begin(r, body_of(parent), now);
    return handle;
}

void proxy_op_stop(struct lockstep_ring *r, uint64_t handle)
{
    struct entry *p = pool_of(&proxy_ops, TAG_PROXY_OP, handle);
    uint64_t op = p != NULL ? get(&p->op) : 0, what = p != NULL ? get(&p->what) : 0;
    uint64_t steps = p != NULL ? get(&p->size) : 0, wire = p != NULL ? get(&p->sum) : 0;
    if (p == NULL || !pool_free(p, handle)) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    uint64_t now = lockstep_now();
    show(r, op, what, NULL, true, now);
    op_proxy_end(r, op, &(struct sent){steps, wire, (int32_t)(uint32_t)what}, now);
}

HOT uint64_t proxy_step_start(struct lockstep_ring *r, const void *descr)
{
    const struct abi_event *e = descr;
    uint64_t parent = (uintptr_t)e->parent;
    struct entry *p = pool_of(&proxy_ops, TAG_PROXY_OP, parent);
    if (p == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return 0;
    }
    uint64_t newest = get(&p->newest);
    struct entry *s = pool_of(&proxy_steps, TAG_PROXY_STEP, newest);
    if (s != NULL && get(&s->sum) == (uint32_t)e->proxy_step.step && get(&s->at[0]) == 0) {
        return newest; // NCCL starts a receive again and again until it can be posted
    }
    s = pool_claim(r, &proxy_steps, get(&p->op));
    if (s == NULL) {
        return 0;
    }
    put(&s->parent, parent);
    put(&s->begin, lockstep_now());
    clear_places(s);
    put(&p->nth, get(&p->nth) + 1); // one thread drives an operation's steps
    put(&s->nth, get(&p->nth));
    put(&s->what, get(&p->what));
    put(&s->size, 0);
    put(&s->sum, (uint32_t)e->proxy_step.step);
    newest = pool_publish(&proxy_steps, TAG_PROXY_STEP, s);
    put(&p->newest, newest);
    return newest;
}

// Which of a step's three waits a state enters; -1: none.
static int wait_of(int state)
{
    switch (state) {
    case S_SEND_GPU_WAIT:
    case S_RECV_WAIT: return 0;
    case S_SEND_PEER_WAIT:
    case S_RECV_FLUSH_WAIT: return 1;
    case S_SEND_WAIT:
    case S_RECV_GPU_WAIT: return 2;
    default: return -1;
    }
}

HOT void proxy_step_state(struct lockstep_ring *r, uint64_t handle, int state, const void *args)
{
    struct entry *s = pool_of(&proxy_steps, TAG_PROXY_STEP, handle);
    int nth = wait_of(state);
    if (s == NULL || nth < 0) {
        lockstep_drop(r, s == NULL ? LOCKSTEP_D_STALE_HANDLE : LOCKSTEP_D_UNKNOWN_EVENT);
        return;
    }
    uint64_t now = lockstep_now();
    if (get(&s->at[nth]) == 0) { // a send tells of its wait for the peer at every try
        put(&s->at[nth], now);
    }
    if (args != NULL) {
        put(&s->size, ((const union abi_args *)args)->trans_size);
    }
    struct entry *p = pool_of(&proxy_ops, TAG_PROXY_OP, get(&s->parent));
    if (p != NULL) {
        raise_to(&p->at[nth], get(&s->nth));
    }
    show(r, get(&s->op), get(&s->what), p, false, now);
}

static uint64_t between(uint64_t from, uint64_t to) { return from != 0 && to > from ? to - from : 0; }

// A wait lasts until the next that was entered, or the stop.
static void fold(const uint64_t at[4], bool send, uint64_t waits[WAITS])
{
    static const unsigned char kinds[2][3] = {
        {WAIT_PEER, WAIT_FLUSH, WAIT_GPU}, // receiving
        {WAIT_GPU, WAIT_PEER, WAIT_WIRE},  // sending
    };
    for (int i = 0; i < 3; i++) {
        uint64_t next = 0;
        for (int j = i + 1; j < 4 && next == 0; j++) {
            next = at[j];
        }
        waits[kinds[send][i]] += between(at[i], next);
    }
}

static void emit_step(struct lockstep_ring *r, const struct entry *s, const uint64_t at[4])
{
    struct lockstep_slot *slot = lockstep_slot_of(r, get(&s->op));
    uint64_t what = get(&s->what), head = slot != NULL ? get(&slot->word[1]) : 0;
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_PROXY_STEP, LOCKSTEP_LEVEL_ALL, 0, head >> 32 & 0xffff, head >> 48 & 0xff, 0),
        [2] = get(&s->op),
        [3] = lockstep_pair((uint32_t)get(&s->sum), saturate(get(&s->size))),
        [4] = what,
        [5] = get(&s->begin),
        [6] = at[0],
        [7] = at[1],
        [8] = at[2],
        [9] = at[3],
        [10] = get(&s->size),
        [11] = slot != NULL ? get(&slot->word[3]) : 0,
        [12] = slot != NULL ? get(&slot->word[7]) >> 32 : LOCKSTEP_NO_STEP,
    };
    lockstep_emit(r, word);
}

HOT void proxy_step_stop(struct lockstep_ring *r, uint64_t handle)
{
    struct entry *s = pool_of(&proxy_steps, TAG_PROXY_STEP, handle);
    if (s == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    struct entry copy;
    put(&copy.op, get(&s->op));
    put(&copy.parent, get(&s->parent));
    put(&copy.begin, get(&s->begin));
    put(&copy.what, get(&s->what));
    put(&copy.size, get(&s->size));
    put(&copy.sum, get(&s->sum));
    put(&copy.nth, get(&s->nth));
    uint64_t at[4] = {get(&s->at[0]), get(&s->at[1]), get(&s->at[2]), lockstep_now()}, waits[WAITS] = {0};
    if (!pool_free(s, handle)) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    fold(at, is_send(get(&copy.what)), waits);
    struct entry *p = pool_of(&proxy_ops, TAG_PROXY_OP, get(&copy.parent));
    bool sent = is_send(get(&copy.what)) && at[2] != 0; // it came to wait for the wire
    if (p != NULL && sent) {
        add(&p->size, 1);
        add(&p->sum, waits[WAIT_WIRE]);
    }
    if (p != NULL) {
        raise_to(&p->ended, get(&copy.nth));
    }
    op_waited(r, get(&copy.op), waits, sent);
    show(r, get(&copy.op), get(&copy.what), p, true, at[3]);
    if (level_all(r)) {
        emit_step(r, &copy, at);
    }
}
