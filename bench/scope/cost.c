// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// cost measures what a pair of begin and end costs the thread that makes it. The
// functions are found with dlsym in the shared library, so that calls and
// thread-local data cost what they cost a program. Every pair is timed by itself
// with the processor's time-stamp counter, whose own cost is part of every number;
// nothing is subtracted. Both clock readings of a pair are part of it, too, and are
// shown apart.
#include "ring.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#ifdef HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "scope/nvtx.h"
#endif

#define BUCKETS 100000u // of one time-stamp count each; the last holds the rest
#define PAUSE_US 300000u // after which the rate allows an eighth of a lane's records again
#define BATCH 1000u     // pairs whose mean is taken, below the counter's steps
#define WANTED_NS 200.0

static uint64_t (*begin_scope)(const char *, int);
static void (*end_scope)(uint64_t);
static uint32_t (*name_scope)(const char *);
static void (*push_scope)(uint32_t);
static void (*pop_scope)(uint32_t);
static uint32_t name;
static double ns_per_count;
static uint64_t burst; // pairs in a row that the rate of the lane allows

static void *symbol(void *library, const char *what)
{
    void *p = dlsym(library, what);
    if (p == NULL) {
        fprintf(stderr, "cost: %s\n", dlerror());
        exit(1);
    }
    return p;
}

static void pair_of_clocks(void)
{
    uint64_t a = lockstep_now(), b = lockstep_now();
    __asm__ volatile("" ::"r"(a), "r"(b));
}

static void pair_by_handle(void) { end_scope(begin_scope("forward", 3)); }

static void pair_by_name(void)
{
    push_scope(name);
    pop_scope(name);
}

#ifdef HAVE_NVTX
#define NVTX_THROUGH "through its header"

static nvtxEventAttributes_t registered;
static nvtxDomainHandle_t domain;

static void prepare_nvtx(void)
{
    domain = nvtxDomainCreateA("library");
    registered.version = NVTX_VERSION;
    registered.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    registered.message.registered = nvtxDomainRegisterStringA(domain, "registered name");
}

static void pair_of_nvtx(void)
{
    nvtxRangePushA("ncclAllReduce");
    nvtxRangePop();
}

static void pair_of_nvtx_registered(void)
{
    nvtxDomainRangePushEx(domain, &registered);
    nvtxDomainRangePop(domain);
}
#else
#define NVTX_THROUGH "through a client of ours: no header"

static nvtx_function core[17], core2[17];
static nvtx_function *core_places[17], *core2_places[17];
static struct nvtx_event registered = {.version = 3, .size = sizeof registered, .message_type = NVTX_MESSAGE_REGISTERED};
static uint64_t domain;

static int module_of(uint32_t module, nvtx_function ***places, unsigned *count)
{
    *places = module == NVTX_MODULE_CORE ? core_places : core2_places;
    *count = 16;
    return module == NVTX_MODULE_CORE || module == NVTX_MODULE_CORE2;
}

static const struct nvtx_callbacks callbacks = {sizeof callbacks, module_of};
static const void *export_table(uint32_t id) { return id == NVTX_TABLE_CALLBACKS ? &callbacks : NULL; }

static void prepare_nvtx(void)
{
    for (int i = 1; i < 16; i++) {
        core_places[i] = &core[i];
        core2_places[i] = &core2[i];
    }
    void *library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    int (*inject)(nvtx_get_export_table) = (int (*)(nvtx_get_export_table))symbol(library, "InitializeInjectionNvtx2");
    if (inject(export_table) == 0) {
        fprintf(stderr, "cost: NVTX was refused\n");
        exit(1);
    }
    domain = ((uint64_t(*)(const char *))core2[NVTX_DOMAIN_CREATE_A])("library");
    registered.message.registered =
        ((uint64_t(*)(uint64_t, const char *))core2[NVTX_DOMAIN_REGISTER_STRING_A])(domain, "registered name");
}

static void pair_of_nvtx(void)
{
    ((int (*)(const char *))core[NVTX_RANGE_PUSH_A])("ncclAllReduce");
    ((int (*)(void))core[NVTX_RANGE_POP])();
}

static void pair_of_nvtx_registered(void)
{
    ((int (*)(uint64_t, const struct nvtx_event *))core2[NVTX_DOMAIN_RANGE_PUSH_EX])(domain, &registered);
    ((int (*)(uint64_t))core2[NVTX_DOMAIN_RANGE_POP])(domain);
}
#endif

static void calibrate(void)
{
    uint64_t t = lockstep_now(), c = __rdtsc();
    usleep(200000);
    ns_per_count = (double)(lockstep_now() - t) / (double)(__rdtsc() - c);
}

static void pin_to_one(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static double percentile(const uint32_t *bucket, uint64_t pairs, double share)
{
    uint64_t seen = 0, want = (uint64_t)((double)pairs * share);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += bucket[i];
        if (seen > want) {
            return i * ns_per_count;
        }
    }
    return BUCKETS * ns_per_count;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_batch(uint64_t *sum, uint64_t n)
{
    qsort(sum, n, sizeof *sum, by_size);
    return (double)sum[n / 2] * ns_per_count / BATCH;
}

static double measure(const char *what, void (*pair)(void), uint64_t pairs, bool rated)
{
    static uint32_t bucket[BUCKETS];
    uint64_t *batch = calloc(pairs / BATCH + 1, sizeof *batch), sum = 0;
    if (batch == NULL) {
        exit(1);
    }
    memset(bucket, 0, sizeof bucket);
    unsigned aux;
    for (uint64_t i = 0; i < pairs; i++) {
        if (rated && i % burst == 0) {
            usleep(PAUSE_US);
        }
        uint64_t begin = __rdtscp(&aux);
        pair();
        uint64_t took = __rdtscp(&aux) - begin;
        sum += took;
        batch[i / BATCH] += took;
        bucket[took < BUCKETS ? took : BUCKETS - 1]++;
    }
    double p50 = percentile(bucket, pairs, 0.5);
    printf("%-44s %9llu %8.0f %8.1f %8.0f %8.0f\n", what, (unsigned long long)pairs,
           (double)sum * ns_per_count / (double)pairs, median_batch(batch, pairs / BATCH), p50,
           percentile(bucket, pairs, 0.99));
    free(batch);
    return p50;
}

// Pairs that were left out would be cheap ones.
static uint64_t left_out(void)
{
    char pattern[600];
    glob_t g;
    struct lockstep_header h = {0};
    snprintf(pattern, sizeof pattern, "%.500s/*.ring", getenv("LOCKSTEP_DIR"));
    int fd = glob(pattern, 0, NULL, &g) == 0 ? open(g.gl_pathv[0], O_RDONLY) : -1;
    if (fd < 0 || read(fd, &h, sizeof h) != sizeof h) {
        perror(pattern);
        exit(1);
    }
    close(fd);
    globfree(&g);
    return h.drops[LOCKSTEP_D_SCOPES_RATE] + h.drops[LOCKSTEP_D_SLOTS_FULL];
}

static double larger(double a, double b) { return a > b ? a : b; }

int main(int argc, char **argv)
{
    uint64_t pairs = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    burst = argc > 3 ? strtoull(argv[3], NULL, 10) / 8 : 0;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    if (library == NULL || pairs == 0 || burst == 0) {
        fprintf(stderr, "usage: cost LIBRARY PAIRS RECORDS_OF_A_LANE: %s\n", argc > 1 && library == NULL ? dlerror() : "");
        return 1;
    }
    begin_scope = (uint64_t(*)(const char *, int))symbol(library, "lockstep_scope_begin");
    end_scope = (void (*)(uint64_t))symbol(library, "lockstep_scope_end");
    name_scope = (uint32_t(*)(const char *))symbol(library, "lockstep_scope_name");
    push_scope = (void (*)(uint32_t))symbol(library, "lockstep_scope_push");
    pop_scope = (void (*)(uint32_t))symbol(library, "lockstep_scope_pop");
    const char *(*status)(void) = (const char *(*)(void))symbol(library, "lockstep_status");
    pin_to_one();
    calibrate();
    name = name_scope("forward");
    if (name == 0) {
        fprintf(stderr, "cost: %s\n", status());
        return 1;
    }
    prepare_nvtx();
    printf("A lane of %s records.\n", argv[3]);
    printf("%-44s %9s %8s %8s %8s %8s\n", "one pair of begin and end, ns", "pairs", "mean", "batch", "p50", "p99");
    measure("two readings of the clock, nothing else", pair_of_clocks, pairs, false);
    double worst = measure("scope_begin, scope_end", pair_by_handle, pairs, true);
    worst = larger(worst, measure("scope_push, scope_pop", pair_by_name, pairs, true));
    printf("NVTX, %s:\n", NVTX_THROUGH);
    worst = larger(worst, measure("nvtxRangePushA, nvtxRangePop", pair_of_nvtx, pairs, true));
    worst = larger(worst, measure("nvtxDomainRangePushEx, registered, and Pop", pair_of_nvtx_registered, pairs, true));
    if (left_out() != 0) {
        fprintf(stderr, "cost: %llu scopes were left out, and are no measure\n", (unsigned long long)left_out());
        return 1;
    }
    printf("batch: the median of the means of %u pairs\n", BATCH);
    bool met = worst <= WANTED_NS;
    printf("largest p50: %.0f ns (want at most %.0f): %s\n", worst, WANTED_NS, met ? "met" : "not met");
    return met ? 0 : 1;
}
