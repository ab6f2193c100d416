// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Buffers of noise and of records with noise in them: nothing crashes, every buffer
// comes back, and what reaches the ring could have been.
#include "client.h"

#include <sys/mman.h>

#define BUFFERS 10000
#define VALID 2048u

static uint64_t seed = 1;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uint64_t now;
static uint64_t gone; // a page that was unmapped

// A time: often near now, else anything.
static uint64_t some_time(void)
{
    uint64_t x = next_random();
    return x % 8 == 0 ? next_random() : x % 8 == 1 ? 0 : now - x % 2000000000u;
}

static uint64_t some_name(void)
{
    static const char *const names[] = {"_ZN2at6native3addIfEEvi", "_ZN", "_ZNIIIIIIII", "_Z99999999x", "k", "",
                                        "_ZN3fooILi3EE3barIS0_JLb1EEEEvT_", "_ZNSt6vectorIiSaIiEEC1Ev"};
    switch (next_random() % 6) {
    case 0:
        return 0;
    case 1:
        return next_random();
    case 2:
        return gone + next_random() % 4096;
    default:
        return (uint64_t)(uintptr_t)names[next_random() % 8];
    }
}

static void fill(uint8_t *buffer)
{
    for (size_t at = 0; at < VALID; at += 8) {
        uint64_t x = next_random();
        memcpy(buffer + at, &x, 8);
    }
    size_t at = 0;
    while (next_random() % 16 != 0 && at + 256 <= VALID) {
        static const uint32_t kinds[] = {CUPTI_KERNEL, CUPTI_COPY, CUPTI_SET, CUPTI_RUNTIME, CUPTI_DRIVER};
        uint32_t kind = kinds[next_random() % 5];
        uint64_t start = some_time(), end = next_random() % 4 == 0 ? some_time() : start + next_random() % 1000000;
        bool call = kind == CUPTI_RUNTIME || kind == CUPTI_DRIVER;
        memcpy(buffer + at, &kind, 4);
        memcpy(buffer + at + (call ? 8 : 16), &start, 8);
        memcpy(buffer + at + (call ? 16 : 24), &end, 8);
        if (kind == CUPTI_KERNEL) {
            uint64_t name = some_name();
            memcpy(buffer + at + 104, &name, 8);
        }
        at += kind == CUPTI_KERNEL ? 248 : kind == CUPTI_COPY ? 112 : kind == CUPTI_SET ? 104 : 40;
    }
}

static void noise(void)
{
    setenv("LOCKSTEP_RING_RECORDS", "262144", 1);
    load_mock("libcupti.so.13");
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_LANES", "2", 1);
    struct lockstep_ring *r = lockstep_ring_process();
    CHECK(r != NULL && InitializeInjection() == 1);
    uint8_t *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page, 4096);
    gone = (uint64_t)(uintptr_t)page;
    now = MOCK(mock_cupti_now)();
    for (int i = 0; i < BUFFERS; i++) {
        uint8_t *buffer;
        size_t size, most;
        cupti_request(&buffer, &size, &most);
        CHECK(buffer != NULL);
        fill(buffer);
        if (i % 64 == 0) { // and then CUPTI itself
            MOCK(mock_cupti_fault)(MOCK_STRAY, (uint32_t)next_random());
        }
        cupti_complete(NULL, 0, buffer, size, next_random() % 4 == 0 ? (size_t)next_random() % VALID : VALID);
        CHECK(cupti_wait_read(lockstep_now() + 60000000000ull));
        MOCK(mock_cupti_fault)(MOCK_STRAY, 0);
    }
    static uint64_t got[1 << 18][LOCKSTEP_WORDS];
    size_t n = records_of(r, LOCKSTEP_KERNEL, got, 1 << 18);
    CHECK(n > BUFFERS && n < 1 << 18);
    for (size_t i = 0; i < n; i++) {
        CHECK(got[i][2] != 0 && got[i][2] <= got[i][3] && got[i][3] < now + 600 * 1000000000ull);
        CHECK((uint32_t)got[i][5] < r->nstrings);
        CHECK((got[i][1] >> 16 & LOCKSTEP_K_LAUNCH) == 0 || got[i][4] <= got[i][2]);
    }
    CHECK(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE) > BUFFERS / 10);
    CHECK(drops_of(r, LOCKSTEP_D_CUPTI_NO_TIME) > 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_BUFFER), 0);
}

static void names_of_noise(void)
{
    static const char letters[] = "_ZNIEJXLFS0123456789abtrKVRO{UlDpcl";
    for (int i = 0; i < 200000; i++) {
        char name[64], out[40];
        size_t n = next_random() % sizeof name;
        for (size_t k = 0; k < n; k++) {
            name[k] = letters[next_random() % (sizeof letters - 1)];
        }
        if (n > 3) {
            memcpy(name, "_ZN", 3);
        }
        char *exact = malloc(n + 1); // so that a byte too far is seen
        memcpy(exact, name, n);
        size_t length = cupti_demangle(exact, n, out, sizeof out);
        CHECK(length < sizeof out && out[length] == '\0');
        free(exact);
    }
}

// Expected by the grammar of the Itanium ABI.
static void names(void)
{
    const struct {
        const char *mangled, *want;
    } all[] = {
        {"_Z3addv", "add"},
        {"_ZL3addPfi", "add"},
        {"_ZN2at6native3addEv", "at::native::add"},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15FillFunctorImplIfEESt5arrayIPcLm1EEEEviT0_T1_",
         "at::native::vectorized_elementwise_kernel"},
        {"_ZN2at6native12_GLOBAL__N_120softmax_warp_forwardIffEEvv", "at::native::softmax_warp_forward"},
        {"_ZN7cutlass7Kernel2I60cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4_with_nameEEvNT_6ParamsE",
         "cutlass::Kernel2"},
        {"_ZN3fooIiE3barIfEEvv", "foo::bar"},
        {"_ZNSt6vector3runEv", "std::vector::run"},
        {"_ZNK3fooclEv", "foo::operator()"},
        {"_ZZN3foo3runEvENKUlvE_clEv", "foo::run"},
        {"_ZN3fooILb1ELin3EL_Z3barvEE3bazEv", "foo::baz"},
        {"_ZN3fooIJLi1ELi2EEXsr3bar5valueEE3quxEv", "foo::qux"},
        {"_ZN3fooB5cxx113runEv", "foo::run"},
        {"ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"},
        {"void at::native::add<float>(int)", "at::native::add"},
        {"_Z", "_Z"},
        {"_ZN99x", "_ZN99x"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char out[256];
        size_t n = cupti_demangle(all[i].mangled, strlen(all[i].mangled), out, sizeof out);
        if (strcmp(out, all[i].want) != 0 || n != strlen(out)) {
            fprintf(stderr, "%s: got %s; want %s\n", all[i].mangled, out, all[i].want);
            exit(1);
        }
    }
}

static const struct test_case cases[] = {
    {"noise", noise},
    {"names_of_noise", names_of_noise},
    {"names", names},
};

TEST_MAIN(cases)
