// SPDX-License-Identifier: Apache-2.0

// Threads that write records of pattern.h as fast as they can, and, where asked
// for, are stopped at random: a signal whose handler spins or sleeps, so that they
// stand still in the middle of a record.
#ifndef LOCKSTEP_WRITERS_H
#define LOCKSTEP_WRITERS_H

#include "pattern.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define MAX_WRITERS 256
#define MAX_SPIN_NS 20000u
#define MAX_SLEEP_NS 3000000u
#define MAX_STEPS 64u // instructions between two stops: some words of a record

struct writer {
    pthread_t thread;
    struct writers *all;
    uint64_t index, emitted;
};

struct writers {
    struct lockstep_ring *ring;
    unsigned count;
    uint64_t records; // per thread; 0: until stop
    bool shared;      // everybody on the shared lane
    bool levels;      // levels 1, 2, 3 in turn
    bool operations;  // a slot is claimed before each record and freed after it
    _Atomic bool stop;
    _Atomic unsigned running;
    struct writer writer[MAX_WRITERS];
};

static _Thread_local uint64_t pause_seed, steps_to_stop;

static inline uint64_t random_next(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15ull;
    return pattern_mix(*seed);
}

static inline void stand_still(void)
{
    uint64_t x = random_next(&pause_seed);
    if (x % 2 == 0) {
        struct timespec t = {0, (long)(x / 2 % MAX_SLEEP_NS)};
        nanosleep(&t, NULL);
        return;
    }
    uint64_t end = lockstep_now() + x / 2 % MAX_SPIN_NS;
    while (lockstep_now() < end) {
    }
}

// The trap flag has the processor stop after every instruction. ThreadSanitizer
// delivers signals late, with a context of its own, where it has no effect.
static inline void set_trap(void *context, bool on)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    *flags = on ? *flags | 0x100 : *flags & ~0x100;
#else
    (void)context, (void)on;
#endif
}

// Stands still, and again some instructions later: a writer that was lapped
// meanwhile is then in the middle of what may by now be another's record.
static inline void on_stop(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    stand_still();
    steps_to_stop = random_next(&pause_seed) % MAX_STEPS;
    set_trap(context, true);
}

static inline void on_step(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    if (steps_to_stop-- == 0) {
        stand_still();
        set_trap(context, false);
    }
}

static inline void write_one(struct writers *all, struct writer *w, uint64_t word[LOCKSTEP_WORDS])
{
    pattern_fill(word, all->levels ? 1 + (unsigned)(w->emitted % 3) : 1, w->index, w->emitted);
    if (all->shared) {
        lockstep_emit_shared(all->ring, word);
    } else {
        lockstep_emit(all->ring, word);
    }
    w->emitted++;
}

static inline void write_operation(struct writers *all, struct writer *w, uint64_t word[LOCKSTEP_WORDS])
{
    struct lockstep_slot *s;
    uint64_t handle = lockstep_slot_claim(all->ring, &s);
    if (handle == 0) {
        write_one(all, w, word);
        return;
    }
    uint64_t number = w->emitted;
    pattern_fill(word, 1, w->index, number);
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        atomic_store_explicit(&s->word[i], word[i], memory_order_relaxed);
    }
    atomic_store_explicit(&s->order, number + 1, memory_order_relaxed);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUED);
    if (lockstep_slot_ending(s, handle)) {
        write_one(all, w, word);
        lockstep_slot_free(all->ring, s, handle);
    }
}

static inline void *writer_main(void *arg)
{
    struct writer *w = arg;
    struct writers *all = w->all;
    uint64_t word[LOCKSTEP_WORDS];
    pause_seed = w->index + 1;
    while (!atomic_load_explicit(&all->stop, memory_order_relaxed) &&
           (all->records == 0 || w->emitted < all->records)) {
        if (all->operations) {
            write_operation(all, w, word);
        } else {
            write_one(all, w, word);
        }
    }
    atomic_fetch_sub(&all->running, 1);
    return NULL;
}

static inline void writers_start(struct writers *all)
{
    struct sigaction stop = {.sa_sigaction = on_stop, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaddset(&stop.sa_mask, SIGTRAP);
    sigaddset(&step.sa_mask, SIGUSR1);
    sigaction(SIGUSR1, &stop, NULL);
    sigaction(SIGTRAP, &step, NULL);
    atomic_store(&all->running, all->count);
    for (unsigned i = 0; i < all->count; i++) {
        all->writer[i].index = i;
        all->writer[i].all = all;
        if (pthread_create(&all->writer[i].thread, NULL, writer_main, &all->writer[i]) != 0) {
            perror("pthread_create");
            exit(1);
        }
    }
}

// Stops a writer now and then until `until` (MONOTONIC_RAW ns) or until all ended.
static inline void writers_disturb(struct writers *all, uint64_t until)
{
    uint64_t seed = 42;
    while (lockstep_now() < until && atomic_load(&all->running) > 0) {
        uint64_t x = random_next(&seed);
        pthread_kill(all->writer[x % all->count].thread, SIGUSR1);
        struct timespec t = {0, (long)(x / 1024 % 300000)};
        nanosleep(&t, NULL);
    }
}

static inline uint64_t writers_join(struct writers *all)
{
    uint64_t emitted = 0;
    for (unsigned i = 0; i < all->count; i++) {
        pthread_join(all->writer[i].thread, NULL);
        emitted += all->writer[i].emitted;
    }
    return emitted;
}

// So that more threads than cores fight for them.
static inline void two_cores(void)
{
    cpu_set_t allowed, two;
    CPU_ZERO(&two);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&two) < 2; i++) {
        if (CPU_ISSET(i, &allowed)) {
            CPU_SET(i, &two);
        }
    }
    sched_setaffinity(0, sizeof two, &two);
}

#endif
