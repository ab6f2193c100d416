// SPDX-License-Identifier: Apache-2.0

// The device: two streams, each a thread that runs kernels in order. A kernel
// does its maths, and is then padded to the time that a healthy device takes for
// it, so that ranks that share few cores still look like ranks with a GPU each.
#include <time.h>

#include "worker.h"

struct stream compute_stream = {.number = 7}, comm_stream = {.number = 20};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; // a queue
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;   // data between device and proxy
static bool ended;
static double slow = 1;

// The GPU's clock: like the Unix epoch, off by up to seconds, drifting by some
// parts per million, in steps of 32 ns, as that of real ones.
static struct {
    uint64_t raw0, gpu0;
    int64_t drift_ppm;
} gpu;

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void device_clock_init(int rank)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    gpu.raw0 = now_ns();
    uint64_t off_ms = (uint64_t)(rank * 1237 + 431) % 2000;
    gpu.gpu0 = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + off_ms * MS;
    gpu.drift_ppm = (rank * 29) % 41 - 20;
}

uint64_t device_clock(void)
{
    int64_t since = (int64_t)(now_ns() - gpu.raw0);
    return (gpu.gpu0 + (uint64_t)(since + since / 1000000 * gpu.drift_ppm)) & ~31ull;
}

void sleep_until(uint64_t from_raw, uint64_t ns)
{
    uint64_t passed = now_ns() - from_raw;
    if (passed >= ns) {
        return;
    }
    struct timespec t = {.tv_sec = (time_t)((ns - passed) / 1000000000u), .tv_nsec = (long)((ns - passed) % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) != 0 && !atomic_load(&failed)) {
    }
}

static void execute(const struct kernel *k)
{
    uint64_t from = now_ns(), start = cupti_now();
    if (atomic_load(&failed)) {
        return;
    }
    k->run(k->arg, k->n);
    if (opt.pace && k->nominal > 0) {
        sleep_until(from, (uint64_t)((double)k->nominal * slow));
    }
    cupti_ran(k, start);
}

static bool may_run(const struct stream *s)
{
    if (s->done == s->pushed) {
        return false;
    }
    const struct kernel *k = &s->queue[s->done % 64];
    return k->after == NULL || k->after->done >= k->ticket || atomic_load(&failed);
}

static void *run_stream(void *arg)
{
    struct stream *s = arg;
    pthread_mutex_lock(&lock);
    while (true) {
        while (!may_run(s) && !(ended && s->done == s->pushed)) {
            pthread_cond_wait(&changed, &lock);
        }
        if (s->done == s->pushed) {
            break;
        }
        struct kernel k = s->queue[s->done % 64];
        pthread_mutex_unlock(&lock);
        execute(&k);
        pthread_mutex_lock(&lock);
        s->done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void device_start(double slowdown)
{
    slow = slowdown;
    pthread_create(&compute_stream.thread, NULL, run_stream, &compute_stream);
    pthread_create(&comm_stream.thread, NULL, run_stream, &comm_stream);
    pthread_setname_np(compute_stream.thread, "gpu-compute");
    pthread_setname_np(comm_stream.thread, "gpu-comm");
}

void device_slow(double slowdown)
{
    pthread_mutex_lock(&lock);
    slow = slowdown;
    pthread_mutex_unlock(&lock);
}

uint64_t stream_push(struct stream *s, struct kernel k)
{
    uint64_t start = cupti_now();
    k.stream = s->number;
    k.correlation = cupti_correlation();
    pthread_mutex_lock(&lock);
    while (s->pushed - s->done >= 64) {
        pthread_cond_wait(&changed, &lock);
    }
    s->queue[s->pushed % 64] = k;
    uint64_t ticket = ++s->pushed;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    cupti_launched(k.correlation, start);
    return ticket;
}

// Waits for a change, or until who is patient was told to stop: its peers end as well, and
// the job has no last step.
static void wait_a_little(void)
{
    if (!opt.patient) {
        pthread_cond_wait(&changed, &lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100 * (long)MS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int late = pthread_cond_timedwait(&changed, &lock, &until);
    if (late != 0 && atomic_load(&stopping) && !atomic_load(&failed)) {
        pthread_mutex_unlock(&lock);
        give_up();
        pthread_mutex_lock(&lock);
    }
}

bool stream_wait(struct stream *s, uint64_t ticket)
{
    pthread_mutex_lock(&lock);
    while (s->done < ticket) {
        wait_a_little();
    }
    pthread_mutex_unlock(&lock);
    return !atomic_load(&failed);
}

void device_wait(bool (*ready)(void *), void *arg)
{
    pthread_mutex_lock(&lock);
    while (!ready(arg) && !atomic_load(&failed)) {
        pthread_cond_wait(&moved, &lock);
    }
    pthread_mutex_unlock(&lock);
}

void device_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&moved);
    if (atomic_load(&failed)) {
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

void device_stop(void)
{
    pthread_mutex_lock(&lock);
    ended = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(compute_stream.thread, NULL);
    pthread_join(comm_stream.thread, NULL);
}
