// SPDX-License-Identifier: Apache-2.0

// A rank of a job, as its profiler plugin shows it: ring_events STEPS MODE marks
// steps of 10 ms with two all-reduces each; MODE is "close", "die" (ends in the
// middle of an operation), "hang" (stays in the middle of one), "unlock" (so, having
// closed all its descriptors), "witness" (as hang, with kernels, requests and a scope
// that its host does not leave) or "fill" (steps
// of 64 operations 10 us apart, as fast as can be, their times made up). RESUMED is the
// step that it says it has loaded.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep.h"
#include "ring.h"

static uint64_t gpu(uint64_t host) { return host + 1700000000000000000ull + host / 100000; }

static uint64_t begin(struct lockstep_ring *r, uint16_t comm, unsigned func, uint64_t seq, int64_t step, uint64_t word[LOCKSTEP_WORDS])
{
    struct lockstep_slot *s;
    uint64_t handle = lockstep_slot_claim(r, &s);
    memset(word, 0, LOCKSTEP_WORDS * 8);
    word[1] = lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, LOCKSTEP_F_KERNEL, comm, func, lockstep_intern(r, "ncclFloat32"));
    word[2] = handle;
    word[3] = seq;
    word[4] = 1 << 20;
    word[5] = lockstep_pair((uint32_t)LOCKSTEP_NONE, 2);
    word[6] = lockstep_now();
    word[7] = lockstep_pair(3000, (uint32_t)step);
    word[13] = lockstep_pair(0, 1);
    for (int i = 1; i < 16; i++) {
        atomic_store(&s->word[i], word[i]);
    }
    atomic_store(&s->order, seq + 1);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUED);
    struct lockstep_frontier *f = lockstep_frontier_of(r, comm, (uint8_t)func);
    lockstep_frontier_raise(&f->enqueued, &f->enqueued_at, seq, word[6]);
    return handle;
}

static void end(struct lockstep_ring *r, uint64_t handle, uint64_t word[LOCKSTEP_WORDS])
{
    struct lockstep_slot *s = lockstep_slot_of(r, handle);
    if (!lockstep_slot_ending(s, handle)) {
        abort();
    }
    word[8] = gpu(word[6] + 20000);
    word[9] = gpu(lockstep_now() - 1000);
    usleep(20);
    word[11] = lockstep_now();
    lockstep_emit(r, word);
    uint64_t chunk[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_PROXY_STEP, LOCKSTEP_LEVEL_ALL, 0, (unsigned)(word[1] >> 32 & 0xffff), (unsigned)(word[1] >> 48 & 0xff), 0),
        [2] = handle, [3] = lockstep_pair(0, 4096), [4] = lockstep_pair(1, 1u << 8), [5] = word[6], [6] = word[6] + 1000,
        [7] = word[6] + 2000, [8] = word[6] + 3000, [9] = word[6] + 9000, [10] = 4096, [11] = word[3], [12] = word[7] >> 32,
    };
    lockstep_emit(r, chunk);
    lockstep_slot_free(r, s, handle);
}

static void fill(struct lockstep_ring *r, uint16_t comm, unsigned func, int64_t steps)
{
    uint64_t word[LOCKSTEP_WORDS] = {0}, at = lockstep_now() - (uint64_t)steps * 64 * 10000;
    unsigned dtype = lockstep_intern(r, "ncclBfloat16"), ring = lockstep_intern(r, "RING"), proto = lockstep_intern(r, "LL128");
    for (int64_t i = 0; i < steps * 64; i++, at += 10000) {
        if (i % 64 == 0) {
            uint64_t mark[LOCKSTEP_WORDS] = {[1] = lockstep_head(LOCKSTEP_STEP, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0), [2] = (uint64_t)i / 64, [3] = at};
            lockstep_emit(r, mark);
        }
        word[1] = lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, LOCKSTEP_F_KERNEL | LOCKSTEP_F_PROXY | LOCKSTEP_F_WAITS, comm, func, dtype);
        word[2] = (uint64_t)i << 16 | 1;
        word[3] = (uint64_t)i;
        word[4] = 1 << 20;
        word[5] = lockstep_pair((uint32_t)LOCKSTEP_NONE, 2 | ring << 8 | proto << 16);
        word[6] = at;
        word[7] = lockstep_pair(3000, (uint32_t)(i / 64));
        word[8] = gpu(at + 500 + (uint64_t)(i * 37 % 300));
        word[9] = gpu(at + 4000 + (uint64_t)(i * 101 % 3000));
        word[11] = at + 8500 + (uint64_t)(i * 53 % 700);
        word[12] = lockstep_pair(20, 80);
        word[13] = lockstep_pair(0, 1);
        word[14] = lockstep_pair(10, 5);
        word[15] = lockstep_pair(20, 0);
        lockstep_emit(r, word);
    }
}

// Read once, so that no pause between the two readings makes the clock seem stepped.
static uint64_t realtime_ahead(void)
{
    static uint64_t ahead;
    if (ahead == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        ahead = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - lockstep_now();
    }
    return ahead;
}

// A kernel as CUPTI hands it over, by its clock: launched at, and 100 to 600 us later
// on the device.
static void kernel(struct lockstep_ring *r, const char *name, unsigned flags, uint64_t at, uint64_t ahead)
{
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_KERNEL, LOCKSTEP_LEVEL_COLLECTIVES, flags | LOCKSTEP_K_LAUNCH, 0, 0, 0),
        [2] = at + 100000 + ahead, [3] = at + 600000 + ahead, [4] = at + ahead,
        [5] = lockstep_pair(lockstep_intern(r, name), 77), [6] = lockstep_pair(7, 0), [7] = lockstep_pair(42, 0),
        [8] = lockstep_pair(8, 1 | 1 << 16), [10] = 4096,
    };
    lockstep_emit(r, word);
}

// What CUPTI hands over of a step that began at, some time later, and a request that
// the current one works for.
static void witness(struct lockstep_ring *r, uint64_t at, uint64_t step)
{
    uint64_t ahead = realtime_ahead(), now = lockstep_now();
    uint64_t clock[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_CLOCK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0),
        [2] = now, [3] = now + ahead, [4] = now + ahead, [5] = lockstep_pair(200, 1),
    };
    lockstep_emit(r, clock);
    uint64_t link[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_LINK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0), [2] = step, [3] = 1, [4] = 2, [5] = step + 1, [6] = now,
    };
    lockstep_emit(r, link);
    atomic_fetch_or(&r->header->witnesses, LOCKSTEP_W_CUPTI);
    atomic_store(&r->header->cupti, lockstep_pair(LOCKSTEP_CUPTI_ACTIVE, 0));
    if (at != 0) {
        kernel(r, "gemm", 0, at, ahead);
        kernel(r, "Memcpy HtoD", LOCKSTEP_K_COPY, at + 500000, ahead);
        kernel(r, "ncclDevKernel_AllReduce", LOCKSTEP_K_COMM, at + 1000000, ahead);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        fprintf(stderr, "%s\n", lockstep_ring_status());
        return 1;
    }
    bool anonymous = strcmp(argv[2], "anonymous") == 0; // as before version 4 of the profiler interface
    int rank = anonymous ? -1 : atoi(getenv("RANK")), world = anonymous ? -1 : atoi(getenv("WORLD_SIZE"));
    uint16_t comm = lockstep_comm_add(r, 0xabcdef0123456789ull, world, rank, 1, 5, 0, "world");
    unsigned func = lockstep_intern(r, "AllReduce");
    uint64_t word[LOCKSTEP_WORDS], seq = 0;
    int steps = atoi(argv[1]);
    if (strcmp(argv[2], "fill") == 0) {
        fill(r, comm, func, steps);
        lockstep_ring_close(r);
        return 0;
    }
    const char *loaded = getenv("RESUMED");
    if (loaded != NULL) {
        lockstep_resumed(atoll(loaded), -1, "7", NULL, "dp 0");
        lockstep_fingerprint(atoll(loaded) + 1, 0xabc, 0, 100, "dp", 2);
    }
    bool witnessed = strcmp(argv[2], "witness") == 0;
    uint64_t before = 0;
    for (int64_t step = 0; step < steps; step++) {
        lockstep_step_begin(step);
        if (witnessed) {
            uint64_t at = lockstep_now();
            witness(r, before, (uint64_t)step);
            before = at;
        }
        uint64_t load = lockstep_scope_begin("data_loading", LOCKSTEP_PHASE_TRAIN);
        usleep(1000);
        lockstep_scope_end(load);
        for (int i = 0; i < 2; i++) {
            uint64_t handle = begin(r, comm, func, seq++, step, word);
            usleep(4000);
            end(r, handle, word);
        }
    }
    if (strcmp(argv[2], "close") == 0 || anonymous) {
        lockstep_ring_close(r);
        return 0;
    }
    lockstep_step_begin(steps);
    if (witnessed) {
        witness(r, before, (uint64_t)steps);
        kernel(r, "gemm", 0, lockstep_now(), realtime_ahead());
        struct lockstep_lane *lane = &r->lanes[lockstep_lane_of_thread - 1];
        atomic_store(&lane->scope_at, lockstep_now());
        atomic_store(&lane->scope, lockstep_pair(lockstep_intern(r, "data_loading"), (uint32_t)LOCKSTEP_PHASE_TRAIN << 16));
    }
    begin(r, comm, func, seq, steps, word);
    puts("open");
    fflush(stdout);
    if (strcmp(argv[2], "unlock") == 0) { // as a program does that closes all its descriptors
        for (int fd = 3; fd < 1024; fd++) {
            close(fd);
        }
        pause();
    }
    if (strcmp(argv[2], "hang") == 0 || witnessed) {
        pause();
    }
    _exit(9);
}
