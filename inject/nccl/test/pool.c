// SPDX-License-Identifier: Apache-2.0

// Entries of a pool that eight threads claim and free as fast as they can: each is
// one thread's alone, from its claim to its end.
//
//   pool DIRECTORY [SECONDS]
#include "plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8

// So many entries of the pool are in use that threads meet in them all the time.
#define ENTRIES 16u

static struct lockstep_ring *ring;
static struct pool small;
static uint64_t op;
static _Atomic uint64_t claims, two_owners, lost, full;
static _Atomic bool stop;

static bool is_mine(const struct entry *e, uint64_t id) { return get(&e->what) == id && get(&e->begin) == id; }

static void claim_one(uint64_t id)
{
    struct entry *e = pool_claim(ring, &small, op);
    if (e == NULL) {
        atomic_fetch_add(&full, 1);
        return;
    }
    put(&e->what, id);
    put(&e->begin, id);
    two_owners += !is_mine(e, id);
    uint64_t handle = pool_publish(&small, TAG_PROXY_STEP, e);
    two_owners += !is_mine(e, id);
    lost += pool_of(&small, TAG_PROXY_STEP, handle) != e || !pool_free(e, handle);
    lost += pool_free(e, handle) || pool_of(&small, TAG_PROXY_STEP, handle) != NULL; // and is over then
    atomic_fetch_add(&claims, 1);
}

static void *run(void *arg)
{
    while (!atomic_load(&stop)) {
        claim_one((uintptr_t)arg);
    }
    return NULL;
}

static void hammer(double seconds)
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, run, (void *)(i + 1));
    }
    struct timespec s = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&s, NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
}

// One that is being claimed looks neither free nor orphaned to another thread.
static bool claimed_is_nobody_elses(void)
{
    struct entry *seen[ENTRIES];
    for (unsigned i = 0; i < ENTRIES; i++) {
        seen[i] = pool_claim(ring, &small, 0); // of no operation: an orphan, were it taken
        for (unsigned j = 0; j < i; j++) {
            if (seen[i] == seen[j] || seen[i] == NULL) {
                return false;
            }
        }
    }
    bool none = pool_claim(ring, &small, op) == NULL;
    for (unsigned i = 0; i < ENTRIES; i++) {
        pool_publish(&small, TAG_PROXY_STEP, seen[i]);
    }
    return none;
}

int main(int argc, char **argv)
{
    char err[512];
    struct lockstep_options o = {.directory = argc > 1 ? argv[1] : ".", .lanes = 2, .capacity = 64, .slots = 64};
    struct lockstep_slot *s;
    if (lockstep_ring_create(&o, &ring, err, sizeof err) != 0) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    small = (struct pool){.entries = calloc(ENTRIES, sizeof *small.entries), .count = ENTRIES};
    op = lockstep_slot_claim(ring, &s);
    bool alone = claimed_is_nobody_elses();
    hammer(argc > 2 ? atof(argv[2]) : 1);
    lockstep_ring_close(ring);
    printf("pool: %lu claims, full %lu, two owners %lu, lost %lu, claimed alone %d\n", claims, full, two_owners, lost,
           alone);
    return two_owners != 0 || lost != 0 || !alone || claims == 0;
}
