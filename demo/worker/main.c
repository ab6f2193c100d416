// SPDX-License-Identifier: Apache-2.0

// The host of one rank: loads data, enqueues kernels and collectives without
// waiting for them, and synchronises at the end of each step.
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "worker.h"

// Nominal times of a healthy rank: 5 ms of loading and 38 ms of kernels.
#define LOAD_NS (5 * MS)
#define FORWARD_NS (4 * MS)
#define BACKWARD_NS (8 * MS)
#define UPDATE_NS (2 * MS)
// What the faults add.
#define SLOWDOWN 1.6          // of the device: a GPU at 60 % of its clock
#define LATE_NS (30 * MS)     // of the host, in loading, in compiling, in a collection, or nobody knows in what
#define STORE_NS (70 * MS)    // of the host, until its shard is stored

// Kernels as cuBLAS, CUTLASS and PyTorch name them.
#define FORWARD_KERNEL "ampere_sgemm_64x32_sliced1x4_nn"
#define BACKWARD_KERNEL "_ZN7cutlass7Kernel2I52cutlass_80_tensorop_s1688gemm_128x128_16x5_nt_align4EEvNT_6ParamsE"
#define UPDATE_KERNEL "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEEEEvT_"

#define GRACE_SECONDS 10 // from a signal to the end, whatever happens

atomic_bool failed, stopping;

static pthread_mutex_t reason_lock = PTHREAD_MUTEX_INITIALIZER;
static char reason[512];
static atomic_bool gave_up;
static pid_t parent;

void fail(const char *fmt, ...)
{
    pthread_mutex_lock(&reason_lock);
    if (!atomic_load(&failed)) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(reason, sizeof reason, fmt, ap);
        va_end(ap);
    }
    atomic_store(&failed, true);
    pthread_mutex_unlock(&reason_lock);
    device_wake();
}

void give_up(void)
{
    atomic_store(&gave_up, true);
    atomic_store(&failed, true);
    device_wake();
}

// Further signals change nothing: the kernel sends that of a dead parent once
// for each of its threads.
static void on_signal(int sig)
{
    (void)sig;
    if (!atomic_exchange(&stopping, true)) {
        alarm(GRACE_SECONDS);
    }
}

static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGPIPE, SIG_IGN); // a parent that is gone reads nothing, and there is still to clean up
}

static bool faulty(enum fault f, long step) { return opt.fault == f && step >= opt.fault_from; }

static void run_forward(void *arg, int layer)
{
    (void)arg;
    model_forward(layer);
}

static void run_backward(void *arg, int layer)
{
    (void)arg;
    model_backward(layer);
}

static void run_update(void *arg, int n)
{
    (void)arg, (void)n;
    model_update();
}

static void pad(uint64_t from, uint64_t ns)
{
    if (opt.pace) {
        sleep_until(from, ns);
    }
}

static void load_data(long step)
{
    uint64_t from = now_ns(), scope = scope_begin("data_loading");
    model_batch(opt.rank, step);
    pad(from, LOAD_NS + (faulty(FAULT_DATALOADER, step) ? LATE_NS : 0));
    scope_end(scope);
}

static void compile(long step)
{
    if (faulty(FAULT_COMPILE, step)) {
        uint64_t scope = scope_begin_phase("compile", PHASE_COMPILE);
        sleep_until(now_ns(), LATE_NS);
        scope_end(scope);
    }
}

// Time that no scope tells of.
static void dawdle(long step)
{
    if (faulty(FAULT_HOST, step)) {
        sleep_until(now_ns(), LATE_NS);
    }
}

// Stands still until it is told to stop, where no scope tells of it, or ends without a word.
static bool stand_or_end(long step)
{
    if (faulty(FAULT_EXIT, step)) {
        proxy_drain(); // else the others may miss the end of the step before
        _exit(1);
    }
    while (faulty(FAULT_HANG, step) && !atomic_load(&stopping)) {
        usleep(50000);
    }
    if (faulty(FAULT_HANG, step)) {
        give_up();
        return false;
    }
    return true;
}

static int phase_of(const char *scope)
{
    return strcmp(scope, "compile") == 0           ? PHASE_COMPILE
           : strcmp(scope, "evaluation") == 0      ? PHASE_EVAL
           : strcmp(scope, "checkpoint_save") == 0 ? PHASE_CHECKPOINT
                                                   : PHASE_TRAIN;
}

static void take_pauses(long step)
{
    for (int i = 0; i < opt.pause_count; i++) {
        const struct pause *p = &opt.pauses[i];
        bool now = p->rank == opt.rank && (step == p->first || (p->every > 0 && step > p->first && (step - p->first) % p->every == 0));
        if (!now) {
            continue;
        }
        uint64_t from = now_ns(), ns = (uint64_t)p->ms * MS, scope = scope_begin_phase(p->scope, phase_of(p->scope));
        while (now_ns() - from < ns && !atomic_load(&stopping)) {
            uint64_t left = ns - (now_ns() - from);
            sleep_until(now_ns(), left < 50 * MS ? left : 50 * MS);
        }
        scope_end(scope);
    }
}

// A collector runs where an allocation happens to start it: inside of whatever the
// program does. That of a healthy rank is too short to be seen, and not told of.
static void collect_garbage(long step)
{
    if (faulty(FAULT_GC, step)) {
        uint64_t scope = scope_begin("garbage_collection");
        sleep_until(now_ns(), LATE_NS);
        scope_end(scope);
    }
}

static void save_checkpoint(long step)
{
    if (opt.checkpoint_every == 0 || (step + 1) % opt.checkpoint_every != 0) {
        return;
    }
    uint64_t scope = scope_begin_phase("checkpoint_save", PHASE_CHECKPOINT);
    checkpoint_write(step);
    if (faulty(FAULT_CHECKPOINT, step)) {
        sleep_until(now_ns(), STORE_NS);
    }
    scope_end(scope);
}

static void enqueue_forward(long step)
{
    uint64_t scope = scope_begin("forward");
    for (int l = 0; l < LAYERS; l++) {
        stream_push(&compute_stream, (struct kernel){.run = run_forward, .n = l, .name = FORWARD_KERNEL, .nominal = FORWARD_NS});
        if (l == 0) {
            collect_garbage(step);
        }
    }
    scope_end(scope);
}

// Each bucket is reduced while the gradients of the layers below are computed.
static uint64_t enqueue_backward(long step)
{
    uint64_t scope = scope_begin("backward"), reduced = 0;
    for (int l = LAYERS - 1; l >= 0; l--) {
        uint64_t ticket = stream_push(&compute_stream, (struct kernel){.run = run_backward, .n = l, .name = BACKWARD_KERNEL, .nominal = BACKWARD_NS});
        bool odd = l == LAYERS - 1 && faulty(FAULT_MISMATCH, step);
        reduced = odd ? all_reduce_odd(buckets[0].data, 2 * buckets[l].count, &compute_stream, ticket)
                      : all_reduce(buckets[l].data, buckets[l].count, &compute_stream, ticket);
    }
    scope_end(scope);
    return reduced;
}

static uint64_t enqueue_update(uint64_t reduced)
{
    uint64_t scope = scope_begin("optimizer");
    struct kernel k = {.run = run_update, .name = UPDATE_KERNEL, .nominal = UPDATE_NS, .after = &comm_stream, .ticket = reduced};
    uint64_t ticket = stream_push(&compute_stream, k);
    scope_end(scope);
    return ticket;
}

static bool train_step(long step)
{
    step_begin(step);
    take_pauses(step);
    model_vote(atomic_load(&stopping) || (opt.steps > 0 && step + 1 >= opt.steps));
    if (faulty(FAULT_COMPUTE, step)) {
        device_slow(SLOWDOWN);
    }
    proxy_throttle(faulty(FAULT_LINK, step));
    load_data(step);
    compile(step);
    dawdle(step);
    if (!stand_or_end(step)) {
        return false;
    }
    enqueue_forward(step);
    uint64_t last = enqueue_update(enqueue_backward(step));
    if (!stream_wait(&compute_stream, last)) {
        return false;
    }
    save_checkpoint(step);
    return true;
}

// All ranks stop after the same step: who wants to says so in the reduced data.
static long train(float *first, float *last)
{
    long step = 0;
    for (;; step++) {
        uint64_t from = now_ns();
        if (!train_step(step)) {
            return step;
        }
        stats_step(from, now_ns() - from, callback_ns_take());
        *last = model_loss();
        if (step == 0) {
            *first = *last;
        }
        stats_progress(step, *last);
        if (model_votes() > 0) {
            return step + 1;
        }
    }
}

// Are the weights of all ranks the same, bit by bit? Each bit of the hash is
// summed over the ranks: equal bits give nothing or the number of ranks.
static bool weights_identical(void)
{
    float bits[64];
    uint64_t hash = model_hash();
    for (int i = 0; i < 64; i++) {
        bits[i] = (float)(hash >> i & 1);
    }
    uint64_t ticket = all_reduce(bits, 64, NULL, 0);
    if (!stream_wait(&comm_stream, ticket)) {
        return false;
    }
    for (int i = 0; i < 64; i++) {
        if (bits[i] != 0 && bits[i] != (float)opt.ranks) {
            return false;
        }
    }
    return true;
}

// The ranks wait for each other before the first step, as where they make a
// communicator, and touch the memory that every step uses.
static bool warm_up(void)
{
    bool met = stream_wait(&comm_stream, all_reduce(buckets[0].data, buckets[0].count, NULL, 0));
    collective_first();
    return met;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

// The parent removes what it made; where it was killed, its children do.
static void clean_up(void)
{
    if (opt.cleanup != NULL && getppid() != parent) {
        nftw(opt.cleanup, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static int end(int status)
{
    if (atomic_load(&failed) && !atomic_load(&gave_up)) {
        fprintf(stderr, "rank %d: %s\n", opt.rank, reason);
        status = 1;
    }
    clean_up();
    return status;
}

static int work(void)
{
    float first = 0, last = 0;
    long steps = train(&first, &last);
    bool identical = !atomic_load(&failed) && weights_identical();
    device_stop();
    cupti_flush();
    poller_stop();
    proxy_stop();
    profiler_finalize();
    comm_close();
    if (!atomic_load(&failed) || atomic_load(&gave_up)) {
        stats_print(steps, first, last, identical);
    }
    return end(identical || atomic_load(&gave_up) ? 0 : 3);
}

// A rank that gets a signal before its first step ends well, whatever it waited for.
static int end_early(void)
{
    if (atomic_load(&stopping)) {
        give_up();
    }
    return end(atomic_load(&stopping) ? 0 : 1);
}

int main(int argc, char **argv)
{
    parent = getppid();
    int status = options_parse(argc, argv);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    prctl(PR_SET_TIMERSLACK, 1000ul); // nominal times are kept to 1 µs where the machine is idle
    catch_signals();
    device_clock_init(opt.rank);
    model_init(opt.ranks);
    if (!profiler_load() || !cupti_load()) {
        return end(1);
    }
    if (!comm_connect()) {
        return end_early();
    }
    device_start(1);
    proxy_start();
    poller_start();
    if (!warm_up()) {
        return end_early();
    }
    profiler_init(comm_hash);
    return work();
}
