// SPDX-License-Identifier: Apache-2.0

// Tests of lanes, slots, the shared lane and of threads that come and go.
#include "pattern.h"
#include "reader.h"
#include "test.h"

#include <sys/syscall.h>

static void emit(struct lockstep_ring *r, uint64_t thread, uint64_t number)
{
    uint64_t word[LOCKSTEP_WORDS];
    pattern_fill(word, 1, thread, number);
    lockstep_emit(r, word);
}

static uint64_t head_of(struct lockstep_ring *r, uint64_t lane) { return atomic_load(&r->lanes[lane].head); }

static void own_lane_keeps_the_newest(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    uint64_t word[LOCKSTEP_WORDS];
    for (uint64_t i = 0; i < 20; i++) {
        emit(r, 3, i);
    }
    CHECK_EQ(head_of(r, 1), 20);
    CHECK_EQ(head_of(r, 0), 0);
    CHECK_EQ(read_record(r, 1, 11, word), READ_LOST);
    for (uint64_t i = 12; i < 20; i++) {
        CHECK_EQ(read_record(r, 1, i, word), READ_OK);
        CHECK(pattern_holds(word));
        CHECK_EQ(word[0], i + 1);
        CHECK_EQ(word[3], i);
    }
    lockstep_ring_close(r);
}

static void *emit_one(void *ring)
{
    emit(ring, 1, 0);
    return (void *)(uintptr_t)lockstep_lane_of_thread;
}

static uint64_t run_thread(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    void *result;
    CHECK(pthread_create(&t, NULL, fn, arg) == 0);
    CHECK(pthread_join(t, &result) == 0);
    return (uint64_t)(uintptr_t)result;
}

static void lanes_come_back_when_threads_end(void)
{
    struct lockstep_ring *r = new_ring(3, 8, 1);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(run_thread(emit_one, r), 2); // lane 1, plus one
    }
    CHECK_EQ(head_of(r, 1), 100); // numbering goes on
    CHECK_EQ(atomic_load(&r->lanes[1].claims), 100);
    CHECK_EQ(atomic_load(&r->lanes[1].owner), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_LANE), 0);
    lockstep_ring_close(r);
}

static pthread_barrier_t barrier;

static void *emit_and_wait(void *ring)
{
    emit(ring, 1, 0);
    uint64_t lane = lockstep_lane_of_thread;
    pthread_barrier_wait(&barrier); // all have one
    pthread_barrier_wait(&barrier); // checked
    return (void *)(uintptr_t)lane;
}

static void exhausted_lanes_share_one(void)
{
    enum { THREADS = 5 };
    struct lockstep_ring *r = new_ring(3, 8, 1);
    pthread_t t[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&t[i], NULL, emit_and_wait, r) == 0);
    }
    pthread_barrier_wait(&barrier);
    CHECK_EQ(head_of(r, 0), 3);
    CHECK_EQ(head_of(r, 1), 1);
    CHECK_EQ(head_of(r, 2), 1);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_LANE), 3);
    CHECK(atomic_load(&r->lanes[1].owner) != atomic_load(&r->lanes[2].owner));
    emit(r, 9, 0); // this thread has found none either
    CHECK_EQ(head_of(r, 0), 4);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    for (int i = 0; i < 1000; i++) {
        emit(r, 9, 1); // and takes one as soon as it looks again
    }
    CHECK(head_of(r, 1) > 700);
    CHECK_EQ(head_of(r, 0) + head_of(r, 1) - 2, 1003);
    lockstep_ring_close(r);
}

static void *wait_emit_many(void *ring)
{
    for (uint64_t i = 0; i < 20000; i++) {
        emit(ring, 1, i);
    }
    return NULL;
}

// Many more threads than lanes, again and again: what is emitted is numbered or
// counted, and every lane is free in the end.
static void threads_churn(void)
{
    enum { THREADS = 12, ROUNDS = 5 };
    struct lockstep_ring *r = new_ring(4, 64, 1);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t t[THREADS];
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_create(&t[i], NULL, wait_emit_many, r) == 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(t[i], NULL);
        }
    }
    uint64_t own = 0;
    for (uint64_t i = 1; i < r->nlanes; i++) {
        CHECK_EQ(atomic_load(&r->lanes[i].owner), 0);
        own += head_of(r, i);
    }
    CHECK_EQ(own + drops_of(r, LOCKSTEP_D_SHARED_LANE) + drops_of(r, LOCKSTEP_D_SHARED_BUSY),
             (uint64_t)THREADS * ROUNDS * 20000);
    lockstep_ring_close(r);
}

static void two_rings_in_one_thread(void)
{
    struct lockstep_ring *a = new_ring(2, 8, 1), *b = new_ring(2, 8, 1);
    CHECK(a->id != b->id);
    for (uint64_t i = 0; i < 50; i++) {
        emit(a, 1, i);
        emit(b, 2, i);
    }
    CHECK_EQ(head_of(a, 1), 50);
    CHECK_EQ(head_of(b, 1), 50);
    CHECK_EQ(atomic_load(&a->lanes[1].claims), 1);
    lockstep_ring_close(a);
    struct lockstep_ring *c = new_ring(2, 8, 1);
    emit(c, 3, 0);
    emit(b, 2, 50);
    CHECK_EQ(head_of(c, 1), 1);
    CHECK_EQ(head_of(b, 1), 51);
    lockstep_ring_close(b);
    lockstep_ring_close(c);
}

static void shared_lane_passes_who_stands_still(void)
{
    struct lockstep_ring *r = new_ring(1, 8, 1);
    uint64_t word[LOCKSTEP_WORDS];
    for (uint64_t i = 0; i < 8; i++) {
        emit(r, 1, i);
    }
    // The writer of number 2 stands still in it.
    atomic_store(slot_at(r, 0, 2), READER_CLAIMED | 2);
    CHECK_EQ(read_record(r, 0, 2, word), READ_NOT_YET);
    for (uint64_t i = 8; i < 24; i++) {
        emit(r, 1, i);
    }
    CHECK_EQ(head_of(r, 0), 24);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_BUSY), 2); // numbers 10 and 18
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_LANE), 22);
    CHECK_EQ(atomic_load(slot_at(r, 0, 2)), READER_CLAIMED | 2);
    CHECK_EQ(read_record(r, 0, 18, word), READ_LOST);
    for (uint64_t i = 16; i < 24; i++) {
        CHECK_EQ(read_record(r, 0, i, word), i == 18 ? READ_LOST : READ_OK);
        CHECK(i == 18 || (pattern_holds(word) && word[3] == i));
    }
    // It goes on: its record is of a number long gone, and the slot is in use again.
    atomic_store(slot_at(r, 0, 2), 3);
    for (uint64_t i = 24; i < 32; i++) {
        emit(r, 1, i);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_BUSY), 2);
    CHECK_EQ(read_record(r, 0, 26, word), READ_OK);
    lockstep_ring_close(r);
}

static void shared_lane_helps_a_claimer_on(void)
{
    struct lockstep_ring *r = new_ring(1, 8, 1);
    emit(r, 1, 0);
    // The writer of number 1 stopped between its claim and moving the head.
    atomic_store(slot_at(r, 0, 1), READER_CLAIMED | 1);
    emit(r, 1, 1);
    CHECK_EQ(head_of(r, 0), 3);
    CHECK_EQ(atomic_load(slot_at(r, 0, 1)), READER_CLAIMED | 1);
    CHECK_EQ(atomic_load(slot_at(r, 0, 2)), 3);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_BUSY), 0);
    lockstep_ring_close(r);
}

static void shared_lane_of_nonsense_ends(void)
{
    struct lockstep_ring *r = new_ring(1, 8, 1);
    atomic_store(slot_at(r, 0, 0), 1000); // a number that is not due: memory was damaged
    emit(r, 1, 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_BUSY), 1);
    CHECK_EQ(head_of(r, 0), 0);
    lockstep_ring_close(r);
}

static void slots_live_and_die(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 2);
    struct lockstep_slot *s, *t, *u;
    uint64_t a = lockstep_slot_claim(r, &s), b = lockstep_slot_claim(r, &t);
    CHECK(a != 0 && b != 0 && a != b && s != t);
    CHECK_EQ(a >> 48, 0);
    CHECK_EQ(lockstep_slot_claim(r, &u), 0);
    CHECK(u == NULL);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SLOTS_FULL), 1);
    CHECK(lockstep_slot_of(r, a) == s);
    atomic_store(&s->word[5], 77);
    lockstep_slot_state(s, a, LOCKSTEP_SLOT_STARTED);
    CHECK_EQ(atomic_load(&s->word[0]) & 0xff, LOCKSTEP_SLOT_STARTED);
    lockstep_slot_state(s, a, LOCKSTEP_SLOT_ENQUEUED); // never back
    CHECK_EQ(atomic_load(&s->word[0]) & 0xff, LOCKSTEP_SLOT_STARTED);
    CHECK(lockstep_slot_ending(s, a));
    CHECK(!lockstep_slot_ending(s, a));
    CHECK(lockstep_slot_of(r, a) == NULL);
    lockstep_slot_free(r, s, a);
    lockstep_slot_free(r, s, a); // twice does no harm
    uint64_t c = lockstep_slot_claim(r, &u);
    CHECK(c != a && u == s);
    CHECK_EQ(atomic_load(&u->word[5]), 0);
    CHECK_EQ(lockstep_slot_claim(r, &u), 0);
    CHECK(lockstep_slot_of(r, a) == NULL);
    lockstep_slot_state(s, a, LOCKSTEP_SLOT_STARTED); // of a dead operation: nothing
    CHECK(!lockstep_slot_ending(s, a));
    CHECK_EQ(atomic_load(&s->word[0]) & 0xff, LOCKSTEP_SLOT_CLAIMED);
    CHECK(lockstep_slot_of(r, 0) == NULL);
    CHECK(lockstep_slot_of(r, 0xffff) == NULL);
    CHECK(lockstep_slot_of(r, UINT64_MAX) == NULL);
    lockstep_ring_close(r);
}

static void slot_generations_wrap(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    struct lockstep_slot *s;
    atomic_store(&r->slots[0].word[0], (uint64_t)UINT32_MAX << 8);
    uint64_t a = lockstep_slot_claim(r, &s);
    CHECK_EQ(a, 1u << 16 | 1);
    CHECK(lockstep_slot_of(r, a) == s);
    lockstep_ring_close(r);
}

struct contest {
    struct lockstep_ring *ring;
    _Atomic uint64_t claimed, won;
    uint64_t common;
};

static void *claim_and_free(void *arg)
{
    struct contest *c = arg;
    for (int i = 0; i < 20000; i++) {
        struct lockstep_slot *s;
        uint64_t h = lockstep_slot_claim(c->ring, &s);
        if (h == 0) {
            continue;
        }
        // Nobody else has it.
        CHECK_EQ(atomic_exchange(&s->spare[0], h), 0);
        atomic_fetch_add(&c->claimed, 1);
        lockstep_slot_state(s, h, LOCKSTEP_SLOT_ENQUEUED);
        CHECK(lockstep_slot_ending(s, h));
        CHECK_EQ(atomic_exchange(&s->spare[0], 0), h);
        lockstep_slot_free(c->ring, s, h);
    }
    return NULL;
}

static void slots_are_claimed_once(void)
{
    enum { THREADS = 6 };
    struct contest c = {.ring = new_ring(2, 8, 4)};
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&t[i], NULL, claim_and_free, &c) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    CHECK_EQ(c.claimed + drops_of(c.ring, LOCKSTEP_D_SLOTS_FULL), THREADS * 20000);
    struct lockstep_slot *s;
    for (int i = 0; i < 4; i++) {
        CHECK(lockstep_slot_claim(c.ring, &s) != 0); // none leaked
    }
    CHECK(lockstep_slot_claim(c.ring, &s) == 0); // none doubled
    lockstep_ring_close(c.ring);
}

static void *end_common(void *arg)
{
    struct contest *c = arg;
    pthread_barrier_wait(&barrier);
    struct lockstep_slot *s = lockstep_slot_of(c->ring, c->common);
    if (s != NULL && lockstep_slot_ending(s, c->common)) {
        atomic_fetch_add(&c->won, 1);
    }
    return NULL;
}

static void one_of_many_ends_an_operation(void)
{
    enum { THREADS = 4, ROUNDS = 200 };
    struct contest c = {.ring = new_ring(2, 8, 4)};
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        struct lockstep_slot *s;
        c.common = lockstep_slot_claim(c.ring, &s);
        lockstep_slot_state(s, c.common, LOCKSTEP_SLOT_ENQUEUED);
        pthread_t t[THREADS];
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_create(&t[i], NULL, end_common, &c) == 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(t[i], NULL);
        }
        lockstep_slot_free(c.ring, s, c.common);
    }
    CHECK_EQ(c.won, ROUNDS);
    lockstep_ring_close(c.ring);
}

static const struct test_case cases[] = {
    {"own_lane_keeps_the_newest", own_lane_keeps_the_newest},
    {"lanes_come_back_when_threads_end", lanes_come_back_when_threads_end},
    {"exhausted_lanes_share_one", exhausted_lanes_share_one},
    {"threads_churn", threads_churn},
    {"two_rings_in_one_thread", two_rings_in_one_thread},
    {"shared_lane_passes_who_stands_still", shared_lane_passes_who_stands_still},
    {"shared_lane_helps_a_claimer_on", shared_lane_helps_a_claimer_on},
    {"shared_lane_of_nonsense_ends", shared_lane_of_nonsense_ends},
    {"slots_live_and_die", slots_live_and_die},
    {"slot_generations_wrap", slot_generations_wrap},
    {"slots_are_claimed_once", slots_are_claimed_once},
    {"one_of_many_ends_an_operation", one_of_many_ends_an_operation},
};

TEST_MAIN(cases)
