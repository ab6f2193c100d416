// SPDX-License-Identifier: Apache-2.0

// Every trap in the lifetime of events, by name.
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t got[8192][LOCKSTEP_WORDS];
#define LANE_MAX (sizeof got / sizeof got[0])

static size_t ops(void)
{
    struct reading r = ring_read(getpid());
    return ring_records(&r, LOCKSTEP_OP, got, LANE_MAX);
}

static size_t ops_by(size_t n)
{
    struct reading r = ring_read(getpid());
    return ring_await(&r, LOCKSTEP_OP, n, got, LANE_MAX);
}

static unsigned open_slots(void)
{
    struct reading r = ring_read(getpid());
    unsigned n = 0;
    for (uint64_t i = 0; ring_slot(&r, i) != NULL; i++) {
        n += (atomic_load(&ring_slot(&r, i)->word[0]) & 0xff) != LOCKSTEP_SLOT_FREE;
    }
    return n;
}

static void lost_stop(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    start_kernel(ctx, op, 0, 100); // its stop is lost
    run_kernel(ctx, enqueue(ctx, 1, 1), 1, 300, 50);
    CHECK(ops() == 1, "the first may only be late");
    run_kernel(ctx, enqueue(ctx, 2, 1), 1, 500, 50);
    CHECK(ops() == 3);
    unsigned inferred = 0;
    for (int i = 0; i < 3; i++) {
        bool first = got[i][3] == 0;
        inferred += (rec_flags(got[i]) & LOCKSTEP_F_INFERRED) != 0;
        CHECK(((rec_flags(got[i]) & LOCKSTEP_F_INFERRED) != 0) == first);
        CHECK(!first || ((rec_flags(got[i]) & LOCKSTEP_F_KERNEL_PART) != 0 && got[i][11] != 0));
    }
    CHECK(inferred == 1 && ring_drops(LOCKSTEP_D_INFERRED) == 1 && open_slots() == 0);
}

static void slow_proxy(void)
{
    // Kernels after it are done, and a send of the first is still on the wire.
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true);
    run_kernel(ctx, op, 1, 100, 10);
    for (uint64_t i = 1; i < 5; i++) {
        run_kernel(ctx, enqueue(ctx, i, 1), 1, 100 + 100 * i, 10);
    }
    CHECK(ops() == 4 && open_slots() == 1);
    stop(p);
    CHECK(ops() == 5 && ring_drops(LOCKSTEP_D_INFERRED) == 0);
}

static void lost_stop_of_many(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    for (uint64_t i = 0; i < 100; i++) {
        enqueue(ctx, i, 1);
    }
    run_kernel(ctx, enqueue(ctx, 100, 1), 1, 300, 50);
    nap(2500000); // the sweep
    CHECK(ops() == 101 && open_slots() == 0, "%zu", ops());
    CHECK(ring_drops(LOCKSTEP_D_INFERRED) == 100);
}

static void one_launch(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *group = start_group(ctx, NULL), *op[3];
    for (uint64_t i = 0; i < 3; i++) {
        op[i] = start_coll(ctx, (struct coll){NULL, group, i, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
        stop(op[i]);
    }
    for (uint64_t i = 2; i < 3; i--) { // one kernel: in any order
        CHECK(ops() == 2 - i);
        run_kernel(ctx, op[i], 1, 100 + i, 10);
    }
    CHECK(ops() == 3 && ring_drops(LOCKSTEP_D_INFERRED) == 0);
}

static void other_stream(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op[4];
    for (uint64_t i = 0; i < 4; i++) {
        void *api = start_api(ctx, NULL, T_COLL_API, (void *)(uintptr_t)(0x10 + (i != 0)), false);
        void *group = start_group(ctx, NULL);
        op[i] = start_coll(ctx, (struct coll){api, group, i, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
        stop(op[i]);
        stop(api);
    }
    for (uint64_t i = 1; i < 4; i++) {
        run_kernel(ctx, op[i], 1, 100 * i, 10);
    }
    CHECK(ops() == 3 && open_slots() == 1);
    run_kernel(ctx, op[0], 1, 1000, 10);
    CHECK(ops() == 4 && ring_drops(LOCKSTEP_D_INFERRED) == 0);
}

static void *on_stream(void *ctx, uint64_t seq, uintptr_t stream)
{
    void *api = start_api(ctx, NULL, T_COLL_API, (void *)stream, false), *group = start_group(ctx, NULL);
    void *op = start_coll(ctx, (struct coll){api, group, seq, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
    stop(op);
    stop(api);
    return op;
}

// More streams than have numbers of their own: one of them hangs.
static void many_streams(void)
{
    enum { STREAMS = 20, HUNG = 15 };
    void *ctx = comm_init(7, 2, 0, "world"), *op[STREAMS];
    for (uint64_t i = 0; i < STREAMS; i++) {
        op[i] = on_stream(ctx, i, 0x10 * i); // the first of them the null stream
    }
    for (uint64_t i = 0; i < STREAMS; i++) {
        if (i != HUNG) {
            run_kernel(ctx, op[i], 1, 100 * i + 100, 10);
        }
    }
    for (uint64_t i = 0; i < 2 * STREAMS; i++) {
        run_kernel(ctx, on_stream(ctx, STREAMS + i, 0x10 * (HUNG + 1 + i % 4)), 1, 9000 + 100 * i, 10);
    }
    nap(2500000); // the sweep
    CHECK(open_slots() == 1 && ring_drops(LOCKSTEP_D_INFERRED) == 0, "%u %lu", open_slots(),
          ring_drops(LOCKSTEP_D_INFERRED));
    for (uint64_t i = 0; i < 2; i++) { // while two of its own stream do prove it
        run_kernel(ctx, on_stream(ctx, 200 + i, 0x10 * HUNG), 1, 90000 + 100 * i, 10);
    }
    CHECK(open_slots() == 0 && ring_drops(LOCKSTEP_D_INFERRED) == 1);
}

static void unknown_streams(void)
{
    // A call that is forgotten by then: of which stream its operations are, nobody knows.
    void *ctx = comm_init(7, 2, 0, "world"), *group = start_group(ctx, NULL);
    struct coll c = {NULL, group, 0, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7};
    stop(start_coll(ctx, c));
    for (c.seq = 1; c.seq < 5; c.seq++) {
        c.group = start_group(ctx, NULL);
        void *op = start_coll(ctx, c);
        stop(op);
        run_kernel(ctx, op, 1, 100 * c.seq, 10);
    }
    CHECK(ops() == 4 && open_slots() == 1 && ring_drops(LOCKSTEP_D_INFERRED) == 0);
}

static void bad_stamps(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    run_kernel(ctx, enqueue(ctx, 0, 1), 1, 5000, 10);
    run_kernel(ctx, enqueue(ctx, 1, 1), 1, 6000, (uint64_t)-100); // stop before start
    run_kernel(ctx, enqueue(ctx, 2, 1), 1, 4000, 10);             // before its predecessor
    run_kernel(ctx, enqueue(ctx, 3, 1), 1, 7000, 1ull << 50);     // longer than the program runs
    run_kernel(ctx, enqueue(ctx, 4, 1), 1, 8000, 10);
    CHECK(ops() == 5 && ring_drops(LOCKSTEP_D_BAD_GPU_TIME) == 3, "%lu", ring_drops(LOCKSTEP_D_BAD_GPU_TIME));
    for (int i = 0; i < 5; i++) {
        bool good = got[i][3] == 0 || got[i][3] == 4;
        CHECK(((rec_flags(got[i]) & LOCKSTEP_F_KERNEL) != 0) == good);
        CHECK(((rec_flags(got[i]) & LOCKSTEP_F_KERNEL_PART) != 0) == !good);
    }
    uint64_t high = 1ull << 60; // a stamp from the future does not spoil all that follow
    run_kernel(ctx, enqueue(ctx, 5, 1), 1, high, 10);
    for (uint64_t i = 0; i < 80; i++) {
        run_kernel(ctx, enqueue(ctx, 6 + i, 1), 1, 9000 + 100 * i, 10);
    }
    CHECK(ops() == 86);
    CHECK((rec_flags(got[85]) & LOCKSTEP_F_KERNEL) != 0);
}

static void lapped_stamps(void)
{
    // The host is 64 works behind: the first channel's start is of a later work.
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 2);
    void *a = start_kernel(ctx, op, 0, 90000), *b = start_kernel(ctx, op, 1, 1000);
    state(a, S_KERNEL_CH_STOP, 2000);
    stop(a);
    state(b, S_KERNEL_CH_STOP, 2100);
    stop(b);
    CHECK(ops() == 1);
    CHECK((rec_flags(got[0]) & (LOCKSTEP_F_KERNEL | LOCKSTEP_F_KERNEL_PART)) ==
          (LOCKSTEP_F_KERNEL | LOCKSTEP_F_KERNEL_PART));
    CHECK(got[0][8] == 1000 && got[0][9] == 2100 && (got[0][13] >> 48 & 0xff) == 2);
}

static void parent_after_stop(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    void *api = start_api(ctx, NULL, T_COLL_API, (void *)(uintptr_t)0x55, false);
    stop(api);
    void *group = start_group(ctx, NULL);
    stop(group);
    void *op = start_coll(ctx, (struct coll){api, group, 0, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
    stop(op);
    run_kernel(ctx, op, 1, 100, 10);
    CHECK(ops() == 1 && (got[0][13] >> 32 & 0xffff) == 1);
    CHECK((rec_flags(got[0]) & LOCKSTEP_F_GROUP) != 0);
    for (int i = 0; i < 5000; i++) { // so many that the call is forgotten
        stop(start_api(ctx, NULL, T_COLL_API, NULL, false));
    }
    op = start_coll(ctx, (struct coll){api, group, 1, "AllReduce", "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
    stop(op);
    run_kernel(ctx, op, 1, 200, 10);
    CHECK(ops() == 2 && (got[1][13] >> 32 & 0xffff) == 0);
}

static void children_late(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    CHECK(ops() == 0 && open_slots() == 1);
    nap(1000);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
    }
    CHECK(ops() == 0, "a proxy operation is open");
    stop(p);
    CHECK(ops_by(1) == 1 && open_slots() == 0);
    uint64_t stale = ring_drops(LOCKSTEP_D_STALE_HANDLE); // and children of what is over
    CHECK(start_proxy_op(ctx, op, getpid(), 0, 1, true) == NULL);
    if (nccl.v >= 3) {
        CHECK(start_kernel(ctx, op, 0, 1) == NULL);
        stale++;
    }
    CHECK(ring_drops(LOCKSTEP_D_STALE_HANDLE) == stale + 1 && ops() == 1);
}

static void foreign_pid(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    CHECK(start_proxy_op(ctx, op, getpid() + 1, 0, 1, true) == NULL);
    CHECK(start_proxy_op(ctx, (void *)(uintptr_t)0x7f0012345678, 1, 0, 1, true) == NULL); // a pointer elsewhere
    CHECK(ring_drops(LOCKSTEP_D_FOREIGN_PID) == 2 && ring_drops(LOCKSTEP_D_STALE_HANDLE) == 0);
    CHECK(open_slots() == 1);
}

static const uintptr_t garbage[] = {1, 0x1000, 0x7fffdeadbeef, 0xa200000000000000, 0xa2ffffffffffffff,
                                    0xa2000000ffff0001, 0xa7000000ffff0001, 0xa8000000ffff0001, 0xa9000000ffff3fff,
                                    0xa500000000000000, 0xa5ffffffffffffff, 0xa580000000000001, 0xabffffffffffffff,
                                    0xa1ffffffffffffff, 0xa100000000000001, 0xad00000000000001, 0xffffffffffffffff};

static void stops_astray(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 2);
    stop(op); // a second time
    stop(op);
    CHECK(ring_drops(LOCKSTEP_D_STALE_HANDLE) == 2);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true), *s = start_proxy_step(ctx, p, 0);
    stop(s);
    stop(s);
    stop(p);
    stop(p);
    state_null(s, S_SEND_WAIT);
    CHECK(ring_drops(LOCKSTEP_D_STALE_HANDLE) == 5);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        void *h = (void *)garbage[i];
        stop(h);
        state(h, S_KERNEL_CH_STOP, 1);
        state_null(h, S_SEND_WAIT);
        start_proxy_step(ctx, h, 0);
        start_proxy_op(ctx, h, getpid(), 0, 0, true);
        start_kernel(ctx, h, 0, 1);
        start_group(h, NULL);
        CHECK(nccl.table->finalize(h) == 0);
    }
    stop(NULL);
    state_null(NULL, S_SEND_WAIT);
    comm_finalize(NULL);
    CHECK(ops_by(nccl.v < 3) == (nccl.v < 3) && open_slots() == (nccl.v >= 3)); // proxies complete where there are no kernels
}

static void nothing_there(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1), *h = NULL;
    CHECK(nccl.table->start(ctx, &h, NULL) == 0 && h == NULL);
    CHECK(nccl.table->start(NULL, &h, NULL) == 0 && h == NULL);
    struct abi_event e = {.type = T_GROUP};
    CHECK(nccl.table->start(ctx, NULL, &e) == 0);
    CHECK(start_group(NULL, NULL) == NULL);
    CHECK(ring_drops(LOCKSTEP_D_NULL_ARGS) == 2);
    if (nccl.v >= 3) {
        void *k = start_kernel(ctx, op, 0, 100);
        state_null(k, S_KERNEL_CH_STOP); // no stamp
        stop(k);
        CHECK(ring_drops(LOCKSTEP_D_NULL_ARGS) == 3 && ops() == 1);
        CHECK((rec_flags(got[0]) & LOCKSTEP_F_KERNEL) == 0 && got[0][9] == 0);
    }
    struct coll none = {.group = NULL, .func = "AllReduce", .channels = 1, .hash = 7};
    if (nccl.v > 1) {
        none.func = NULL; // strings that are not there
    }
    stop(start_coll(ctx, none));
    CHECK(open_slots() >= 1);
}

static void unknown_types(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    static const uint64_t types[] = {0, 3, 1 << 15, 1 << 16, 65536 | 2, 0x80};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct abi_event e = {.type = types[i]};
        start_raw(ctx, &e, 136);
    }
    CHECK(ring_drops(LOCKSTEP_D_UNKNOWN_EVENT) >= 2);
    void *op = enqueue(ctx, 0, 1), *p = start_proxy_op(ctx, op, getpid(), 0, 1, true), *s = start_proxy_step(ctx, p, 0);
    uint64_t before = ring_drops(LOCKSTEP_D_UNKNOWN_EVENT);
    state_null(s, 4711);
    state_null(s, -1);
    CHECK(ring_drops(LOCKSTEP_D_UNKNOWN_EVENT) == before + 2);
}

static void no_parent(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    uint64_t n = 2;
    CHECK(start_proxy_op(ctx, NULL, getpid(), 0, 1, true) == NULL);
    CHECK(start_proxy_step(ctx, NULL, 0) == NULL);
    if (nccl.v >= 3) {
        CHECK(start_kernel(ctx, NULL, 0, 1) == NULL);
        CHECK(start_net(ctx, NULL, ABI_NET_IB, NULL) == NULL);
        n += 2;
    }
    CHECK(ring_drops(LOCKSTEP_D_STALE_HANDLE) == n);
}

static void after_finalize(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *other = comm_init(8, 2, 0, "other"), *op = enqueue(ctx, 0, 2);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true), *s = start_proxy_step(ctx, p, 0);
    comm_finalize(ctx);
    CHECK(ops() == 1 && got[0][11] == 0, "not seen to complete");
    CHECK(start_group(ctx, NULL) == NULL && enqueue(ctx, 1, 1) == NULL);
    state_null(s, S_SEND_WAIT);
    stop(s);
    stop(p);
    stop(op);
    comm_finalize(ctx);
    uint64_t late = nccl.v >= 5 ? 5 : 3; // calls of their own since version 5
    CHECK(ring_drops(LOCKSTEP_D_FINALIZED) == late + 1, "%lu", ring_drops(LOCKSTEP_D_FINALIZED));
    CHECK(ring_drops(LOCKSTEP_D_STALE_HANDLE) == 1 && ops() == 1);
    op = enqueue(other, 0, 1); // which nothing of this concerns
    if (nccl.v >= 3) {
        run_kernel(other, op, 1, 10, 10);
        CHECK(ops() == 2);
    }
}

static void loaded_again(void)
{
    static char names[2][2][32] = {{"AllReduce", "Broadcast"}, {"Broadcast", "AllReduce"}};
    char func[32];
    for (int i = 0; i < 4; i++) {
        void *ctx = comm_init(7 + (uint64_t)i, 2, 0, "world"), *group = start_group(ctx, NULL);
        strcpy(func, names[i & 1][0]); // another text in the same place, as after NCCL was loaded again
        void *op = start_coll(ctx, (struct coll){NULL, group, 0, func, "ncclFloat32", "RING", "LL", 1, 0, 1, 7});
        stop(op);
        if (nccl.v >= 3) {
            run_kernel(ctx, op, 1, 100, 10);
        } else {
            run_proxy(ctx, op, true, 1);
        }
        comm_finalize(ctx);
        dlclose(nccl.lib);
        stop(op); // still to be called: the library stays
        nccl_load(nccl.v);
    }
    CHECK(ops() == 4);
    struct reading r = ring_read(getpid());
    for (int i = 0; i < 4; i++) {
        CHECK(nccl.v == 1 || strcmp(ring_string(&r, got[i][1] >> 48 & 0xff), names[i & 1][0]) == 0, "%d", i);
        CHECK((got[i][1] >> 32 & 0xffff) == (uint64_t)i + 1);
    }
}

#define COMM_THREADS 6
static void *many_comms(void *arg)
{
    for (int i = 0; i < 20; i++) {
        void *ctx = comm_init((uint64_t)(uintptr_t)arg, 2, 0, "many"), *op = enqueue(ctx, 0, 1);
        if (nccl.v >= 3) {
            run_kernel(ctx, op, 1, 100, 10);
        }
        comm_finalize(ctx);
    }
    return NULL;
}

static void concurrent_init(void)
{
    pthread_t t[COMM_THREADS];
    for (uintptr_t i = 0; i < COMM_THREADS; i++) {
        pthread_create(&t[i], NULL, many_comms, (void *)(i + 1));
    }
    for (int i = 0; i < COMM_THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    CHECK(ops() == COMM_THREADS * 20);
    CHECK(nccl.v < 3 || ring_drops(LOCKSTEP_D_FINALIZED) == 0);
}

static void too_many_comms(void)
{
    enum { N = 600 };
    void *ctx[N];
    int without = 0;
    for (int i = 0; i < N; i++) {
        ctx[i] = comm_init(1000 + (uint64_t)i, 2, 0, "crowd");
        without += ctx[i] == NULL;
    }
    CHECK(without > 0 && ring_drops(LOCKSTEP_D_COMMS_FULL) >= (uint64_t)without, "%d", without);
    CHECK(nccl.mask != 0);
    CHECK(enqueue(ctx[N - 1], 0, 1) == NULL);
    void *op = enqueue(ctx[0], 0, 1);
    if (nccl.v >= 3) {
        run_kernel(ctx[0], op, 1, 100, 10);
        CHECK(ops() == 1);
    }
    for (int i = 0; i < N; i++) {
        comm_finalize(ctx[i]);
    }
    CHECK(comm_init(1, 2, 0, "again") != NULL);
}

static void no_slots(void)
{
    enum { N = 200, SLOTS = 64 };
    void *ctx = comm_init(7, 2, 0, "world"), *op[N];
    for (uint64_t i = 0; i < N; i++) {
        op[i] = enqueue(ctx, i, 1);
        CHECK((op[i] != NULL) == (i < SLOTS));
    }
    CHECK(ring_drops(LOCKSTEP_D_SLOTS_FULL) == N - SLOTS && open_slots() == SLOTS);
    for (uint64_t i = 0; i < SLOTS && nccl.v >= 3; i++) {
        run_kernel(ctx, op[i], 1, 100 * (i + 1), 10);
    }
    CHECK(nccl.v < 3 || (ops() == SLOTS && open_slots() == 0));
}

static void lost_children(void)
{
    // Stops that never come do not use up the pools for good.
    void *ctx = comm_init(7, 2, 0, "world");
    for (uint64_t i = 0; i < 3000; i++) {
        void *op = enqueue(ctx, i, 1), *p = start_proxy_op(ctx, op, getpid(), 0, 1, true);
        for (int j = 0; j < 16; j++) {
            start_proxy_step(ctx, p, j);
        }
        stop(p);
        if (nccl.v >= 3) {
            run_kernel(ctx, op, 1, 100 + i, 10);
        }
    }
    CHECK(ring_drops(LOCKSTEP_D_STEPS_FULL) == 0, "%lu", ring_drops(LOCKSTEP_D_STEPS_FULL));
}

static void too_many_children(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true);
    for (int j = 0; j < 40000; j++) {
        start_proxy_step(ctx, p, j);
    }
    CHECK(ring_drops(LOCKSTEP_D_STEPS_FULL) > 0);
    stop(p);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
        CHECK(ops() == 1);
    }
}

static void forked(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true), *s = start_proxy_step(ctx, p, 0);
    pid_t pid = fork();
    if (pid == 0) { // everything, on what belongs to the parent and anew
        state_null(s, S_SEND_WAIT);
        stop(s);
        stop(p);
        stop(op);
        enqueue(ctx, 1, 1);
        comm_init(9, 2, 0, "child");
        nccl.table->finalize(ctx);
        _exit(driver_failed);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "%x", status);
    CHECK(ops() == 0 && open_slots() == 1);
    stop(s);
    stop(p);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
        CHECK(ops() == 1);
    }
}

// The first to log is a child, whose parent has a ring.
static void forked_before_a_log(void)
{
    driver_mute = true;
    comm_init(7, 2, 0, "world");
    pid_t pid = fork();
    if (pid == 0) {
        driver_mute = false;
        comm_init(9, 2, 0, "child");
        _exit(driver_failed || nccl.warnings != 1);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "%x", status);
}

static void killed(void)
{
    int fds[2];
    CHECK(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 5, 1);
        void *p = start_proxy_op(ctx, op, getpid(), 3, 1, false), *s = start_proxy_step(ctx, p, 0);
        state_null(s, S_RECV_WAIT);
        if (write(fds[1], "x", 1) == 1) {
            pause();
        }
    }
    char c;
    CHECK(read(fds[0], &c, 1) == 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    struct reading r = ring_read(pid);
    unsigned open = 0;
    for (uint64_t i = 0; ring_slot(&r, i) != NULL; i++) {
        const struct lockstep_slot *s = ring_slot(&r, i);
        if ((atomic_load(&s->word[0]) & 0xff) == LOCKSTEP_SLOT_FREE) {
            continue;
        }
        open++;
        CHECK((atomic_load(&s->word[0]) & 0xff) == LOCKSTEP_SLOT_STARTED);
        CHECK(atomic_load(&s->word[3]) == 5 && atomic_load(&s->children) == 1ull << 32);
        CHECK(atomic_load(&s->waits[0].what) == 0 && atomic_load(&s->waits[1].what) == 0, "nothing was sent");
        const struct lockstep_wait *odd = &s->waits[3];
        CHECK(atomic_load(&odd->what) == (S_RECV_WAIT | 3 << 8 | 1ull << 32), "%lx", atomic_load(&odd->what));
        CHECK(atomic_load(&s->order) == 1 && atomic_load(&odd->since) != 0);
    }
    CHECK(open == 1);
}

static void without_ring(void)
{
    nccl.mask = 0x1234;
    void *ctx = comm_init(7, 2, 0, "world");
    CHECK(ctx == NULL && nccl.mask == 0x1234);
    CHECK(nccl.v < 4 || nccl.warnings == 1);
    CHECK(enqueue(ctx, 0, 1) == NULL);
    comm_finalize(ctx);
}

const struct test trap_tests[] = {
    {"a kernel stop is lost", 3, 7, lost_stop, {0}},
    {"a send outlasts later kernels", 3, 7, slow_proxy, {0}},
    {"many kernel stops are lost", 5, 5, lost_stop_of_many, {0}},
    {"operations of one launch end in any order", 3, 7, one_launch, {0}},
    {"another stream proves nothing", 5, 7, other_stream, {0}},
    {"more streams than numbers", 5, 7, many_streams, {0}},
    {"unknown streams prove nothing", 5, 7, unknown_streams, {0}},
    {"impossible stamps", 4, 7, bad_stamps, {0}},
    {"stamps of a later work", 4, 7, lapped_stamps, {0}},
    {"a call as parent after its stop", 5, 7, parent_after_stop, {0}},
    {"children start after the stop", 1, 7, children_late, {0}},
    {"parent of another process", 1, 7, foreign_pid, {0}},
    {"stops twice, and of nothing", 1, 7, stops_astray, {0}},
    {"null wherever it can be", 1, 7, nothing_there, {0}},
    {"unknown types and states", 1, 7, unknown_types, {0}},
    {"start without a parent", 1, 7, no_parent, {0}},
    {"events after finalize", 1, 7, after_finalize, {0}},
    {"unloaded and loaded again", 1, 7, loaded_again, {0}},
    {"communicators made by several threads", 1, 7, concurrent_init, {0}},
    {"more communicators than the table holds", 1, 7, too_many_comms, {0}},
    {"no slot is free", 1, 7, no_slots, {"LOCKSTEP_RING_SLOTS=64"}},
    {"stops of children are lost", 1, 7, lost_children, {0}},
    {"more children than the pool holds", 4, 7, too_many_children, {0}},
    {"a forked child", 1, 7, forked, {0}},
    {"a forked child is the first to log", 4, 7, forked_before_a_log, {0}},
    {"killed in the middle", 1, 7, killed, {0}},
    {"no directory for the ring", 1, 7, without_ring, {"LOCKSTEP_DIR=/nonexistent/lockstep"}},
    {"switched off", 4, 7, without_ring, {"LOCKSTEP_DISABLE=1"}},
    {0},
};
