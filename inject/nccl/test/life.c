// SPDX-License-Identifier: Apache-2.0

// Operations that go well: what becomes of them in the ring.
#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static uint64_t got[4096][LOCKSTEP_WORDS];
#define LANE_MAX (sizeof got / sizeof got[0])

static size_t ops(struct reading *r)
{
    *r = ring_read(getpid());
    return ring_records(r, LOCKSTEP_OP, got, LANE_MAX);
}

// Where kernels tell nothing, the end of the last operation shows a little later.
static size_t ops_by(struct reading *r, size_t n)
{
    *r = ring_read(getpid());
    return ring_await(r, LOCKSTEP_OP, n, got, LANE_MAX);
}

// Whatever lets an operation complete in this version.
static void finish(void *ctx, void *op, int channels, uint64_t at)
{
    if (nccl.v >= 3) {
        run_kernel(ctx, op, channels, at, 1000);
    } else {
        run_proxy(ctx, op, true, 1);
    }
}

static void fields(void)
{
    struct reading r;
    void *ctx = comm_init(7, 4, 2, "world");
    void *group = start_group(ctx, NULL);
    void *op = start_coll(ctx, (struct coll){NULL, group, 41, "Broadcast", "ncclFloat32", "RING", "SIMPLE", 100, 3, 2, 7});
    stop(op);
    finish(ctx, op, 2, 5000);
    CHECK(ops_by(&r, 1) == 1);
    uint64_t *w = got[0];
    CHECK(strcmp(ring_string(&r, w[1] >> 48 & 0xff), "Broadcast") == 0);
    CHECK(strcmp(ring_string(&r, w[1] >> 56), "ncclFloat32") == 0);
    CHECK((w[1] >> 8 & 0xff) == LOCKSTEP_LEVEL_SUMMARY);
    CHECK(w[3] == 41 && w[4] == 400, "seq %lu bytes %lu", w[3], w[4]);
    CHECK((int32_t)w[5] == 3 && (w[5] >> 32 & 0xff) == 2);
    CHECK(strcmp(ring_string(&r, w[5] >> 40 & 0xff), "RING") == 0);
    CHECK(strcmp(ring_string(&r, w[5] >> 48 & 0xff), "SIMPLE") == 0);
    CHECK(w[6] != 0 && w[11] >= w[6] + (uint32_t)w[7]);
    CHECK((uint32_t)(w[7] >> 32) == LOCKSTEP_NO_STEP);
    const struct lockstep_comm *c = ring_comm(&r, w[1] >> 32 & 0xffff);
    CHECK(c->hash == 7 && strcmp(c->name, "world") == 0 && c->abi == nccl.v);
    CHECK(c->nranks == (nccl.v >= 4 ? 4 : LOCKSTEP_NONE));
    CHECK((rec_flags(w) & LOCKSTEP_F_GROUP) != 0 && (uint32_t)w[13] == 1);
    CHECK(atomic_load(&r.header->witnesses) == LOCKSTEP_W_NCCL);
    comm_finalize(ctx);
    CHECK(atomic_load(&c->state) == LOCKSTEP_E_ENDED);
}

static void kernel_fold(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 3), *k[3];
    static const uint64_t start_at[] = {1300, 1100, 1200}, stop_at[] = {1400, 1900, 2100};
    for (int i = 0; i < 3; i++) {
        k[i] = start_kernel(ctx, op, i, start_at[i]);
    }
    for (int i = 2; i >= 0; i--) {
        CHECK(ops(&r) == 0, "complete before channel %d", i);
        if (nccl.v >= 4) {
            state(k[i], S_KERNEL_CH_STOP, stop_at[i]);
        }
        stop(k[i]);
    }
    CHECK(ops(&r) == 1);
    uint64_t *w = got[0];
    CHECK((w[13] >> 48 & 0xff) == 3);
    if (nccl.v == 3) { // has no stamps
        CHECK((rec_flags(w) & LOCKSTEP_F_KERNEL) == 0 && w[8] == 0 && w[9] == 0);
        CHECK((rec_flags(w) & LOCKSTEP_F_KERNEL_PART) != 0);
        return;
    }
    CHECK(rec_flags(w) == (LOCKSTEP_F_KERNEL | LOCKSTEP_F_GROUP), "flags %x", rec_flags(w));
    CHECK(w[8] == 1100 && w[9] == 2100, "%lu %lu", w[8], w[9]);
    CHECK((uint32_t)w[10] == 900 && w[5] >> 56 == 2, "slowest took %u on %lu", (uint32_t)w[10], w[5] >> 56);
}

static void waits(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 9, true), *q = start_proxy_op(ctx, op, getpid(), 0, 4, false);
    void *s = start_proxy_step(ctx, p, 0), *t = start_proxy_step(ctx, q, 0);
    uint64_t a = lockstep_now();
    state_null(s, S_SEND_GPU_WAIT);
    nap(4000);
    uint64_t b = lockstep_now();
    if (nccl.v >= 4) {
        state(s, S_SEND_PEER_WAIT, 512);
        nap(8000);
    }
    uint64_t c = lockstep_now();
    state_null(s, S_SEND_WAIT);
    nap(12000);
    stop(s);
    stop(p);
    uint64_t d = lockstep_now();
    state_null(t, S_RECV_WAIT);
    nap(3000);
    state_null(t, S_RECV_FLUSH_WAIT);
    nap(6000);
    uint64_t e = lockstep_now();
    state_null(t, S_RECV_GPU_WAIT);
    nap(9000);
    stop(t);
    stop(q);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
    }
    uint64_t f = lockstep_now();
    CHECK(ops_by(&r, 1) == 1);
    uint64_t *w = got[0], tick = LOCKSTEP_TICK_NS;
    uint64_t gpu = (uint32_t)w[14] * tick, peer = (w[14] >> 32) * tick, wire = (uint32_t)w[15] * tick,
             flush = (w[15] >> 32) * tick;
    CHECK((rec_flags(w) & (LOCKSTEP_F_WAITS | LOCKSTEP_F_PROXY)) == (LOCKSTEP_F_WAITS | LOCKSTEP_F_PROXY));
    CHECK(gpu >= 4000000 + 9000000 && gpu <= (b - a) + (f - e) + (nccl.v < 4 ? c - b : 0) + 1000000, "gpu %lu", gpu);
    CHECK(peer >= 3000000 + (nccl.v >= 4 ? 8000000 : 0) && peer <= (c - b) + (e - d), "peer %lu", peer);
    CHECK(wire >= 12000000 && wire <= d - c + tick, "wire %lu", wire);
    CHECK(flush >= 6000000 && flush <= e - d, "flush %lu", flush);
    CHECK(w[10] >> 32 == 9, "peer of the wire %lu", w[10] >> 32);
    CHECK(w[13] >> 56 == 2 && w[12] >> 32 >= (uint32_t)w[12]);
    CHECK(w[2] >> 48 == 1, "one step was sent, not %lu", w[2] >> 48);
}

#define HANDLE_OF(h) ((uintptr_t)(h) & ((1ull << 48) - 1))

// What is shown of a direction's channels of even (0) or odd (1) number.
static struct lockstep_wait *shown(void *op, bool send, int odd)
{
    static struct reading r;
    r = ring_read(getpid());
    const struct lockstep_slot *s = ring_slot(&r, (HANDLE_OF(op) & 0xffff) - 1);
    return (struct lockstep_wait *)&s->waits[(send ? 0 : 2) + odd];
}

#define SHOWN(state, channel, send, peer) ((uint64_t)(state) | (channel) << 8 | (send) << 16 | (uint64_t)(peer) << 32)

// Steps begin several ahead: that one ends says nothing of the next.
static void steps_ahead(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1), *s[3];
    void *p = start_proxy_op(ctx, op, getpid(), 1, 4, false);
    struct lockstep_wait *w = shown(op, false, 1);
    for (int i = 0; i < 3; i++) {
        s[i] = start_proxy_step(ctx, p, 4 * i); // numbers that leave gaps
        state_null(s[i], S_RECV_WAIT);
    }
    uint64_t since = atomic_load(&w->since);
    CHECK(atomic_load(&w->what) == SHOWN(S_RECV_WAIT, 1, 0, 4), "%lx", atomic_load(&w->what));
    nap(100);
    state_null(s[0], S_RECV_FLUSH_WAIT);
    state_null(s[0], S_RECV_GPU_WAIT);
    state_null(s[1], S_RECV_FLUSH_WAIT);
    CHECK(atomic_load(&w->what) == SHOWN(S_RECV_GPU_WAIT, 1, 0, 4), "the oldest: %lx", atomic_load(&w->what));
    CHECK(atomic_load(&w->since) > since);
    stop(s[0]);
    CHECK(atomic_load(&w->what) == SHOWN(S_RECV_FLUSH_WAIT, 1, 0, 4), "%lx", atomic_load(&w->what));
    state_null(s[1], S_RECV_GPU_WAIT);
    since = atomic_load(&w->since);
    nap(100);
    stop(s[1]);
    CHECK(atomic_load(&w->what) == SHOWN(S_RECV_WAIT, 1, 0, 4), "the last still waits: %lx", atomic_load(&w->what));
    CHECK(atomic_load(&w->since) > since, "it is what holds since the one before ended");
    state_null(s[2], S_RECV_GPU_WAIT); // needs no flush
    CHECK(atomic_load(&w->what) == SHOWN(S_RECV_GPU_WAIT, 1, 0, 4), "%lx", atomic_load(&w->what));
    stop(s[2]);
    CHECK((atomic_load(&w->what) & 0xff) == 0, "%lx", atomic_load(&w->what));
    CHECK(atomic_load(&shown(op, true, 1)->what) == 0, "nothing was sent");
}

// Channels that share a place do not hide one that hangs.
static void shared_place(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 2, 4, true), *q = start_proxy_op(ctx, op, getpid(), 6, 5, true);
    void *hangs = start_proxy_step(ctx, p, 0), *goes = start_proxy_step(ctx, q, 0);
    struct lockstep_wait *w = shown(op, true, 0);
    state_null(hangs, S_SEND_WAIT);
    state_null(goes, S_SEND_GPU_WAIT);
    stop(goes);
    CHECK(atomic_load(&w->what) == SHOWN(S_SEND_WAIT, 2, 1, 4), "%lx", atomic_load(&w->what));
    stop(p); // its steps tell no end
    CHECK((atomic_load(&w->what) & 0xff) == 0, "%lx", atomic_load(&w->what));
    goes = start_proxy_step(ctx, q, 1);
    state_null(goes, S_SEND_WAIT);
    CHECK(atomic_load(&w->what) == SHOWN(S_SEND_WAIT, 6, 1, 5), "%lx", atomic_load(&w->what));
    stop(goes);
    stop(q);
}

// One step of a proxy operation, and whether it comes so far as to wait for the wire.
static void one_step(void *ctx, void *p, int i, bool send, bool wire)
{
    void *s = start_proxy_step(ctx, p, i);
    state_null(s, send ? S_SEND_GPU_WAIT : S_RECV_WAIT);
    if (wire) {
        state_null(s, send ? S_SEND_WAIT : S_RECV_GPU_WAIT);
        if (i == 0) {
            nap(1000);
        }
    }
    stop(s);
}

// A transfer that told its last state while another had the place is shown, since
// when it waits, once that is over; at the latest a tick later.
static void shown_later(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 2, 4, true), *q = start_proxy_op(ctx, op, getpid(), 6, 5, true);
    void *goes = start_proxy_step(ctx, q, 0), *hangs = start_proxy_step(ctx, p, 0);
    struct lockstep_wait *w = shown(op, true, 0);
    state_null(goes, S_SEND_GPU_WAIT);
    state_null(hangs, S_SEND_GPU_WAIT);
    uint64_t from = lockstep_now();
    state_null(hangs, S_SEND_WAIT);
    uint64_t to = lockstep_now();
    state_null(hangs, S_SEND_WAIT); // again
    state_null(goes, S_SEND_WAIT);
    CHECK(atomic_load(&w->what) == SHOWN(S_SEND_WAIT, 6, 1, 5), "%lx", atomic_load(&w->what));
    stop(goes);
    stop(q);
    for (int i = 0; i < 500 && atomic_load(&w->what) != SHOWN(S_SEND_WAIT, 2, 1, 4); i++) {
        nap(10000);
    }
    nap(1000); // the state is written first
    CHECK(atomic_load(&w->what) == SHOWN(S_SEND_WAIT, 2, 1, 4), "%lx", atomic_load(&w->what));
    uint64_t since = atomic_load(&w->since);
    CHECK(since >= from && since <= to, "%lu of %lu", since - from, to - from);
    stop(hangs);
    CHECK((atomic_load(&w->what) & 0xff) == 0, "%lx", atomic_load(&w->what));
}

// NCCL records the wait for the peer before every try to send.
static void peer_waits_again(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 9, true), *s = start_proxy_step(ctx, p, 0);
    struct lockstep_wait *w = shown(op, true, 0);
    state_null(s, S_SEND_GPU_WAIT);
    nap(1000);
    uint64_t from = lockstep_now(), since = 0;
    for (int i = 0; i < 20; i++) {
        state_null(s, S_SEND_PEER_WAIT);
        since = i == 0 ? atomic_load(&w->since) : since;
        nap(1000);
    }
    CHECK(atomic_load(&w->since) == since, "it waits since the first try");
    state_null(s, S_SEND_WAIT);
    uint64_t waited = lockstep_now() - from;
    stop(s);
    stop(p);
    run_kernel(ctx, op, 1, 100, 10);
    CHECK(ops_by(&r, 1) == 1);
    uint64_t peer = (got[0][14] >> 32) * LOCKSTEP_TICK_NS;
    CHECK(peer >= 20000000 && peer <= waited, "%lu of %lu ns", peer, waited);
}

// NCCL starts a receive at every poll until it can be posted.
static void starts_again(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1), *other = enqueue(ctx, 1, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 9, false), *first = start_proxy_step(ctx, p, 0), *s = first;
    for (int i = 0; i < 20000 && s == first; i++) {
        s = start_proxy_step(ctx, p, 0);
    }
    CHECK(s == first, "it is one step");
    state_null(s, S_RECV_WAIT);
    struct lockstep_wait *w = shown(op, false, 0);
    CHECK(atomic_load(&w->what) == SHOWN(S_RECV_WAIT, 0, 0, 9), "%lx", atomic_load(&w->what));
    CHECK(start_proxy_step(ctx, p, 1) != first && start_proxy_step(ctx, p, 0) != first, "others are not");
    void *q = start_proxy_op(ctx, other, getpid(), 1, 9, true);
    CHECK(start_proxy_step(ctx, q, 0) != NULL && ring_drops(LOCKSTEP_D_STEPS_FULL) == 0);
}

static void sends(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 9, true), *q = start_proxy_op(ctx, op, getpid(), 0, 4, false);
    r = ring_read(getpid());
    const struct lockstep_slot *s = ring_slot(&r, (HANDLE_OF(op) & 0xffff) - 1);
    CHECK(atomic_load(&s->word[2]) == HANDLE_OF(op));
    for (int i = 0; i < 5; i++) {
        one_step(ctx, p, i, true, true);
        one_step(ctx, q, i, false, true);
    }
    one_step(ctx, p, 5, true, false); // cut short
    CHECK(atomic_load(&s->word[2]) == (HANDLE_OF(op) | 5ull << 48), "%lx", atomic_load(&s->word[2]));
    CHECK((atomic_load(&s->word[1]) >> 16 & LOCKSTEP_F_WAITS) != 0 && (uint32_t)atomic_load(&s->word[15]) != 0);
    uint64_t shown = atomic_load(&s->word[15]);
    for (int i = 1; i < 70000; i++) {
        one_step(ctx, p, i, true, true);
    }
    stop(q);
    stop(p);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
    }
    CHECK(ops_by(&r, 1) == 1 && got[0][2] == (HANDLE_OF(op) | 0xffffull << 48), "%lx", got[0][2]);
    CHECK((uint32_t)got[0][15] > (uint32_t)shown && got[0][10] >> 32 == 9);
}

// Nothing is known of the wire where nothing was sent, or no steps were told of.
static void no_sends(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    bool steps = (nccl.mask & T_PROXY_STEP) != 0;
    void *p = start_proxy_op(ctx, op, getpid(), 0, 9, !steps);
    if (steps) {
        one_step(ctx, p, 0, false, true);
    }
    stop(p);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
    }
    CHECK(ops_by(&r, 1) == 1 && got[0][2] == HANDLE_OF(op));
    CHECK((int32_t)(got[0][10] >> 32) == LOCKSTEP_NONE && (uint32_t)got[0][15] == 0);
    CHECK(((rec_flags(got[0]) & LOCKSTEP_F_WAITS) != 0) == steps);
}

static void messages(void)
{
    struct reading r;
    void *ctx = comm_init(7, 8, 0, "world"), *group = start_group(ctx, NULL);
    static const struct {
        bool send;
        int peer;
        uint64_t number;
    } m[] = {{true, 1, 0}, {true, 2, 0}, {false, 1, 0}, {true, 1, 1}, {false, 1, 1}, {true, 2, 1}, {true, 1, 2}};
    for (size_t i = 0; i < 7; i++) {
        void *op = start_p2p(ctx, NULL, group, m[i].send, m[i].peer);
        stop(op);
        finish(ctx, op, 1, 1000 + 1000 * i);
    }
    CHECK(ops_by(&r, 7) == 7);
    for (size_t i = 0; i < 7; i++) {
        unsigned dir = rec_flags(got[i]) & (LOCKSTEP_F_SEND | LOCKSTEP_F_RECV);
        CHECK(got[i][3] == m[i].number, "message %zu is number %lu", i, got[i][3]);
        CHECK((int32_t)got[i][5] == m[i].peer);
        CHECK(dir == (m[i].send ? LOCKSTEP_F_SEND : LOCKSTEP_F_RECV));
        CHECK((uint32_t)got[i][13] == (uint32_t)got[0][13] && (rec_flags(got[i]) & LOCKSTEP_F_GROUP) != 0);
    }
}

static void groups(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    for (uint64_t i = 0; i < 3; i++) {
        finish(ctx, enqueue(ctx, i, 1), 1, 1000 * (i + 1));
    }
    CHECK(ops_by(&r, 3) == 3);
    CHECK((uint32_t)got[0][13] != (uint32_t)got[1][13] && (uint32_t)got[1][13] != (uint32_t)got[2][13]);
}

static void proxies_alone(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    for (uint64_t i = 0; i < 12; i++) {
        run_proxy(ctx, enqueue(ctx, i, 2), true, 1);
    }
    CHECK(ops_by(&r, 12) == 12);
    CHECK((rec_flags(got[11]) & LOCKSTEP_F_PROXY) != 0);
}

// Two channels, of which the second comes to its proxies when the first is done.
static void proxies_in_turn(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    uint64_t first[4], done[4];
    for (uint64_t i = 0; i < 4; i++) {
        void *op = enqueue(ctx, i, 2);
        run_proxy(ctx, op, true, 1);
        first[i] = lockstep_now();
        nap(10000);
        run_proxy(ctx, op, true, 2);
        done[i] = lockstep_now();
        if (lockstep_now() - first[i] > 90000000) {
            return; // too busy a machine: so long a pause may be an end
        }
        CHECK(ops(&r) == i, "the last may not be over");
    }
    CHECK(ops_by(&r, 4) == 4 && ring_drops(LOCKSTEP_D_STALE_HANDLE) == 0);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK(got[i][3] == i && got[i][13] >> 56 == 2 && (rec_flags(got[i]) & LOCKSTEP_F_INFERRED) == 0);
        CHECK(got[i][11] > first[i] && got[i][11] <= done[i], "its end, not when that was known");
        CHECK(got[i][2] >> 48 == 8);
    }
}

static void no_children(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    CHECK((nccl.mask & (T_KERNEL_CH | T_PROXY_OP)) == 0 && (nccl.mask & T_COLL) != 0);
    enqueue(ctx, 0, 2);
    CHECK(ops(&r) == 1);
    CHECK((rec_flags(got[0]) & LOCKSTEP_F_ENQUEUED_ONLY) != 0 && got[0][11] >= got[0][6] + (uint32_t)got[0][7]);
    const struct lockstep_frontier *f = ring_frontier(&r);
    CHECK(f != NULL && atomic_load(&f->enqueued) == 1 && atomic_load(&f->open) == 0);
    CHECK(atomic_load(&f->started) == 0 && atomic_load(&f->completed) == 0, "neither was seen");
}

static void no_children_ever(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    for (uint64_t i = 0; i < 20; i++) {
        enqueue(ctx, i, 2);
    }
    CHECK(ops(&r) == 0, "they may still come");
    nap(2500000);
    CHECK(ops(&r) == 20);
    enqueue(ctx, 20, 2);
    CHECK(ops(&r) == 21);
    for (int i = 0; i < 21; i++) {
        CHECK((rec_flags(got[i]) & LOCKSTEP_F_ENQUEUED_ONLY) != 0);
    }
}

static void graph(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    void *api = start_api(ctx, NULL, T_COLL_API, (void *)(uintptr_t)0x99, true);
    stop(api);
    for (int i = 0; i < 5000; i++) { // calls outside graphs do not push it out
        stop(start_api(ctx, NULL, T_COLL_API, (void *)(uintptr_t)0x98, false));
    }
    for (uint64_t i = 0; i < 2; i++) { // two replays
        void *group = start_group(ctx, NULL);
        void *op = start_coll(ctx, (struct coll){api, group, 0, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
        stop(op);
        run_kernel(ctx, op, 1, 1000 * (i + 1), 10);
    }
    CHECK(ops(&r) == 2);
    CHECK((rec_flags(got[0]) & LOCKSTEP_F_GRAPH) != 0 && (rec_flags(got[1]) & LOCKSTEP_F_GRAPH) != 0);
    CHECK((got[0][13] >> 32 & 0xffff) == 1);
}

static void copy_engine(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world"), *group = start_group(ctx, NULL);
    struct abi_event e = {.type = T_CE_COLL, .parent = group,
                          .ce_coll = {.seq = 5, .func = "AllGather", .count = 10, .datatype = "ncclInt8",
                                      .sync_strategy = "MC", .ce_seq = 77, .stream = (void *)(uintptr_t)0x42}};
    void *op = start_new(ctx, &e);
    void *sync = start_new(ctx, &(struct abi_event){.type = T_CE_SYNC, .parent = op, .ce_sync = {true, 2}});
    void *batch = start_new(ctx, &(struct abi_event){.type = T_CE_BATCH, .parent = op, .ce_batch = {3, 99, false}});
    state_null(op, 25);
    stop(batch);
    stop(sync);
    stop(op);
    CHECK(ops(&r) == 1);
    CHECK(rec_flags(got[0]) == (LOCKSTEP_F_CE | LOCKSTEP_F_ENQUEUED_ONLY | LOCKSTEP_F_GROUP), "%x", rec_flags(got[0]));
    CHECK(got[0][3] == 77 && got[0][4] == 10 && (got[0][13] >> 32 & 0xffff) == 1);
}

static void gpu_of_driver(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    finish(ctx, enqueue(ctx, 0, 1), 1, 10);
    CHECK(ops(&r) == 1);
    unsigned gpu = ring_comm(&r, 1)->gpu;
    const struct lockstep_gpu *g = (const void *)(r.base + ring_section(&r, LOCKSTEP_S_GPUS)->offset + gpu * 64);
    CHECK(gpu != 0 && g->device == 3);
    for (int i = 0; i < 16; i++) {
        CHECK(g->uuid[i] == i + 1);
    }
}

static void no_driver(void)
{
    struct reading r;
    comm_init(7, 2, 0, "world");
    r = ring_read(getpid());
    CHECK(ring_comm(&r, 1)->gpu == 0);
}

// One communicator, as live as it gets: who enqueues, a proxy, a profiler thread,
// and a host callback that replays a graph, all at once.
#define LIVE 400
static _Atomic(void *) handed[LIVE];
static void *live_ctx;

static void *handed_over(int i)
{
    void *op;
    while ((op = atomic_load(&handed[i])) == NULL) {
        sched_yield();
    }
    return op;
}

static void *live_proxy(void *arg)
{
    (void)arg;
    for (int i = 0; i < LIVE; i++) {
        void *op = handed_over(i), *ctl = start_raw(live_ctx, &(struct abi_event){.type = T_PROXY_CTRL}, 136);
        CHECK(ctl == NULL);
        run_proxy(live_ctx, op, true, 1);
        run_proxy(live_ctx, op, false, 3);
    }
    return NULL;
}

static void *live_profiler(void *arg)
{
    (void)arg;
    for (int i = 0; i < LIVE && nccl.v >= 3; i++) {
        run_kernel(live_ctx, handed_over(i), 2, 1000 + 100 * (uint64_t)i, 90);
    }
    return NULL;
}

static void *live_callback(void *arg)
{
    (void)arg;
    for (int i = 1; i < LIVE; i += 2) {
        atomic_store(&handed[i], enqueue(live_ctx, (uint64_t)i, 2));
    }
    return NULL;
}

static void live(void)
{
    pthread_t t[3];
    struct reading r;
    live_ctx = comm_init(7, 4, 0, "world");
    pthread_create(&t[0], NULL, live_proxy, NULL);
    pthread_create(&t[1], NULL, live_profiler, NULL);
    pthread_create(&t[2], NULL, live_callback, NULL);
    for (int i = 0; i < LIVE; i += 2) {
        atomic_store(&handed[i], enqueue(live_ctx, (uint64_t)i, 2));
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    comm_finalize(live_ctx);
    size_t n = ops(&r), seen[LIVE] = {0};
    CHECK(n == LIVE, "%zu", n);
    for (size_t i = 0; i < n; i++) {
        seen[got[i][3] % LIVE]++;
        CHECK(got[i][11] != 0);
        CHECK((rec_flags(got[i]) & LOCKSTEP_F_ENQUEUED_ONLY) == 0);
    }
    for (size_t i = 0; i < LIVE; i++) {
        CHECK(seen[i] == 1, "operation %zu: %zu records", i, seen[i]);
    }
    for (uint64_t i = 0; ring_slot(&r, i) != NULL; i++) {
        CHECK((atomic_load(&ring_slot(&r, i)->word[0]) & 0xff) == LOCKSTEP_SLOT_FREE);
    }
}

const struct test life_tests[] = {
    {"fields of a collective", 1, 7, fields, {0}},
    {"kernel channels folded", 3, 7, kernel_fold, {0}},
    {"waits folded", 1, 7, waits, {0}},
    {"a step waits behind one that ended", 1, 7, steps_ahead, {0}},
    {"two channels share a place", 1, 7, shared_place, {0}},
    {"a transfer is shown later", 1, 7, shown_later, {0}},
    {"a send is tried again", 4, 7, peer_waits_again, {0}},
    {"a receive is started again", 1, 7, starts_again, {0}},
    {"steps sent are counted", 1, 7, sends, {0}},
    {"nothing is sent", 1, 7, no_sends, {0}},
    {"no steps are told of", 1, 7, no_sends, {"LOCKSTEP_LEVEL=summary"}},
    {"messages numbered per peer and direction", 1, 7, messages, {0}},
    {"groups have numbers", 1, 7, groups, {0}},
    {"proxies alone complete", 1, 7, proxies_alone, {0}},
    {"channels come to their proxies in turn", 1, 2, proxies_in_turn, {0}},
    {"without kernels, too", 3, 7, proxies_in_turn, {"LOCKSTEP_EVENT_MASK=0x1e"}},
    {"nothing tells of completion", 1, 7, no_children, {"LOCKSTEP_EVENT_MASK=6"}},
    {"children are asked for and never come", 1, 2, no_children_ever, {0}},
    {"replays of a graph", 5, 7, graph, {0}},
    {"copy engine", 6, 7, copy_engine, {0}},
    {"uuid of the GPU", 4, 7, gpu_of_driver, {"DRIVER_CUDA=1"}},
    {"no CUDA driver", 4, 4, no_driver, {0}},
    {"four threads", 1, 7, live, {0}},
    {0},
};
