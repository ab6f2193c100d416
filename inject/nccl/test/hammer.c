// SPDX-License-Identifier: Apache-2.0

// Random events, legal and not, from several threads on handles that they share.
// What must hold: nothing crashes, no sanitizer has anything to say, every record
// is whole, no operation is recorded twice, and at the end nothing is left open.
//
//   hammer PLUGIN DIRECTORY [SEED [OPERATIONS]]
#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define THREADS 5
#define HANDLES 512
#define CONTEXTS 4

static _Atomic(void *) handles[HANDLES], contexts[CONTEXTS];
static _Atomic uint64_t sequence;
static long operations;

struct dice {
    uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t sides)
{
    d->state = d->state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(d->state >> 33) % sides;
}

static void *any(struct dice *d)
{
    void *h = atomic_load(&handles[roll(d, HANDLES)]);
    switch (roll(d, 40)) {
    case 0: return NULL;
    case 1: return (void *)(uintptr_t)(d->state * 3);
    case 2: return (void *)((uintptr_t)h ^ (1ull << roll(d, 64)));
    case 3: return atomic_load(&contexts[roll(d, CONTEXTS)]);
    default: return h;
    }
}

static void keep(struct dice *d, void *h)
{
    if (h != NULL) {
        atomic_store(&handles[roll(d, HANDLES)], h);
    }
}

static void renew(struct dice *d)
{
    _Atomic(void *) *c = &contexts[roll(d, CONTEXTS)];
    void *fresh = comm_init(roll(d, 100), 8, 0, "hammer");
    comm_finalize(atomic_exchange(c, fresh));
}

static void *start_one(struct dice *d, void *ctx)
{
    static const uint64_t types[] = {T_COLL_API, T_P2P_API, T_GROUP_API, T_KERNEL_LAUNCH};
    void *parent = any(d), *group = any(d);
    struct abi_event e = {.type = 1ull << roll(d, 17), .parent = parent};
    struct coll c = {parent, group, atomic_fetch_add(&sequence, 1), "AllReduce", "ncclFloat32", "RING", "LL",
                     roll(d, 1000), 0, (int)roll(d, 4), 7};
    switch (roll(d, 12)) {
    case 0: return start_group(ctx, parent);
    case 1:
    case 2: return start_coll(ctx, c);
    case 3: return start_p2p(ctx, parent, group, roll(d, 2), (int)roll(d, 8));
    case 4:
    case 5: return start_proxy_op(ctx, parent, roll(d, 8) == 0 ? 1 : getpid(), (int)roll(d, 4), (int)roll(d, 8), roll(d, 2));
    case 6:
    case 7: return start_proxy_step(ctx, parent, (int)roll(d, 100));
    case 8:
    case 9: return start_kernel(ctx, parent, (int)roll(d, 4), roll(d, 1u << 30));
    case 10: return start_api(ctx, parent, types[roll(d, 4)], (void *)(uintptr_t)roll(d, 30), roll(d, 2));
    default: return start_new(ctx, &e); // of any type, all fields zero
    }
}

static void *pound(void *arg)
{
    struct dice d = {(uintptr_t)arg};
    for (long i = 0; i < operations; i++) {
        void *ctx = atomic_load(&contexts[roll(&d, CONTEXTS)]), *h = any(&d);
        switch (roll(&d, 10)) {
        case 0:
        case 1:
        case 2:
        case 3: keep(&d, start_one(&d, ctx)); break;
        case 4: state_null(h, (int)roll(&d, 32)); break;
        case 5: state(h, (int)roll(&d, 32), roll(&d, 1u << 30)); break;
        case 6:
            if (roll(&d, 200) == 0) {
                renew(&d);
            }
            break;
        default: stop(h); break;
        }
    }
    return NULL;
}

static uint64_t handle_in(const uint64_t *record) { return record[2] & ((1ull << 48) - 1); }

static int compare(const void *a, const void *b)
{
    uint64_t x = handle_in(a), y = handle_in(b);
    return x < y ? -1 : x > y;
}

static void judge(void)
{
    enum { MAX = 1 << 18 };
    uint64_t(*got)[LOCKSTEP_WORDS] = malloc(sizeof *got * MAX);
    struct reading r = ring_read(getpid());
    size_t n = ring_records(&r, LOCKSTEP_OP, got, MAX);
    qsort(got, n, sizeof *got, compare);
    for (size_t i = 0; i < n; i++) {
        CHECK(i == 0 || handle_in(got[i]) != handle_in(got[i - 1]), "operation %lx twice", handle_in(got[i]));
        CHECK(got[i][6] != 0 && (got[i][11] == 0 || got[i][11] >= got[i][6]));
    }
    for (uint64_t i = 0; ring_slot(&r, i) != NULL; i++) {
        CHECK((atomic_load(&ring_slot(&r, i)->word[0]) & 0xff) == LOCKSTEP_SLOT_FREE, "slot %lu is open", i);
    }
    printf("v%u: %zu operations\n", nccl.v, n);
    CHECK(n > 100);
    free(got);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: hammer PLUGIN DIRECTORY [SEED [OPERATIONS]]\n");
        return 2;
    }
    driver_plugin = argv[1];
    driver_dir = argv[2];
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
    operations = argc > 4 ? atol(argv[4]) : 20000;
    setenv("LOCKSTEP_DIR", driver_dir, 1);
    setenv("LOCKSTEP_LEVEL", "all", 1);
    setenv("LOCKSTEP_RING_LANES", "8", 1);
    setenv("LOCKSTEP_RING_RECORDS", "16384", 1);
    nccl_load(4 + seed % 4);
    for (int i = 0; i < CONTEXTS; i++) {
        contexts[i] = comm_init((uint64_t)i, 8, 0, "hammer");
    }
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, pound, (void *)(seed * 1000 + i + 1));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        comm_finalize(contexts[i]);
    }
    judge();
    printf("seed %lu: %s\n", seed, driver_failed ? "FAIL" : "ok");
    return driver_failed;
}
