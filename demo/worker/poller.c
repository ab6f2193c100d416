// SPDX-License-Identifier: Apache-2.0

// Stamps that the device writes, and the thread that finds and delivers them:
// NCCL has both since 2.26, and a thread of its own for it since 2.31.
#include <time.h>

#include "worker.h"

#define STAMPS 64 // per channel, as in NCCL

static struct stamp {
    _Atomic uint64_t started, start, stopped, stop;
} stamps[MAX_CHANNELS][STAMPS];

void stamp_start(int channel, uint64_t work)
{
    struct stamp *s = &stamps[channel][work % STAMPS];
    atomic_store_explicit(&s->start, device_clock(), memory_order_relaxed);
    atomic_store_explicit(&s->started, work, memory_order_release);
}

void stamp_stop(int channel, uint64_t work)
{
    struct stamp *s = &stamps[channel][work % STAMPS];
    atomic_store_explicit(&s->stop, device_clock(), memory_order_relaxed);
    atomic_store_explicit(&s->stopped, work, memory_order_release);
}

#define WATCHED 64

static struct watched {
    struct collective *c;
    void *event[MAX_CHANNELS];
    bool started[MAX_CHANNELS], stopped[MAX_CHANNELS];
} queue[WATCHED];
static uint64_t first, last; // of queue
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER;
static bool ended;
static pthread_t thread;

void poller_post(struct collective *c)
{
    if (!(c->mask & EV_KERNEL_CH)) {
        collective_release(c);
        return;
    }
    pthread_mutex_lock(&lock);
    queue[last % WATCHED] = (struct watched){.c = c};
    last++;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
}

// A stamp of a later work in the same place counts, too, as in NCCL: its time is
// then that of the later one.
static void look(struct watched *w, int channel)
{
    uint64_t work = w->c->parts[channel].work;
    struct stamp *s = &stamps[channel][work % STAMPS];
    if (!w->started[channel] && work <= atomic_load_explicit(&s->started, memory_order_acquire)) {
        w->started[channel] = true;
        struct descr d = {.type = EV_KERNEL_CH,
                          .parent = w->c->handle,
                          .kernel_ch = {.channel = (uint8_t)channel, .timer = atomic_load(&s->start)}};
        w->event[channel] = event_start(&d);
    }
    if (w->started[channel] && !w->stopped[channel] && work <= atomic_load_explicit(&s->stopped, memory_order_acquire)) {
        w->stopped[channel] = true;
        union state_args a = {.timer = atomic_load(&s->stop)};
        event_state(w->event[channel], ST_KERNEL_CH_STOP, &a);
        event_stop(w->event[channel]);
    }
}

// Returns whether all its channels have stopped.
static bool look_all(struct watched *w)
{
    bool all = true;
    for (int i = 0; i < opt.channels; i++) {
        if (!w->stopped[i]) {
            look(w, i);
        }
        all = all && w->stopped[i];
    }
    return all;
}

static void look_at_queue(uint64_t from, uint64_t to)
{
    while (from < to && look_all(&queue[from % WATCHED])) {
        collective_release(queue[from % WATCHED].c);
        from++;
    }
    pthread_mutex_lock(&lock);
    first = from;
    pthread_mutex_unlock(&lock);
}

static void *run(void *arg)
{
    (void)arg;
    const struct timespec pause = {0, (long)opt.poll_ns};
    while (true) {
        pthread_mutex_lock(&lock);
        while (first == last && !ended) {
            pthread_cond_wait(&posted, &lock);
        }
        uint64_t from = first, to = last;
        pthread_mutex_unlock(&lock);
        if (from == to || atomic_load(&failed)) {
            return NULL;
        }
        look_at_queue(from, to);
        nanosleep(&pause, NULL);
    }
}

void poller_start(void)
{
    pthread_create(&thread, NULL, run, NULL);
    pthread_setname_np(thread, "profiler");
}

void poller_stop(void)
{
    pthread_mutex_lock(&lock);
    ended = true;
    pthread_cond_signal(&posted);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}
