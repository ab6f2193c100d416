// SPDX-License-Identifier: Apache-2.0

// What the tests of the client share: the stand-in beside the program, and the
// records that came to the ring.
#ifndef LOCKSTEP_CUPTI_TEST_H
#define LOCKSTEP_CUPTI_TEST_H

#include "cupti.h"
#include "lockstep.h"
#include "mock_cupti.h"
#include "test.h"

#include <dlfcn.h>
#include <dirent.h>
#include <libgen.h>

int InitializeInjection(void);

static void *mock_library;
static int64_t last_thread = 4711;

// Calls a function of the stand-in by its name.
#define MOCK(function) ((__typeof__(&(function)))mock_function(#function))

static inline void *mock_function(const char *name)
{
    void *f = dlsym(mock_library, name);
    if (f == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return f;
}

static inline const char *beside(const char *name)
{
    static char path[2][600];
    static int turn;
    char self[512] = "";
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    char *p = path[turn++ % 2];
    snprintf(p, sizeof path[0], "%s/%s", dirname(self), name);
    return p;
}

static inline void load_mock(const char *name)
{
    mock_library = dlopen(beside(name), RTLD_NOW | RTLD_GLOBAL);
    if (mock_library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
}

static inline struct lockstep_ring *ring_here(void)
{
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_LANES", "16", 1);
    setenv("LOCKSTEP_RING_RECORDS", "32768", 1);
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        fprintf(stderr, "%s\n", lockstep_ring_status());
        exit(1);
    }
    return r;
}

// A ring and a client on the stand-in, which is loaded as PyTorch would have it.
static inline struct lockstep_ring *start_with(const char *mock)
{
    load_mock(mock);
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    return r;
}

static inline uint64_t state_word(const struct lockstep_ring *r) { return atomic_load(&r->header->cupti); }

// Copies the records of a kind on all lanes, each lane's in their order.
static inline size_t records_of(const struct lockstep_ring *r, unsigned kind, uint64_t (*out)[LOCKSTEP_WORDS],
                                size_t most)
{
    size_t n = 0;
    for (uint64_t lane = 0; lane < r->nlanes; lane++) {
        uint64_t head = atomic_load(&r->lanes[lane].head);
        CHECK(head <= r->capacity);
        for (uint64_t i = 0; i < head; i++) {
            lockstep_word *w = r->records + (lane * r->capacity + i) * LOCKSTEP_WORDS;
            if ((atomic_load(&w[1]) & 0xff) != kind) {
                continue;
            }
            for (unsigned k = 0; out != NULL && n < most && k < LOCKSTEP_WORDS; k++) {
                out[n][k] = atomic_load(&w[k]);
            }
            n++;
        }
    }
    return n;
}

static inline size_t kernels_of(const struct lockstep_ring *r) { return records_of(r, LOCKSTEP_KERNEL, NULL, 0); }

static inline const char *text_of(const struct lockstep_ring *r, uint64_t code)
{
    return code < r->nstrings ? r->strings[code].text : "(no such string)";
}

// CUPTI hands over what it has, and it is in the ring.
static inline void hand_over(void)
{
    MOCK(mock_cupti_flush)();
    CHECK(cupti_wait_read(lockstep_now() + 60000000000ull));
}

// n kernels of the same name, from correlation `from` on, each of 1000 ns.
static inline void run_kernels(unsigned n, uint32_t from)
{
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    for (unsigned i = 0; i < n; i++) {
        MOCK(mock_cupti_launch)(from + i, now + i - 500, now + i - 400, (uint32_t)last_thread);
        MOCK(mock_cupti_kernel)("_Z3addv", now + i, now + i + 1000, 7, 0, from + i);
    }
}

// Another client: what a profiler of PyTorch's kind does, in its order.
struct other {
    void *subscriber;
    uint64_t kernels, calls, sum; // records that it got, and their correlations
};

static struct other other;
static uint8_t *other_buffers[64];
static _Atomic unsigned other_count;
static _Atomic bool other_takes_all; // it reads and frees what it did not ask for, too

static inline void other_request(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = malloc(1 << 16);
    *size = 1 << 16;
    *most = 0;
    unsigned i = atomic_fetch_add(&other_count, 1);
    CHECK(i < 64);
    other_buffers[i] = *buffer;
}

static inline void other_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size;
    bool own = atomic_load(&other_takes_all);
    for (unsigned i = 0; i < atomic_load(&other_count); i++) {
        own |= other_buffers[i] == buffer;
    }
    uint8_t *at = NULL;
    cupti_result (*next)(uint8_t *, size_t, uint8_t **) =
        (cupti_result(*)(uint8_t *, size_t, uint8_t **))mock_function("cuptiActivityGetNextRecord");
    while (own && next(buffer, valid, &at) == CUPTI_OK) {
        uint32_t kind, correlation;
        memcpy(&kind, at, 4);
        memcpy(&correlation, at + (kind == CUPTI_KERNEL ? 92 : 32), 4);
        other.kernels += kind == CUPTI_KERNEL;
        other.calls += kind == CUPTI_RUNTIME;
        other.sum += kind == CUPTI_KERNEL ? correlation : 0;
    }
    if (own) {
        free(buffer);
    }
}

#define CALL(name, ...) (((cupti_result(*)())mock_function(name))(__VA_ARGS__))

static inline void other_begins(void)
{
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    CHECK_EQ(CALL("cuptiActivityRegisterCallbacks", other_request, other_complete), 0);
    CHECK_EQ(CALL("cuptiActivityEnable", CUPTI_RUNTIME), 0);
    CHECK_EQ(CALL("cuptiActivityEnable", CUPTI_KERNEL), 0);
}

static inline void other_ends(void)
{
    CHECK_EQ(CALL("cuptiActivityDisable", CUPTI_KERNEL), 0);
    CHECK_EQ(CALL("cuptiActivityDisable", CUPTI_RUNTIME), 0);
    CHECK_EQ(CALL("cuptiActivityFlushAll", 1u), 0);
    CHECK_EQ(CALL("cuptiUnsubscribe", other.subscriber), 0);
}

#endif
