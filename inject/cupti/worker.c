// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// CUPTI's threads: one that flushes, and one that reads. CUPTI may hold whoever calls
// it for as long as the device hangs: neither the ring's heartbeat nor a thread of
// the program is let into that.
#include "cupti.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; // by MONOTONIC
static uint64_t asked, done;   // numbers of commands
static enum cupti_command what; // the last one asked; one before it that is not begun is left out
static cupti_result result;
static bool started;

static bool wait_until(uint64_t deadline)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = lockstep_now(), left = deadline > now ? deadline - now : 0;
    left += (uint64_t)t.tv_nsec;
    t.tv_sec += (time_t)(left / 1000000000u);
    t.tv_nsec = (long)(left % 1000000000u);
    return pthread_cond_timedwait(&changed, &mutex, &t) == 0;
}

cupti_result cupti_ask(enum cupti_command command, uint64_t until)
{
    pthread_mutex_lock(&mutex);
    if (!started) {
        pthread_mutex_unlock(&mutex);
        return CUPTI_OK;
    }
    uint64_t mine = ++asked;
    what = command;
    pthread_cond_broadcast(&changed);
    while (done < mine && wait_until(until)) {
    }
    cupti_result got = done >= mine ? result : CUPTI_LATE;
    pthread_mutex_unlock(&mutex);
    return got;
}

// Waits a second for a command, and has it obeyed; false: none came.
static bool obey_next(struct lockstep_ring *r)
{
    uint64_t until = lockstep_now() + 1000000000u;
    while (done == asked && wait_until(until)) {
    }
    if (done == asked) {
        return false;
    }
    uint64_t mine = asked;
    enum cupti_command command = what;
    pthread_mutex_unlock(&mutex);
    cupti_result got = cupti_obey(r, command);
    pthread_mutex_lock(&mutex);
    result = got;
    done = mine;
    pthread_cond_broadcast(&changed);
    return true;
}

static void *flusher(void *ring)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        if (!obey_next(ring)) {
            pthread_mutex_unlock(&mutex);
            cupti_tick(ring);
            pthread_mutex_lock(&mutex);
        }
    }
    return NULL;
}

static bool spawn(const char *name, void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, arg) != 0) {
        return false;
    }
    pthread_setname_np(thread, name);
    pthread_detach(thread);
    return true;
}

// With stacks of the usual size, since CUPTI and the driver run on them, and without
// signals: no handler of the program's runs there. A forked child has neither thread,
// and no ring, without which nothing is asked of them.
bool cupti_threads_start(struct lockstep_ring *r)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = spawn("lockstep-read", cupti_reader, r) && spawn("lockstep-cupti", flusher, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&mutex);
    started = ok;
    pthread_mutex_unlock(&mutex);
    return ok;
}
