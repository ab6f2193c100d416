// SPDX-License-Identifier: Apache-2.0

// A process with a ring: two collectives in flight, enqueued at the same time, of
// which the table has the later one first; a step and a scope recorded. With an
// argument, also what CUPTI, scopes and requests add, and a scope that is left open on
// its main thread and on another; with "crowd", instead, other threads have all lanes,
// and three more end a scope.
// It tells that it is ready, and ends with its standard input.
#include "lockstep.h"
#include "ring.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static uint64_t enqueued;

static uint64_t begin(struct lockstep_ring *r, uint16_t comm, uint64_t order, uint64_t seq, struct lockstep_slot **s)
{
    uint64_t handle = lockstep_slot_claim(r, s);
    atomic_store(&(*s)->word[1], lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, 0, comm, lockstep_intern(r, "AllReduce"), 0));
    atomic_store(&(*s)->word[2], handle);
    atomic_store(&(*s)->word[3], seq);
    atomic_store(&(*s)->word[4], 1048576);
    atomic_store(&(*s)->word[6], enqueued);
    atomic_store(&(*s)->order, order);
    return handle;
}

static void record(struct lockstep_ring *r, const uint64_t word[LOCKSTEP_WORDS]) { lockstep_emit(r, word); }

// A kernel of 3 us, launched 2 us before, by a clock that is a day ahead.
static void witness(struct lockstep_ring *r)
{
    uint64_t now = lockstep_now(), ahead = 86400ull * 1000000000ull;
    record(r, (uint64_t[LOCKSTEP_WORDS]){
        [1] = lockstep_head(LOCKSTEP_CLOCK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = now, [3] = now + ahead, [4] = now, [5] = lockstep_pair(100, 1)});
    record(r, (uint64_t[LOCKSTEP_WORDS]){
        [1] = lockstep_head(LOCKSTEP_KERNEL, LOCKSTEP_LEVEL_COLLECTIVES, LOCKSTEP_K_LAUNCH | LOCKSTEP_K_GRAPH, 0, 0, 0),
        [2] = now + ahead + 2000, [3] = now + ahead + 5000, [4] = now + ahead, [5] = lockstep_pair(lockstep_intern(r, "gemm"), 77),
        [6] = lockstep_pair(7, 1), [7] = lockstep_pair(42, 0), [8] = lockstep_pair(8, 1 | 1 << 16), [9] = 256 | 1 << 16});
    record(r, (uint64_t[LOCKSTEP_WORDS]){
        [1] = lockstep_head(LOCKSTEP_LINK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = 7, [3] = 0x0706050403020100, [4] = 0x0f0e0d0c0b0a0908, [5] = 0x1716151413121110, [6] = now, [7] = 77});
    atomic_store(&r->header->witnesses, LOCKSTEP_W_NCCL | LOCKSTEP_W_SCOPES | LOCKSTEP_W_CUPTI);
    atomic_store(&r->header->cupti, lockstep_pair(LOCKSTEP_CUPTI_YIELDED, 39));
    struct lockstep_lane *lane = &r->lanes[lockstep_lane_of_thread - 1];
    atomic_store(&lane->scope_at, lockstep_now() - 1500000000u);
    atomic_store(&lane->scope, lockstep_pair(lockstep_intern(r, "data_loading"), 1 | (uint32_t)LOCKSTEP_PHASE_TRAIN << 16));
    lane = &r->lanes[2]; // as another thread would
    atomic_store(&lane->scope_at, lockstep_now() - 5000000u);
    atomic_store(&lane->scope, lockstep_pair(lockstep_intern(r, "prefetch"), 0));
    atomic_store(&lane->owner, 4711);
}

static void *scope(void *arg)
{
    lockstep_scope_end(lockstep_scope_begin("forward", LOCKSTEP_PHASE_TRAIN));
    return arg;
}

static void crowd(struct lockstep_ring *r)
{
    for (uint64_t i = 1; i < r->nlanes; i++) {
        atomic_store(&r->lanes[i].owner, 4711 + i);
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, scope, NULL);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        fprintf(stderr, "%s\n", lockstep_ring_status());
        return 1;
    }
    uint16_t comm = lockstep_comm_add(r, 0xabc, 4, 2, 1, 7, 0, "world");
    enqueued = lockstep_now();
    struct lockstep_slot *s;
    uint64_t handle = begin(r, comm, 2, 42, &s);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUED);
    handle = begin(r, comm, 1, 41, &s);
    atomic_store(&s->waits[0].what, 20u | 1u << 16 | (uint64_t)3 << 32);
    atomic_store(&s->waits[0].since, lockstep_now());
    atomic_store(&s->waits[2].what, 10u | (uint64_t)1 << 32);
    atomic_store(&s->waits[2].since, lockstep_now());
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_STARTED);
    lockstep_step_begin(7);
    lockstep_scope_end(lockstep_scope_begin("forward", LOCKSTEP_PHASE_TRAIN));
    if (argc > 1 && strcmp(argv[1], "crowd") == 0) {
        crowd(r);
    } else if (argc > 1) {
        witness(r);
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
