// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Records of every layout, their launches, names and devices, and those that cannot
// be.
#include "client.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void check_place(const uint64_t *w, unsigned flags)
{
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_KERNEL, LOCKSTEP_LEVEL_COLLECTIVES, flags, 0, 0, 0));
    CHECK_EQ(w[6], 7 | 3ull << 32 | 1ull << 48); // stream, device, context
}

static void one_layout(unsigned layout)
{
    load_mock("libcupti.so.13");
    MOCK(mock_cupti_layout)(layout);
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    CHECK_EQ(atomic_load(&r->header->witnesses) & LOCKSTEP_W_CUPTI, 0); // nothing delivered yet

    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    MOCK(mock_cupti_copy)(1ull << 33, now + 30, now + 40, 7, 3, 12);
    MOCK(mock_cupti_launch)(11, now, now + 5, 4711);
    MOCK(mock_cupti_set)(64, now + 50, now + 60, 7, 3, 11);
    MOCK(mock_cupti_kernel)("_ZN2at6native3addIfEEvi", now + 10, now + 20, 7, 3, 11); // the last in the buffer
    hand_over();

    uint64_t got[4][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 4), 3);
    check_place(got[0], LOCKSTEP_K_COPY);
    CHECK_EQ(got[0][10], 1ull << 33);
    CHECK_EQ(got[0][7], 12);
    check_place(got[1], LOCKSTEP_K_SET | LOCKSTEP_K_LAUNCH);
    CHECK_EQ(got[1][2], now + 50);
    CHECK_EQ(got[1][10], 64);

    const uint64_t *k = got[2];
    check_place(k, LOCKSTEP_K_LAUNCH);
    CHECK_EQ(k[2], now + 10);
    CHECK_EQ(k[3], now + 20);
    CHECK_EQ(k[4], now);
    CHECK_EQ(k[5] >> 32, 4711);
    CHECK(strcmp(text_of(r, (uint32_t)k[5]), "at::native::add") == 0);
    CHECK_EQ(k[7], 11);                                            // and no graph
    CHECK_EQ(k[8], 1024 | 2ull << 32 | 3ull << 48);                // grid
    CHECK_EQ(k[9], 256 | 4ull << 16 | 1ull << 32 | 40ull << 48);   // block, registers
    CHECK_EQ(k[10], 0);
    CHECK_EQ((uint32_t)k[11], 1024);                               // shared memory, static and dynamic
    CHECK_EQ(atomic_load(&r->header->witnesses) & LOCKSTEP_W_CUPTI, LOCKSTEP_W_CUPTI);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_LAUNCH), 1); // the copy's
}

static void layout_4(void) { one_layout(4); }
static void layout_5(void) { one_layout(5); }
static void layout_6(void) { one_layout(6); }
static void layout_7(void) { one_layout(7); }
static void layout_8(void) { one_layout(8); }
static void layout_9(void) { one_layout(9); }
static void layout_10(void) { one_layout(10); }
static void layout_11(void) { one_layout(11); }
static void layout_12(void) { one_layout(12); }
static void layout_13(void) { one_layout(13); }

static void versions_have_their_layouts(void)
{
    load_mock("libcupti.so.13");
    const struct {
        uint32_t version;
        size_t size; // of a kernel's record, as the headers have it
    } want[] = {{18, 200}, {22, 208}, {26, 208}, {28, 208}, {130000, 216}, {130500, 248}};
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++) {
        MOCK(mock_cupti_version)(want[i].version);
        CHECK_EQ(MOCK(mock_cupti_kernel_size)(0), want[i].size);
        run_kernels(3, 1 + i * 10);
        hand_over();
        CHECK_EQ(kernels_of(r), 3 * (i + 1));
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 0);
}

// A kernel record as bytes, of the newest layout, in order and near now.
static void plain_kernel(uint8_t *k, uint64_t start, uint64_t end, uint64_t name)
{
    uint32_t kind = CUPTI_KERNEL, correlation = 1;
    memset(k, 0, 248);
    memcpy(k, &kind, 4);
    memcpy(k + 16, &start, 8);
    memcpy(k + 24, &end, 8);
    memcpy(k + 92, &correlation, 4);
    memcpy(k + 104, &name, 8);
}

static void give(uint64_t start, uint64_t end, uint64_t name)
{
    uint8_t k[248];
    plain_kernel(k, start, end, name);
    MOCK(mock_cupti_record)(k, sizeof k);
}

static void what_cannot_be_is_counted(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000, name = (uint64_t)(uintptr_t) "_Z3addv";
    uint8_t *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 4096);
    run_kernels(2, 100);
    give(0, 0, name);                            // without times
    give(now, 0, name);                          // not ended
    give(now + 10, now, name);                   // ends before it starts
    give(now, now + 3600 * 1000000000ull, name); // in the future
    give(now - 2 * 86400 * 1000000000ull, now, name);
    give(UINT64_MAX - 10, UINT64_MAX, name);
    give(now, now + 5, 0);                          // no name: the kernel stands
    give(now, now + 5, 16);                         // nor there
    give(now, now + 5, (uint64_t)(uintptr_t)gone);
    give(now, now + 5, 0xdeadbeefdeadbeefull);
    uint8_t unknown[16] = {0xe8, 0x03, 0, 0, 16}; // kind 1000: passed over
    MOCK(mock_cupti_record)(unknown, sizeof unknown);
    run_kernels(3, 200);
    hand_over();
    CHECK_EQ(kernels_of(r), 2 + 4 + 3);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_TIME), 2);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 6 + 4);
}

// A module was unloaded, and its names with it.
static void a_name_may_go_away(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, "_Z3addv");
    give(now, now + 5, (uint64_t)(uintptr_t)page);
    hand_over();
    munmap(page, 4096);
    give(now, now + 5, (uint64_t)(uintptr_t)page);
    give(now, now + 5, (uint64_t)(uintptr_t)page);
    hand_over();
    uint64_t got[3][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 3), 3);
    CHECK(strcmp(text_of(r, (uint32_t)got[0][5]), "add") == 0);
    CHECK_EQ((uint32_t)got[1][5] | (uint32_t)got[2][5], 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 2);
}

// Of all that this process does from here on, those calls are refused.
static void refuse(uint32_t first, uint32_t second)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        SKIP("no filter of system calls can be set here");
    }
}

static void names_under_a_filter(uint32_t second, const char *want, uint64_t garbage)
{
    refuse(SYS_process_vm_readv, second);
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    MOCK(mock_cupti_kernel)("_ZN2at6native3addIfEEvi", now, now + 5, 7, 0, 1);
    give(now, now + 5, 16); // not there
    hand_over();
    uint64_t got[2][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 2), 2);
    CHECK(strcmp(text_of(r, (uint32_t)got[0][5]), want) == 0);
    CHECK_EQ((uint32_t)got[1][5], 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), garbage);
}

static void names_where_copies_are_refused(void) { names_under_a_filter(SYS_process_vm_readv, "at::native::add", 1); }
static void no_names_where_all_is_refused(void) { names_under_a_filter(SYS_pread64, "", 2); }

// Templates of templates: what matters stands in front.
static void a_long_name_is_cut(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    static char name[20000];
    memset(name, 'x', sizeof name - 1);
    memcpy(name, "_ZN7cutlass13device_kernelI", 27);
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    MOCK(mock_cupti_kernel)(name, now, now + 10, 7, 0, 1);
    hand_over();
    uint64_t got[1][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 1), 1);
    CHECK(strcmp(text_of(r, (uint32_t)got[0][5]), "cutlass::device_kernel") == 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 0);
}

// CUPTI says 21 of a record that is not complete, and goes no further.
static void the_rest_behind_an_incomplete_record_is_counted(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    run_kernels(5, 1);
    const uint32_t incomplete[2] = {1000, 3};
    MOCK(mock_cupti_record)(incomplete, sizeof incomplete);
    run_kernels(100, 10);
    hand_over();
    CHECK_EQ(kernels_of(r), 5);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 1);
    run_kernels(2, 200);
    hand_over();
    CHECK_EQ(kernels_of(r), 7);
}

static void the_oldest_layout_has_no_graph(void)
{
    load_mock("libcupti.so.13");
    MOCK(mock_cupti_layout)(4);
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    run_kernels(2, 1); // where a graph would stand in the first, the second has noise
    hand_over();
    uint64_t got[2][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 2), 2);
    CHECK_EQ(got[0][7], 1);
    CHECK_EQ(got[0][1] >> 16 & LOCKSTEP_K_GRAPH, 0);
}

static void shapes_are_saturated(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    uint8_t k[248];
    const int32_t grid[3] = {1 << 20, 70000, -1}, block[3] = {70000, 1 << 16, 65535};
    plain_kernel(k, now, now + 5, (uint64_t)(uintptr_t) "k");
    memcpy(k + 52, grid, sizeof grid);
    memcpy(k + 64, block, sizeof block);
    MOCK(mock_cupti_record)(k, sizeof k);
    hand_over();
    uint64_t got[1][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 1), 1);
    CHECK_EQ(got[0][8], 1ull << 20 | 65535ull << 32);
    CHECK_EQ(got[0][9], 0xffffffffffffull);
}

static void the_narrowest_reading_counts(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    const uint32_t ms = 300;
    MOCK(mock_cupti_fault)(MOCK_SLOW_CLOCK, ms);
    uint64_t now, got[64][LOCKSTEP_WORDS];
    CHECK_EQ(cupti_clock(r, &now), CUPTI_OK); // of five readings on this thread, one is quick
    size_t n = records_of(r, LOCKSTEP_CLOCK, got, 64);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        if (got[i][3] == now) {
            CHECK((uint32_t)got[i][5] < ms * 1000000);
            found = true;
        }
    }
    CHECK(found);
}

static void a_record_at_an_odd_place_is_left(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    MOCK(mock_cupti_fault)(MOCK_ODD, 4);
    run_kernels(1, 1);
    hand_over();
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 1);
    CHECK_EQ(kernels_of(r), 0);
}

// The loader is asked at the start only: never while a buffer is read.
static void a_driver_that_comes_later_is_not_asked(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK(dlopen(beside("libcuda.so.1"), RTLD_NOW) != NULL);
    CHECK_EQ(cupti_gpu_of(r, 3), 0);
    cupti_find_driver();
    CHECK_EQ(cupti_gpu_of(r, 3), 0); // nor a device twice
}

static void lost_records_are_counted(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    MOCK(mock_cupti_fault)(MOCK_LOSE, 7);
    run_kernels(2, 1);
    hand_over();
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_LOST), 7);
    run_kernels(2, 3);
    hand_over();
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_LOST), 7);
    CHECK_EQ(kernels_of(r), 4);
}

static void without_a_buffer_the_rest_goes_on(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint8_t *held[8];
    size_t size, most;
    for (int i = 0; i < 8; i++) {
        cupti_request(&held[i], &size, &most);
        CHECK(held[i] != NULL && size == CUPTI_BUFFER_SIZE && most == 0 && (uintptr_t)held[i] % 8 == 0);
    }
    run_kernels(1, 1);
    hand_over();
    CHECK_EQ(MOCK(mock_cupti_no_buffer)(), 2); // the launch and the kernel
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_BUFFER), 2);
    for (int i = 0; i < 8; i++) {
        cupti_complete(NULL, 0, held[i], CUPTI_BUFFER_SIZE, 0);
    }
    hand_over();
    run_kernels(5, 2);
    hand_over();
    CHECK_EQ(kernels_of(r), 5);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_LOST), 2);
}

// Buffers that are not ours are not looked into, nor one that comes twice.
static void strange_buffers_are_left_alone(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint8_t *buffer;
    size_t size, most;
    cupti_complete(NULL, 0, (uint8_t *)(uintptr_t)0x1000, 4096, 4096);
    cupti_complete(NULL, 0, NULL, 0, 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 2);
    cupti_request(&buffer, &size, &most);
    plain_kernel(buffer, MOCK(mock_cupti_now)() - 100, MOCK(mock_cupti_now)() - 50, (uint64_t)(uintptr_t) "k");
    cupti_complete(NULL, 0, buffer + 8, size, 248);
    cupti_complete(NULL, 0, buffer, size, size + 1);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 4);
    cupti_complete(NULL, 0, buffer, size, 248); // the second time
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 5);
    CHECK_EQ(kernels_of(r), 0);
}

static void a_walk_ends_whatever_cupti_says(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t garbage = 0;
    const struct {
        enum mock_cupti_fault fault;
        int32_t value;
    } faults[] = {{MOCK_ENDLESS, 1}, {MOCK_STRAY, -8}, {MOCK_STRAY, 1 << 30}, {MOCK_STRAY, 4}};
    for (size_t i = 0; i < 4; i++) {
        MOCK(mock_cupti_fault)(faults[i].fault, (uint32_t)faults[i].value);
        run_kernels(1, 1);
        hand_over();
        CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), ++garbage);
        MOCK(mock_cupti_fault)(faults[i].fault, 0);
    }
    run_kernels(2, 10);
    hand_over();
    CHECK_EQ(kernels_of(r), 2);
}

static void launches_are_found_wherever_they_stand(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    MOCK(mock_cupti_kernel)("_Z3addv", now + 10, now + 20, 1, 0, 5); // before its launch in the buffer
    MOCK(mock_cupti_launch)(5, now, now + 1, 77);
    MOCK(mock_cupti_kernel)("_Z3addv", now + 30, now + 40, 1, 0, 5); // a graph's second
    MOCK(mock_cupti_launch)(6, now + 50, now + 60, 77);
    MOCK(mock_cupti_kernel)("_Z3addv", now + 30, now + 40, 1, 0, 6);         // launched after it ran
    MOCK(mock_cupti_kernel)("_Z3addv", now + 30, now + 40, 1, 0, 5 + 65536); // shares an entry
    MOCK(mock_cupti_kernel)("_Z3addv", now + 30, now + 40, 1, 0, 0);
    hand_over();
    uint64_t got[8][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 8), 5);
    for (int i = 0; i < 5; i++) {
        bool found = i < 2;
        CHECK_EQ(got[i][1] >> 16 & 0xffff, found ? LOCKSTEP_K_LAUNCH : 0);
        CHECK_EQ(got[i][4], found ? now : 0);
        CHECK_EQ(got[i][5] >> 32, found ? 77 : 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_LAUNCH), 3);
}

static void the_outer_call_counts(void)
{
    struct cupti_launch l;
    cupti_launch_add(9, 200, 1); // the driver's, which ended first
    cupti_launch_add(9, 100, 1);
    cupti_launch_add(9, 300, 1);
    CHECK(cupti_launch_of(9, &l) && l.start == 100 && l.thread == 1);
    CHECK(!cupti_launch_of(8, &l) && !cupti_launch_of(0, &l));
}

static void no_launches(const char *mock, unsigned calls)
{
    struct lockstep_ring *r = start_with(mock);
    if (calls != 0) {
        CHECK_EQ(MOCK(mock_cupti_api_enabled)(CUPTI_RUNTIME) + MOCK(mock_cupti_api_enabled)(CUPTI_DRIVER), 0);
    }
    run_kernels(3, 1);
    hand_over();
    CHECK_EQ(kernels_of(r), 3);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_LAUNCH), 0); // none was asked for
}

static void launches_can_be_left_out(void)
{
    setenv("LOCKSTEP_CUPTI_LAUNCH", "0", 1);
    no_launches("libcupti.so.13", 1);
}

static void an_old_library_has_no_launches(void) { no_launches("libcupti.so.12", 0); }

static void kernels_of_nccl_are_marked(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    const char *const names[] = {
        "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        "_Z39ncclKernel_AllReduce_RING_LL_Sum_int8_tP11ncclDevComm",
        "_Z21ncclDevKernel_Generic",
        "_ZN2at6native3addIfEEvi",
        "ampere_sgemm_128x64_nn",
    };
    for (int i = 0; i < 5; i++) {
        MOCK(mock_cupti_kernel)(names[i], now, now + 5, 1, 0, 1);
    }
    hand_over();
    uint64_t got[5][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 5), 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ((got[i][1] >> 16 & LOCKSTEP_K_COMM) != 0, i < 3);
    }
    CHECK(strcmp(text_of(r, (uint32_t)got[0][5]), "ncclDevKernel_AllReduce_Sum_f32_RING_LL") == 0);
    CHECK(strcmp(text_of(r, (uint32_t)got[4][5]), "ampere_sgemm_128x64_nn") == 0);
}

static void a_reused_name_is_read_anew(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    static char name[] = "_Z3addv";
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    give(now, now + 5, (uint64_t)(uintptr_t)name);
    hand_over();
    memcpy(name, "_Z3subv", sizeof name);
    give(now, now + 5, (uint64_t)(uintptr_t)name);
    hand_over();
    uint64_t got[2][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 2), 2);
    CHECK(strcmp(text_of(r, (uint32_t)got[0][5]), "add") == 0);
    CHECK(strcmp(text_of(r, (uint32_t)got[1][5]), "sub") == 0);
}

static void devices_are_told_by_uuid(void)
{
    CHECK(dlopen(beside("libcuda.so.1"), RTLD_NOW) != NULL); // knows device 3
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    MOCK(mock_cupti_kernel)("k", now, now + 5, 1, 3, 1);
    MOCK(mock_cupti_kernel)("k", now, now + 5, 1, 2, 1);
    MOCK(mock_cupti_kernel)("k", now, now + 5, 1, 100000, 1);
    hand_over();
    uint64_t got[3][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 3), 3);
    uint64_t gpu = got[0][11] >> 32;
    CHECK(gpu != 0 && r->gpus[gpu].device == 3 && r->gpus[gpu].uuid[0] == 1 && r->gpus[gpu].uuid[15] == 16);
    CHECK_EQ(got[1][11] >> 32, 0);
    CHECK_EQ(got[2][11] >> 32, 0);
    CHECK_EQ(got[2][6] >> 32 & 0xffff, UINT16_MAX);
}

static void clocks_are_read_together(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    const int64_t hour = 3600 * 1000000000ll;
    MOCK(mock_cupti_clock)(hour); // a clock of another client's
    uint64_t raw = lockstep_now(), stamp = MOCK(mock_cupti_now)();
    run_kernels(1, 1);
    hand_over();
    uint64_t raw_after = lockstep_now(), stamp_after = MOCK(mock_cupti_now)();
    uint64_t got[16][LOCKSTEP_WORDS];
    size_t n = records_of(r, LOCKSTEP_CLOCK, got, 16), within = 0;
    for (size_t i = 0; i < n && i < 16; i++) {
        CHECK_EQ(got[i][1], lockstep_head(LOCKSTEP_CLOCK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0));
        CHECK_EQ(got[i][5] >> 32, 1);
        if (got[i][2] < raw) {
            continue; // at the beginning
        }
        CHECK(got[i][2] <= raw_after && got[i][3] >= stamp && got[i][3] <= stamp_after);
        CHECK(got[i][4] >= stamp - hour - 1000000000 && got[i][4] <= stamp_after - hour + 1000000000);
        within++;
    }
    CHECK(n > within && within >= 1);
    CHECK_EQ(kernels_of(r), 1);
}

static const struct test_case cases[] = {
    {"layout_4", layout_4},
    {"layout_5", layout_5},
    {"layout_6", layout_6},
    {"layout_7", layout_7},
    {"layout_8", layout_8},
    {"layout_9", layout_9},
    {"layout_10", layout_10},
    {"layout_11", layout_11},
    {"layout_12", layout_12},
    {"layout_13", layout_13},
    {"versions_have_their_layouts", versions_have_their_layouts},
    {"what_cannot_be_is_counted", what_cannot_be_is_counted},
    {"a_name_may_go_away", a_name_may_go_away},
    {"names_where_copies_are_refused", names_where_copies_are_refused},
    {"no_names_where_all_is_refused", no_names_where_all_is_refused},
    {"a_long_name_is_cut", a_long_name_is_cut},
    {"the_rest_behind_an_incomplete_record_is_counted", the_rest_behind_an_incomplete_record_is_counted},
    {"the_oldest_layout_has_no_graph", the_oldest_layout_has_no_graph},
    {"shapes_are_saturated", shapes_are_saturated},
    {"the_narrowest_reading_counts", the_narrowest_reading_counts},
    {"a_record_at_an_odd_place_is_left", a_record_at_an_odd_place_is_left},
    {"a_driver_that_comes_later_is_not_asked", a_driver_that_comes_later_is_not_asked},
    {"lost_records_are_counted", lost_records_are_counted},
    {"without_a_buffer_the_rest_goes_on", without_a_buffer_the_rest_goes_on},
    {"strange_buffers_are_left_alone", strange_buffers_are_left_alone},
    {"a_walk_ends_whatever_cupti_says", a_walk_ends_whatever_cupti_says},
    {"launches_are_found_wherever_they_stand", launches_are_found_wherever_they_stand},
    {"the_outer_call_counts", the_outer_call_counts},
    {"launches_can_be_left_out", launches_can_be_left_out},
    {"an_old_library_has_no_launches", an_old_library_has_no_launches},
    {"kernels_of_nccl_are_marked", kernels_of_nccl_are_marked},
    {"a_reused_name_is_read_anew", a_reused_name_is_read_anew},
    {"devices_are_told_by_uuid", devices_are_told_by_uuid},
    {"clocks_are_read_together", clocks_are_read_together},
};

TEST_MAIN(cases)
