// SPDX-License-Identifier: Apache-2.0

// A profiler plugin that only checks: that the worker calls it in the order, on
// the threads and with the parents that NCCL does. What it finds wrong, and how
// much it saw, it writes to the file DEMO_CHECK at the end.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../worker/worker.h"

struct event {
    uint64_t type;
    struct event *parent;
    pthread_t thread;
    int state, steps, is_send, children;
    uint64_t timer;
    bool stopped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long started[16], stopped[16], wrong;
static char first_wrong[256];
static uint64_t next_seq;
static long steps_marked, scopes_begun, scopes_ended;
static long open_scopes[8], depth, deepest, injected;
static pthread_t of_type[16];
static int versions[8];

static void bad(const char *fmt, ...)
{
    if (wrong++ == 0) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(first_wrong, sizeof first_wrong, fmt, ap);
        va_end(ap);
    }
}

static int bit(uint64_t type) { return __builtin_ctzll(type); }

static void check_parent(const struct event *e, int abi)
{
    static const uint64_t want[16] = {[0] = EV_GROUP_API, [1] = EV_COLL_API, [3] = EV_COLL, [4] = EV_PROXY_OP, [6] = EV_COLL, [9] = EV_GROUP_API, [11] = EV_GROUP_API};
    uint64_t wanted = want[bit(e->type)];
    if (abi < 5 && e->type == EV_COLL) {
        wanted = EV_GROUP;
    } else if (abi < 5 && e->type == EV_GROUP) {
        wanted = 0;
    }
    if ((e->parent == NULL) != (wanted == 0) || (e->parent != NULL && e->parent->type != wanted)) {
        bad("event %llu has parent %llu, want %llu", (unsigned long long)e->type,
            e->parent ? (unsigned long long)e->parent->type : 0, (unsigned long long)wanted);
    }
    // NCCL starts what a collective does after it was enqueued, and a collective
    // after its call has ended.
    if (e->type == EV_PROXY_STEP && e->parent->stopped) {
        bad("proxy step after its operation's stop");
    }
}

static void check_start(struct event *e, const struct descr *d)
{
    if (e->type == EV_COLL && d->coll.seq != next_seq++) {
        bad("sequence number %llu, want %llu", (unsigned long long)d->coll.seq, (unsigned long long)next_seq - 1);
    }
    if (e->type == EV_PROXY_OP) {
        e->steps = d->proxy_op.steps;
        e->is_send = d->proxy_op.is_send;
        if (d->proxy_op.pid != getpid()) {
            bad("proxy operation of pid %d", d->proxy_op.pid);
        }
    }
    if (e->type == EV_PROXY_STEP && d->proxy_step.step != e->parent->children++) {
        bad("step %d out of order", d->proxy_step.step);
    }
    if (e->type == EV_KERNEL_CH) {
        e->timer = d->kernel_ch.timer;
    }
    int b = bit(e->type);
    if (started[b]++ == 0) {
        of_type[b] = pthread_self();
    } else if (!pthread_equal(of_type[b], pthread_self())) {
        bad("event %llu from a second thread", (unsigned long long)e->type);
    }
}

static int start(int abi, void **handle, struct descr *d)
{
    struct event *e = calloc(1, sizeof *e);
    e->type = d->type & (abi == 4 ? 0xff : ~0ull);
    e->parent = d->parent;
    e->thread = pthread_self();
    pthread_mutex_lock(&lock);
    check_parent(e, abi);
    check_start(e, d);
    pthread_mutex_unlock(&lock);
    *handle = e;
    return 0;
}

static int state(void *handle, int to, union state_args *args)
{
    struct event *e = handle;
    pthread_mutex_lock(&lock);
    static const int after[32] = {[8] = 0, [20] = 8, [9] = 20, [10] = 0, [11] = 10, [12] = 11, [22] = 0, [24] = 0, [19] = 0};
    bool again = to == 20 && e->state == 20; // each try to send tells of it
    if (e->stopped || (after[to] != e->state && !again)) {
        bad("state %d after %d of event %llu, stopped %d", to, e->state, (unsigned long long)e->type, e->stopped);
    }
    if (e->type == EV_PROXY_STEP && (e->parent->is_send != 0) != (to == 8 || to == 9 || to == 20)) {
        bad("state %d in the wrong direction", to);
    }
    if (to == ST_KERNEL_CH_STOP && args->timer < e->timer) {
        bad("a kernel stops before its start");
    }
    e->state = to;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int stop(void *handle)
{
    struct event *e = handle;
    pthread_mutex_lock(&lock);
    if (e->stopped) {
        bad("event %llu stops twice", (unsigned long long)e->type);
    }
    e->stopped = true;
    if (e->type == EV_PROXY_OP && e->children != 0 && e->children != e->steps) {
        bad("%d steps, want %d", e->children, e->steps);
    }
    if (e->type == EV_PROXY_STEP && e->state != 9 && e->state != 12) {
        bad("proxy step stops in state %d", e->state);
    }
    stopped[bit(e->type)]++;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int finalize(void *ctx)
{
    (void)ctx;
    FILE *f = fopen(getenv("DEMO_CHECK"), "w");
    if (f == NULL) {
        return 1;
    }
    fprintf(f, "{\"wrong\":%ld,\"first_wrong\":\"%s\",\"steps\":%ld,\"scopes_begun\":%ld,\"scopes_ended\":%ld,\"deepest\":%ld,\"injected\":%ld,\"threads\":%d,", wrong, first_wrong,
            steps_marked, scopes_begun, scopes_ended, deepest, injected,
            1 + !pthread_equal(of_type[1], of_type[3]) + (!pthread_equal(of_type[6], of_type[3]) && !pthread_equal(of_type[6], of_type[1])));
    for (int which = 0; which < 2; which++) {
        fprintf(f, "\"%s\":[", which == 0 ? "started" : "stopped");
        for (int i = 0; i < 16; i++) {
            fprintf(f, "%s%ld", i == 0 ? "" : ",", which == 0 ? started[i] : stopped[i]);
        }
        fprintf(f, "]%s", which == 0 ? "," : "}\n");
    }
    fclose(f);
    return 0;
}

static int init(void **ctx, int *mask, int version)
{
    const char *m = getenv("DEMO_CHECK_MASK");
    *mask = m != NULL ? atoi(m) : 0xffff;
    *ctx = &versions[version];
    return 0;
}

static int init4(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank, logger log)
{
    (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)log;
    return init(ctx, mask, 4);
}

static int init5(void **ctx, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank, logger log)
{
    (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)log;
    return init(ctx, mask, 5);
}

static int start4(void *ctx, void **handle, struct descr *d) { return (void)ctx, start(4, handle, d); }
static int start5(void *ctx, void **handle, struct descr *d) { return (void)ctx, start(5, handle, d); }

#define EXPORT __attribute__((visibility("default")))
EXPORT struct table ncclProfiler_v4 = {"check", {.v4 = init4}, start4, stop, state, finalize};
EXPORT struct table ncclProfiler_v5 = {"check", {.v5 = init5}, start5, stop, state, finalize};
EXPORT struct table ncclProfiler_v7 = {"check", {.v5 = init5}, start5, stop, state, finalize};

// libcuda calls it once, in the library of CUDA_INJECTION64_PATH.
EXPORT int InitializeInjection(void)
{
    injected++;
    return 1;
}

EXPORT void lockstep_step_begin(int64_t step)
{
    if (step != steps_marked++) {
        bad("step %lld is marked as number %ld", (long long)step, steps_marked - 1);
    }
}

EXPORT uint64_t lockstep_scope_begin(const char *name, int phase)
{
    int want = strcmp(name, "compile") == 0           ? PHASE_COMPILE
               : strcmp(name, "checkpoint_save") == 0 ? PHASE_CHECKPOINT
                                                      : PHASE_TRAIN;
    if (phase != want) {
        bad("phase %d of scope %s", phase, name);
    }
    open_scopes[depth++ % 8] = ++scopes_begun;
    deepest = depth > deepest ? depth : deepest;
    return (uint64_t)scopes_begun;
}

EXPORT void lockstep_scope_end(uint64_t scope)
{
    depth--;
    if (depth < 0 || scope != (uint64_t)open_scopes[depth % 8]) {
        bad("scope %llu ends, and is not the innermost", (unsigned long long)scope);
    }
    scopes_ended++;
}
