// SPDX-License-Identifier: Apache-2.0

// Tests of the tables: names, communicators, GPUs, frontiers.
#include "test.h"

static const char *text_of(const struct lockstep_ring *r, uint16_t code) { return r->strings[code].text; }

static void names_have_one_code(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    uint16_t a = lockstep_intern(r, "my_kernel"), b = lockstep_intern(r, "other");
    char copy[] = "my_kernel";
    CHECK(a != 0 && b != 0 && a != b);
    CHECK_EQ(lockstep_intern(r, copy), a);
    CHECK(strcmp(text_of(r, a), "my_kernel") == 0);
    CHECK_EQ(lockstep_intern(r, NULL), 0);
    CHECK_EQ(lockstep_intern(r, ""), 0);
    CHECK(lockstep_intern(r, "my_kerne") != a); // a beginning is another text
    lockstep_ring_close(r);
}

static void names_of_nccl_fit_a_byte(void)
{
    static const char *const known[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",     "Reduce",
                                        "Send",      "Recv",      "ncclFloat32",   "ncclBfloat16",  "ncclFloat8e5m2",
                                        "TREE",      "RING",      "NVLS_TREE",     "COLLNET_CHAIN", "PAT",
                                        "LL",        "LL128",     "SIMPLE"};
    struct lockstep_ring *r = new_ring(2, 8, 1);
    for (int i = 0; i < 400; i++) {
        char name[32];
        snprintf(name, sizeof name, "function %d", i);
        CHECK(lockstep_intern(r, name) < 256);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint16_t code = lockstep_intern(r, known[i]);
        CHECK(code > 0 && code < 256);
        CHECK(strcmp(text_of(r, code), known[i]) == 0);
    }
    lockstep_ring_close(r);
}

static void long_names_are_cut(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    char name[200];
    memset(name, 'n', sizeof name);
    name[199] = '\0';
    uint16_t code = lockstep_intern(r, name);
    CHECK_EQ(strlen(text_of(r, code)), 55);
    name[100] = 'x';
    CHECK_EQ(lockstep_intern(r, name), code);
    // 27 letters of 2 bytes are 54: half of the 28th does not stay.
    char greek[201] = "";
    for (int i = 0; i < 100; i++) {
        strcat(greek, "\xce\xbb");
    }
    code = lockstep_intern(r, greek);
    CHECK_EQ(strlen(text_of(r, code)), 54);
    memset(name, 0x80, 60); // no UTF-8 at all: never more than fits, nor endless
    CHECK(strlen(text_of(r, lockstep_intern(r, name))) <= 55);
    lockstep_ring_close(r);
}

static void names_end_when_full(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    unsigned given = 0, refused = 0;
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d", i);
        lockstep_intern(r, name) != 0 ? given++ : refused++;
    }
    CHECK(given > 150 && given < 256); // what fits 8 bits, but for those of NCCL
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STRINGS_FULL), refused);
    CHECK(lockstep_intern(r, "7") != 0); // those that are there stay
    lockstep_ring_close(r);
}

struct codes {
    struct lockstep_ring *ring;
    uint16_t code[150];
};

static void *intern_all(void *arg)
{
    struct codes *c = arg;
    for (int i = 0; i < 150; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %d", i);
        c->code[i] = lockstep_intern(c->ring, name);
    }
    return NULL;
}

static void threads_agree_on_codes(void)
{
    enum { THREADS = 4 };
    struct lockstep_ring *r = new_ring(2, 8, 1);
    static struct codes all[THREADS];
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        all[i].ring = r;
        CHECK(pthread_create(&t[i], NULL, intern_all, &all[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        CHECK(memcmp(all[i].code, all[0].code, sizeof all[0].code) == 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STRINGS_FULL), 0);
    lockstep_ring_close(r);
}

static void communicators_come_and_end(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    CHECK_EQ(atomic_load(&r->comms[0].state), LOCKSTEP_E_LIVE);
    uint16_t a = lockstep_comm_add(r, 0xabc, 8, 3, 2, 5, 1, "tensor parallel");
    uint16_t b = lockstep_comm_add(r, 0xdef, -1, -1, -1, 2, 0, NULL);
    CHECK_EQ(a, 1);
    CHECK_EQ(b, 2);
    const struct lockstep_comm *c = &r->comms[a];
    CHECK(c->hash == 0xabc && c->nranks == 8 && c->rank == 3 && c->nnodes == 2 && c->abi == 5 && c->gpu == 1);
    CHECK(strcmp(c->name, "tensor parallel") == 0);
    CHECK(c->created > 0 && c->created <= lockstep_now());
    CHECK(r->comms[b].name[0] == '\0' && r->comms[b].rank == LOCKSTEP_NONE);
    lockstep_comm_end(r, a);
    CHECK_EQ(atomic_load(&c->state), LOCKSTEP_E_ENDED);
    lockstep_comm_end(r, a);
    lockstep_comm_end(r, 0); // stands for all that found no room: it does not end
    lockstep_comm_end(r, 65535);
    CHECK_EQ(atomic_load(&r->comms[0].state), LOCKSTEP_E_LIVE);
    uint64_t n = 2;
    while (lockstep_comm_add(r, n, 1, 0, 1, 5, 0, "more") != 0) {
        n++;
    }
    CHECK_EQ(n, r->ncomms - 1);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_COMMS_FULL), 1);
    lockstep_ring_close(r);
}

static void gpus_are_known_by_uuid(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    uint8_t uuid[16] = {1};
    CHECK_EQ(lockstep_gpu_add(r, uuid, 0), 1);
    uuid[15] = 9;
    CHECK_EQ(lockstep_gpu_add(r, uuid, 1), 2);
    CHECK_EQ(lockstep_gpu_add(r, uuid, 7), 2);
    CHECK_EQ(r->gpus[2].device, 1);
    for (unsigned i = 0; i < r->ngpus; i++) {
        uuid[3] = (uint8_t)(i + 1);
        lockstep_gpu_add(r, uuid, 0);
    }
    uuid[3] = 255;
    uint64_t before = drops_of(r, LOCKSTEP_D_COMMS_FULL);
    CHECK_EQ(lockstep_gpu_add(r, uuid, 0), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_COMMS_FULL), before + 1);
    lockstep_ring_close(r);
}

static void frontiers_are_found_again(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    struct lockstep_frontier *a = lockstep_frontier_of(r, 0, 0), *b = lockstep_frontier_of(r, 3, 200);
    CHECK(a != NULL && b != NULL && a != b);
    CHECK(lockstep_frontier_of(r, 0, 0) == a);
    CHECK(lockstep_frontier_of(r, 3, 200) == b);
    CHECK_EQ(atomic_load(&a->key), 1);
    CHECK_EQ(atomic_load(&b->key), 1 | 3ull << 16 | 200ull << 32);
    unsigned missed = 0;
    for (unsigned comm = 10; comm < 500; comm++) {
        for (unsigned func = 1; func <= 8; func++) {
            struct lockstep_frontier *f = lockstep_frontier_of(r, (uint16_t)comm, (uint8_t)func);
            missed += f == NULL;
            CHECK(f == NULL || lockstep_frontier_of(r, (uint16_t)comm, (uint8_t)func) == f);
        }
    }
    // 3920 were asked for and 2048 places exist.
    CHECK(missed >= 3920 - 2048 && missed < 3920 - 1024);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_FRONTIERS_FULL), missed);
    lockstep_ring_close(r);
}

static void frontiers_only_rise(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    struct lockstep_frontier *f = lockstep_frontier_of(r, 1, 1);
    lockstep_frontier_raise(&f->completed, &f->completed_at, 0, 100);
    CHECK_EQ(atomic_load(&f->completed), 1);
    lockstep_frontier_raise(&f->completed, &f->completed_at, 5, 200);
    lockstep_frontier_raise(&f->completed, &f->completed_at, 3, 300);
    CHECK_EQ(atomic_load(&f->completed), 6);
    CHECK_EQ(atomic_load(&f->completed_at), 200);
    lockstep_frontier_raise(&f->completed, &f->completed_at, 5, 400);
    CHECK_EQ(atomic_load(&f->completed_at), 200);
    lockstep_ring_close(r);
}

static void *raise_many(void *arg)
{
    struct lockstep_frontier *f = arg;
    uint64_t before = 0;
    for (uint64_t i = 0; i < 50000; i++) {
        lockstep_frontier_raise(&f->started, &f->started_at, i, i);
        uint64_t now = atomic_load(&f->started);
        CHECK(now >= i + 1 && now >= before);
        before = now;
    }
    return NULL;
}

static void frontiers_rise_under_contention(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 1);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&t[i], NULL, raise_many, lockstep_frontier_of(r, 1, 1)) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    CHECK_EQ(atomic_load(&lockstep_frontier_of(r, 1, 1)->started), 50000);
    lockstep_ring_close(r);
}

static const struct test_case cases[] = {
    {"names_have_one_code", names_have_one_code},
    {"names_of_nccl_fit_a_byte", names_of_nccl_fit_a_byte},
    {"long_names_are_cut", long_names_are_cut},
    {"names_end_when_full", names_end_when_full},
    {"threads_agree_on_codes", threads_agree_on_codes},
    {"communicators_come_and_end", communicators_come_and_end},
    {"gpus_are_known_by_uuid", gpus_are_known_by_uuid},
    {"frontiers_are_found_again", frontiers_are_found_again},
    {"frontiers_only_rise", frontiers_only_rise},
    {"frontiers_rise_under_contention", frontiers_rise_under_contention},
};

TEST_MAIN(cases)
