// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// The background thread of a ring: heartbeat, clock pairs, the level in force.
#include "ring_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// Small, yet with room for the thread-local data of large programs.
#define STACK_SIZE (256u * 1024u)
#define PAIR_TRIES 5

struct pair {
    uint64_t raw, realtime, width;
};

static uint64_t realtime_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The narrowest of some readings: one that was interrupted is wide.
static struct pair read_pair(void)
{
    struct pair best = {.width = UINT64_MAX};
    for (int i = 0; i < PAIR_TRIES; i++) {
        uint64_t before = lockstep_now();
        uint64_t realtime = realtime_now();
        uint64_t width = lockstep_now() - before;
        if (width < best.width) {
            best = (struct pair){before + width / 2, realtime, width};
        }
    }
    return best;
}

static void write_pair(struct lockstep_header *h)
{
    struct pair now = read_pair();
    uint64_t n = atomic_load_explicit(&h->clock_pairs, memory_order_relaxed);
    struct lockstep_clock_pair *p = &h->pairs[n % LOCKSTEP_CLOCK_PAIRS];
    atomic_store_explicit(&p->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&p->raw, now.raw, memory_order_relaxed);
    atomic_store_explicit(&p->realtime, now.realtime, memory_order_relaxed);
    atomic_store_explicit(&p->width, now.width, memory_order_relaxed);
    atomic_store_explicit(&p->number, n + 1, memory_order_release);
    atomic_store_explicit(&h->clock_pairs, n + 1, memory_order_release);
}

static void follow_control(struct ring_private *p)
{
    struct lockstep_ring *r = &p->pub;
    uint64_t asked = atomic_load_explicit(&r->control->level, memory_order_relaxed);
    if (asked > LOCKSTEP_LEVEL_ALL && asked != p->bad_control) {
        lockstep_drop(r, LOCKSTEP_D_CONTROL);
    }
    p->bad_control = asked > LOCKSTEP_LEVEL_ALL ? asked : 0;
    atomic_store_explicit(&r->header->level, lockstep_level(r), memory_order_relaxed);
}

// A program that closes descriptors it does not know takes the lock with them, and
// so does one that opens and closes the file by itself. Closed, the file is opened
// again, unless its name is another's by now; locked is locked again.
static void keep_lock(struct ring_private *p)
{
    struct stat st;
    if (fstat(p->lock_fd, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino) {
        ring_lock(p->lock_fd);
        return;
    }
    char path[sizeof p->cfg.directory + sizeof p->name];
    snprintf(path, sizeof path, "%s/%s", p->cfg.directory, p->name);
    // Before the lock: closing the lower descriptor would give that up.
    int fd = ring_above_stdio(open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) != 0 || st.st_dev != p->dev || st.st_ino != p->ino || ring_lock(fd) != 0) {
        close(fd);
        return;
    }
    p->lock_fd = fd;
}

void ring_beat(struct ring_private *p)
{
    write_pair(p->pub.header);
    follow_control(p);
    atomic_store_explicit(&p->pub.header->heartbeat, lockstep_now(), memory_order_release);
}

static void wait_second(struct ring_private *p)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec++;
    while (!p->heart_stop && pthread_cond_timedwait(&p->heart_cond, &p->heart_mutex, &t) == 0) {
    }
}

static void tick(struct ring_private *p)
{
    keep_lock(p);
    ring_beat(p);
    for (unsigned i = 0; i < RING_TICKS; i++) {
        void (*fn)(void *) = atomic_load_explicit(&p->ticks[i].fn, memory_order_acquire);
        if (fn != NULL) {
            fn(atomic_load_explicit(&p->ticks[i].arg, memory_order_relaxed));
        }
    }
}

static void *heart(void *arg)
{
    struct ring_private *p = arg;
    pthread_setname_np(pthread_self(), "lockstep"); // of another thread, the C library writes to /proc
    pthread_mutex_lock(&p->heart_mutex);
    for (wait_second(p); !p->heart_stop; wait_second(p)) {
        pthread_mutex_unlock(&p->heart_mutex);
        tick(p);
        pthread_mutex_lock(&p->heart_mutex);
    }
    pthread_mutex_unlock(&p->heart_mutex);
    return NULL;
}

static int spawn(struct ring_private *p, size_t stack)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (stack != 0) {
        pthread_attr_setstacksize(&attr, stack);
    }
    int e = pthread_create(&p->heart, &attr, heart, p);
    pthread_attr_destroy(&attr);
    return e;
}

void ring_heart_start(struct ring_private *p)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->heart_cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&p->heart_mutex, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Thread-local data of the program may leave a small stack no room.
    int e = spawn(p, STACK_SIZE);
    if (e != 0) {
        e = spawn(p, 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    p->heart_runs = e == 0;
    if (!p->heart_runs) {
        ring_note(&p->cfg, "no thread for the heartbeat: the lock alone tells that the process lives");
    }
}

static bool stop_heart(struct ring_private *p)
{
    if (!p->heart_runs || pthread_equal(pthread_self(), p->heart)) {
        return false;
    }
    pthread_mutex_lock(&p->heart_mutex);
    p->heart_stop = true;
    pthread_cond_signal(&p->heart_cond);
    pthread_mutex_unlock(&p->heart_mutex);
    p->heart_runs = false;
    return true;
}

void ring_heart_stop(struct ring_private *p)
{
    if (stop_heart(p)) {
        pthread_join(p->heart, NULL);
    }
}

// The program's end waits no longer than this for whoever is called by a tick.
#define LEAVE_SECONDS 1

void ring_heart_leave(struct ring_private *p)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += LEAVE_SECONDS;
    if (stop_heart(p)) {
        pthread_timedjoin_np(p->heart, NULL, &t);
    }
}

bool lockstep_ring_on_tick(struct lockstep_ring *r, void (*fn)(void *), void *arg)
{
    struct ring_private *p = private_of(r);
    bool added = false;
    pthread_mutex_lock(&p->heart_mutex); // one adds at a time; the thread does not hold it in a tick
    for (unsigned i = 0; i < RING_TICKS && !added; i++) {
        void (*there)(void *) = atomic_load_explicit(&p->ticks[i].fn, memory_order_relaxed);
        if (there == NULL || there == fn) {
            atomic_store_explicit(&p->ticks[i].arg, arg, memory_order_relaxed);
            atomic_store_explicit(&p->ticks[i].fn, fn, memory_order_release);
            added = true;
        }
    }
    pthread_mutex_unlock(&p->heart_mutex);
    return added;
}
