// A process with a ring: two collectives in flight, enqueued at the same time, of
// which the table has the later one first; a step and a scope recorded.
// It tells that it is ready, and ends with its standard input.
#include "ring.h"

#include <stdio.h>

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

int main(void)
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
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
