// SPDX-License-Identifier: Apache-2.0

// Levels of detail, and another plugin behind ours.
#define _GNU_SOURCE
#include "driver.h"
#include "other_plugin.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t got[4096][LOCKSTEP_WORDS];
#define LANE_MAX (sizeof got / sizeof got[0])

static size_t records(int kind)
{
    struct reading r = ring_read(getpid());
    return ring_records(&r, kind, got, LANE_MAX);
}

static const int known[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};
#define SUMMARY (T_COLL | T_P2P | T_KERNEL_CH | T_PROXY_OP | T_CE_COLL)
#define MORE (SUMMARY | T_PROXY_STEP)
#define ALL (MORE | T_GROUP_API | T_COLL_API | T_P2P_API | T_KERNEL_LAUNCH | T_CE_SYNC | T_CE_BATCH | T_KERNEL_PHASE | T_NET_PLUGIN)

static void mask_is(int want)
{
    comm_init(7, 2, 0, "world");
    CHECK(nccl.mask == (want & known[nccl.v]), "%x", nccl.mask);
}
static void mask_default(void) { mask_is(MORE); }
static void mask_summary(void) { mask_is(SUMMARY); }
static void mask_all(void) { mask_is(ALL); }
static void mask_own(void) { mask_is(0x42); }

static void level_changes(void)
{
    struct reading r;
    void *ctx = comm_init(7, 2, 0, "world");
    r = ring_read(getpid());
    struct lockstep_control *c = (void *)(r.base + ring_section(&r, LOCKSTEP_S_CONTROL)->offset);
    atomic_store(&c->level, LOCKSTEP_LEVEL_ALL);
    nap(2200000);
    CHECK(__atomic_load_n(&nccl.mask, __ATOMIC_RELAXED) == (ALL & known[nccl.v]), "%x", nccl.mask);
    __atomic_store_n(&nccl.mask, 1, __ATOMIC_RELAXED); // as NCCL's RAS may: left alone
    nap(1200000);
    CHECK(__atomic_load_n(&nccl.mask, __ATOMIC_RELAXED) == 1);
    comm_finalize(ctx);
    atomic_store(&c->level, LOCKSTEP_LEVEL_SUMMARY); // and after the end it may be gone
    nap(1500000);
    CHECK(__atomic_load_n(&nccl.mask, __ATOMIC_RELAXED) == 1);
}

static void one_operation(void *ctx)
{
    void *op = enqueue(ctx, 3, 2);
    run_proxy(ctx, op, true, 6);
    run_kernel(ctx, op, 2, 1000, 50);
}

static void single_events(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    one_operation(ctx);
    CHECK(records(LOCKSTEP_PROXY_STEP) == 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK((got[i][1] >> 8 & 0xff) == LOCKSTEP_LEVEL_ALL);
        CHECK((uint32_t)got[i][3] == i && (int32_t)got[i][4] == 6 && (got[i][4] >> 40 & 0xff) == 1);
        CHECK(got[i][4] >> 48 == 4 && got[i][11] == 3);
        CHECK(got[i][5] <= got[i][6] && got[i][6] <= got[i][8] && got[i][8] <= got[i][9]);
    }
    CHECK(records(LOCKSTEP_KERNEL_CH) == 2);
    CHECK(got[0][3] == 1000 && got[0][4] == 1050 && got[0][8] == 3 && got[0][5] <= got[0][6]);
    if (nccl.v >= 5) {
        CHECK(records(LOCKSTEP_API) == 2);
        CHECK(got[0][2] <= got[0][3] && got[0][6] == 256 && got[0][7] == 0x1234);
    }
    CHECK(records(LOCKSTEP_OP) == 1);
}

static void no_single_events(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    one_operation(ctx);
    CHECK(records(LOCKSTEP_PROXY_STEP) == 0 && records(LOCKSTEP_KERNEL_CH) == 0 && records(LOCKSTEP_API) == 0);
    CHECK(records(LOCKSTEP_OP) == 1);
}

static void phases(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 3, 1), *k = start_kernel(ctx, op, 0, 1000);
    for (unsigned i = 0; i < 3; i++) {
        struct abi_event e = {.type = T_KERNEL_PHASE, .parent = k,
                              .kernel_phase = {0, (uint8_t)i, "phase", 1000 + 10 * i}};
        void *p = start_new(ctx, &e);
        state(p, 31, 1010 + 10 * i);
        stop(p);
        stop(p);
    }
    state(k, S_KERNEL_CH_STOP, 1030);
    stop(k);
    CHECK(records(LOCKSTEP_KERNEL_CH) == 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK((got[i][7] >> 8 & 0xff) == (i < 3 ? i + 1 : 0));
        CHECK(i == 3 || (got[i][3] == 1000 + 10 * i && got[i][4] == 1010 + 10 * i));
    }
    CHECK(records(LOCKSTEP_OP) == 1 && (got[0][13] >> 48 & 0xff) == 1);
    CHECK(ring_drops(LOCKSTEP_D_STALE_HANDLE) == 3);
}

static void net_requests(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    struct abi_net_ib ib = {1, 2, 99, 77, 1234, 4096};
    struct abi_net_socket sock = {1, 9, 1, 512};
    for (int send = 0; send < 2; send++) {
        void *p = start_proxy_op(ctx, op, getpid(), 0, 1, send), *s = start_proxy_step(ctx, p, 0), *n;
        n = start_net(ctx, s, ABI_NET_IB, &ib);
        state_null(n, S_NET_UPDATE);
        stop(n);
        stop(n);
        stop(start_net(ctx, s, ABI_NET_SOCKET, &sock));
        stop(start_net(ctx, s, 9ll << 16 | 4, (void *)(uintptr_t)16)); // of an unknown form: not looked at
        stop(start_net(ctx, s, ABI_NET_IB, NULL));
        stop(s);
        stop(p);
    }
    CHECK(records(LOCKSTEP_NET) == 8);
    CHECK(got[0][5] == 1234 && got[0][6] == 0, "what NCCL does not set of a receive");
    CHECK(got[4][5] == lockstep_pair(1234, 77) && got[4][6] == 4096 && got[4][4] == ABI_NET_IB);
    CHECK(got[5][5] == lockstep_pair(9, 1) && got[5][6] == 512);
    CHECK(got[6][4] == (9 << 16 | 4) && got[6][5] == 0);
}

static void frontiers(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    for (uint64_t i = 0; i < 3; i++) {
        run_kernel(ctx, enqueue(ctx, 10 + i, 1), 1, 100 * (i + 1), 10);
    }
    start_kernel(ctx, enqueue(ctx, 13, 1), 0, 1000);
    enqueue(ctx, 14, 1);
    struct reading r = ring_read(getpid());
    struct lockstep_section *s = ring_section(&r, LOCKSTEP_S_FRONTIERS);
    unsigned found = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        struct lockstep_frontier *f = (void *)(r.base + s->offset + i * s->entry_size);
        if (atomic_load(&f->key) == 0) {
            continue;
        }
        found++;
        CHECK(atomic_load(&f->enqueued) == 15 && atomic_load(&f->started) == 14 && atomic_load(&f->completed) == 13);
        CHECK(atomic_load(&f->open) == 2 && atomic_load(&f->total) == 5 && atomic_load(&f->inferred) == 0);
        CHECK(atomic_load(&f->completed_at) <= atomic_load(&f->started_at));
    }
    CHECK(found == 1);
}

static struct other_seen *seen(void)
{
    void *lib = dlopen(getenv("LOCKSTEP_CHAIN"), RTLD_NOW | RTLD_NOLOAD);
    struct other_seen *s = lib != NULL ? dlsym(lib, "other_seen") : NULL;
    if (s == NULL) {
        printf("    the other plugin is not loaded\n");
        exit(1);
    }
    return s;
}

static void chained_as(unsigned v)
{
    void *ctx = comm_init(7, 2, 0, "world");
    CHECK((nccl.mask & T_COLL) != 0 && (nccl.mask & T_KERNEL_CH & known[nccl.v]) == (T_KERNEL_CH & known[nccl.v]));
    void *op = enqueue(ctx, 0, 1);
    struct other_seen *s = seen();
    s->parent[3] = s;
    void *p = start_proxy_op(ctx, op, getpid() + 1, 0, 1, true); // of another process: theirs alone, without a parent
    CHECK(p != NULL && s->starts[3] == 1 && s->parent[3] == NULL);
    CHECK(ring_drops(LOCKSTEP_D_FOREIGN_PID) == 1);
    stop(p);
    CHECK(s->stops[3] == 1 && ring_drops(LOCKSTEP_D_STALE_HANDLE) == 0);
    run_proxy(ctx, op, true, 1);
    CHECK(s->parent[3] != NULL);
    if (nccl.v >= 3) {
        run_kernel(ctx, op, 1, 100, 10);
    }
    stop(op);
    comm_finalize(ctx);
    CHECK(s->version == v, "%u", s->version);
    CHECK(s->inits == 1 && s->finals == 1 && s->bad == 0, "%d %d %d", s->inits, s->finals, s->bad);
    CHECK(s->starts[1] == 1 && s->stops[1] == 1, "collectives %d %d", s->starts[1], s->stops[1]);
    CHECK(nccl.v < 3 || (s->starts[6] == 1 && s->stops[6] == 1));
    CHECK(s->starts[4] == 4 && s->stops[4] == 4 && s->starts[3] == 2);
    CHECK(records(LOCKSTEP_OP) == 1);
}

static void chained(void) { chained_as(nccl.v > 5 ? 5 : nccl.v); }
static void chained_old(void) { chained_as(4); }

// The plugin's, too, since this program is searched first.
static _Atomic unsigned long getpid_calls;

__attribute__((visibility("default"))) pid_t getpid(void)
{
    getpid_calls++;
    return (pid_t)syscall(SYS_getpid);
}

static void chained_quietly(void)
{
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    struct other_seen *s = seen();
    int pid = getpid(), status;
    unsigned long before = getpid_calls;
    for (int i = 0; i < 1000; i++) {
        stop(start_proxy_op(ctx, op, pid, 0, 1, true));
    }
    CHECK(getpid_calls == before, "%lu system calls", getpid_calls - before);
    CHECK(before > 0 && s->starts[3] == 1000 && s->parent[3] != NULL);
    pid_t child = fork();
    if (child == 0) { // whose own number is another: what names the parent's is foreign there
        stop(start_proxy_op(ctx, op, pid, 0, 1, true));
        CHECK(s->parent[3] == NULL);
        stop(start_proxy_op(ctx, op, (int)syscall(SYS_getpid), 0, 1, true));
        CHECK(s->parent[3] != NULL);
        _exit(driver_failed);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void chained_long(void)
{
    // A transfer with more steps than there are pairs, and an operation that many
    // others overtake.
    void *ctx = comm_init(7, 2, 0, "world"), *op = enqueue(ctx, 0, 1);
    void *p = start_proxy_op(ctx, op, getpid(), 0, 1, true);
    for (int i = 0; i < 200000; i++) {
        void *s = start_proxy_step(ctx, p, i);
        CHECK(s != NULL);
        stop(s);
    }
    stop(p);
    run_kernel(ctx, op, 1, 100, 10);
    struct other_seen *s = seen();
    CHECK(records(LOCKSTEP_OP) == 1 && ring_drops(LOCKSTEP_D_STALE_HANDLE) == 0);
    CHECK(s->starts[4] == 200000 && s->stops[4] == 200000 && s->stops[3] == 1 && s->stops[6] == 1 && s->bad == 0);
}

static void chain_fails(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    CHECK(nccl.mask == (SUMMARY & known[nccl.v]), "%x", nccl.mask); // and no proxy steps, which it asked for
    one_operation(ctx);
    comm_finalize(ctx);
    struct other_seen *s = seen();
    CHECK(s->inits == 1 && s->finals == 0 && s->starts[1] == 0);
    CHECK(records(LOCKSTEP_OP) == 1);
}

static void chain_without_ring(void)
{
    void *ctx = comm_init(7, 2, 0, "world");
    CHECK(ctx != NULL && nccl.mask != 0);
    one_operation(ctx);
    comm_finalize(ctx);
    struct other_seen *s = seen();
    CHECK(s->starts[1] == 1 && s->stops[1] == 1 && s->bad == 0);
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p += strlen(part)) {
        n++;
    }
    return n;
}

// Two communicators are made, and what they say on stderr is kept.
static void listen(char *heard, size_t size)
{
    int log = memfd_create("stderr", MFD_CLOEXEC), before = dup(STDERR_FILENO);
    dup2(log, STDERR_FILENO);
    one_operation(comm_init(7, 2, 0, "world"));
    one_operation(comm_init(8, 2, 0, "other"));
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t n = pread(log, heard, size - 1, 0);
    close(log);
    heard[n > 0 ? n : 0] = '\0';
}

// What is wrong with a variable is told once, by each way that there is, and keeps
// nothing from being recorded.
static void told(const char *variable, const char *why)
{
    char heard[4096];
    listen(heard, sizeof heard);
    CHECK(count(heard, variable) == 1 && count(heard, why) == 1, "%s", heard);
    CHECK(nccl.v < 4 || (nccl.warnings == 1 && count(nccl.warned, variable) == 1 && count(nccl.warned, why) == 1),
          "%s", nccl.warned);
    struct reading r = ring_read(getpid());
    CHECK(ring_await(&r, LOCKSTEP_OP, 2, got, LANE_MAX) == 2);
}

static void chain_absent(void) { told("LOCKSTEP_CHAIN: got", "plugin.so: cannot open shared object file"); }
static void chain_relative(void) { told("LOCKSTEP_CHAIN: got \"plugin.so\"", "it is no absolute path"); }
static void chain_no_plugin(void) { told("LOCKSTEP_CHAIN: got", "it exports none of ncclProfiler_v1"); }
static void chain_self(void) { told("LOCKSTEP_CHAIN: got", "it is this library itself"); }
static void mask_bad(void) { told("LOCKSTEP_EVENT_MASK: got \"0x42y\"", "want a number from 0 to 0xffff"); }

static void no_ranks(void)
{
    told("; RANK: got \"nine\"; want a number from 0", "WORLD_SIZE: got \"-2\"; want a number from 0");
    CHECK(nccl.v < 4 || count(nccl.warned, "LOCAL_RANK: got \"1x\"; want a number from 0") == 1, "%s", nccl.warned);
}

static void told_on_demand(void)
{
    char heard[4096];
    listen(heard, sizeof heard);
    CHECK(heard[0] == '\0', "%s", heard);
}

#define OTHER "LOCKSTEP_CHAIN_TEST=1"
#define DEBUG "LOCKSTEP_DEBUG=1"

const struct test level_tests[] = {
    {"mask by default", 1, 7, mask_default, {0}},
    {"mask at summary", 1, 7, mask_summary, {"LOCKSTEP_LEVEL=summary"}},
    {"mask at all", 1, 7, mask_all, {"LOCKSTEP_LEVEL=all"}},
    {"mask of the operator", 1, 7, mask_own, {"LOCKSTEP_EVENT_MASK=0x42"}},
    {"no mask", 1, 7, mask_bad, {"LOCKSTEP_EVENT_MASK=0x42y", DEBUG}},
    {"no ranks", 1, 7, no_ranks, {"RANK=nine", "WORLD_SIZE=-2", "LOCAL_RANK=1x", DEBUG}},
    {"silent unless asked", 1, 7, told_on_demand, {"RANK=nine", "LOCKSTEP_CHAIN=plugin.so", "LOCKSTEP_EVENT_MASK=all"}},
    {"level changed while it runs", 7, 7, level_changes, {0}},
    {"single events at all", 4, 7, single_events, {"LOCKSTEP_LEVEL=all"}},
    {"no single events below", 4, 7, no_single_events, {0}},
    {"phases of a kernel", 7, 7, phases, {"LOCKSTEP_LEVEL=all"}},
    {"requests of network plugins", 3, 7, net_requests, {"LOCKSTEP_LEVEL=all"}},
    {"frontiers", 3, 7, frontiers, {0}},
    {"chained", 1, 7, chained, {OTHER}},
    {"chained, of an older interface", 4, 7, chained_old, {"LOCKSTEP_CHAIN_OLD=1"}},
    {"chained, without system calls", 1, 7, chained_quietly, {OTHER}},
    {"chained, with more events than pairs", 5, 5, chained_long, {OTHER}},
    {"chained plugin fails", 4, 7, chain_fails, {OTHER, "OTHER_FAILS=1", "LOCKSTEP_LEVEL=summary"}},
    {"chained without a ring", 4, 7, chain_without_ring, {OTHER, "LOCKSTEP_DIR=/nonexistent/lockstep"}},
    {"chained plugin is absent", 1, 7, chain_absent, {"LOCKSTEP_CHAIN=/nonexistent/plugin.so", DEBUG}},
    {"chained by a relative path", 1, 7, chain_relative, {"LOCKSTEP_CHAIN=plugin.so", DEBUG}},
    {"chained to what is no plugin", 1, 7, chain_no_plugin, {"LOCKSTEP_CHAIN_NO_PLUGIN=1", DEBUG}},
    {"chained to itself", 1, 7, chain_self, {"LOCKSTEP_CHAIN_SELF=1", DEBUG}},
    {0},
};
