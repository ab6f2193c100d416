// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// How the client comes and goes: other clients before and after it, refusals, pauses,
// forks, exits.
#include "client.h"

#include <sys/mman.h>

static uint64_t state(unsigned what, uint32_t result) { return lockstep_pair(what, result); }

// The Makefile has every call of pthread_create come here.
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
static void (*at_next_thread)(void); // called once
static bool no_threads;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    void (*call)(void) = at_next_thread;
    at_next_thread = NULL;
    if (call != NULL) {
        call();
    }
    return no_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

static void wait_for_state(const struct lockstep_ring *r, uint64_t want)
{
    for (int i = 0; i < 30000 && state_word(r) != want; i++) {
        usleep(1000);
    }
    CHECK_EQ(state_word(r), want);
}

static void it_holds_no_subscription(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    CHECK_EQ(MOCK(mock_cupti_subscribers)(), 0);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiSubscribe"), 1);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiUnsubscribe"), 1);
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL) + MOCK(mock_cupti_enabled)(CUPTI_COPY) +
                 MOCK(mock_cupti_enabled)(CUPTI_SET),
             3);
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_RUNTIME) + MOCK(mock_cupti_enabled)(CUPTI_DRIVER), 0); // all calls: too many
    CHECK(MOCK(mock_cupti_api_enabled)(CUPTI_RUNTIME) > 10 && MOCK(mock_cupti_api_enabled)(CUPTI_DRIVER) > 10);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityRegisterCallbacks"), 1);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityEnableHWTrace"), 0);
}

static void hardware_stamps_are_asked_for(void)
{
    setenv("LOCKSTEP_CUPTI_HES", "1", 1);
    start_with("libcupti.so.13");
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityEnableHWTrace"), 1);
}

// What the other client gets where we never were.
static struct other without_us(void)
{
    static struct other *shared;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        load_mock("libcupti.so.13");
        other_begins();
        run_kernels(1000, 1);
        other_ends();
        *shared = other;
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_EQ(shared->kernels, 1000);
    CHECK_EQ(shared->calls, 1000);
    return *shared;
}

static void check_as_without_us(const struct other *want)
{
    CHECK_EQ(other.kernels, want->kernels);
    CHECK_EQ(other.calls, want->calls);
    CHECK_EQ(other.sum, want->sum);
}

static void one_before_us_is_left_alone(void)
{
    struct other want = without_us();
    load_mock("libcupti.so.13");
    other_begins();
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_YIELDED, 39));
    run_kernels(1000, 1);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), 39);
    cupti_tick(r);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityFlushAll"), 0);
    other_ends();
    check_as_without_us(&want);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityRegisterCallbacks"), 1);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityEnable"), 2);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityDisable"), 2);
    CHECK_EQ(kernels_of(r), 0);
    CHECK_EQ(lockstep_cupti_resume(), 0); // now there is room
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    run_kernels(5, 1);
    hand_over();
    CHECK_EQ(kernels_of(r), 5);
}

// It tells us, as the Python package does around torch.profiler.
static void one_that_tells_us(void)
{
    struct other want = without_us();
    struct lockstep_ring *r = start_with("libcupti.so.13");
    run_kernels(10, 5000);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
    CHECK_EQ(kernels_of(r), 10); // what was under way is handed on
    CHECK_EQ(atomic_load(&r->header->witnesses) & LOCKSTEP_W_CUPTI, 0);
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL) + MOCK(mock_cupti_enabled)(CUPTI_COPY), 0);
    CHECK_EQ(MOCK(mock_cupti_api_enabled)(CUPTI_RUNTIME) + MOCK(mock_cupti_api_enabled)(CUPTI_DRIVER), 0);
    other_begins();
    run_kernels(1000, 1);
    other_ends();
    check_as_without_us(&want);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    run_kernels(20, 6000);
    hand_over();
    CHECK_EQ(kernels_of(r), 30);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE) + drops_of(r, LOCKSTEP_D_CUPTI_LOST), 0);
}

static void other_goes_on(void)
{
    CHECK_EQ(CALL("cuptiActivityRegisterCallbacks", other_request, other_complete), 0);
    CHECK_EQ(CALL("cuptiActivityEnable", CUPTI_RUNTIME), 0);
    CHECK_EQ(CALL("cuptiActivityEnable", CUPTI_KERNEL), 0);
}

static void other_rests(void)
{
    CHECK_EQ(CALL("cuptiActivityDisable", CUPTI_KERNEL), 0);
    CHECK_EQ(CALL("cuptiActivityDisable", CUPTI_RUNTIME), 0);
    CHECK_EQ(CALL("cuptiActivityFlushAll", 1u), 0);
}

// As PyTorch's profiler does: it subscribes at its first use, and for good.
static void one_that_keeps_its_subscription(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    for (unsigned round = 1; round <= 3; round++) {
        other_goes_on();
        run_kernels(100, 1);
        other_rests();
        CHECK_EQ(other.kernels, 100 * round);
        CHECK_EQ(lockstep_cupti_resume(), 0);
        CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
        run_kernels(20, 6000);
        CHECK_EQ(lockstep_cupti_pause(), 0);
        CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
        CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL), 0);
        CHECK_EQ(kernels_of(r), 20 * round);
    }
    CHECK_EQ(MOCK(mock_cupti_subscribers)(), 1);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    uint32_t before = MOCK(mock_cupti_forced)();
    CHECK_EQ(cupti_ask(CUPTI_LEAVE, lockstep_now() + 60000000000ull), 0);
    CHECK_EQ(MOCK(mock_cupti_forced)(), before + 1);
}

static uint64_t ticks(void) { return 2 * lockstep_now(); }

// A profiler that begins before the program uses CUDA pauses us before we are there. Its
// clock shows that it had the subscription.
static void a_pause_before_the_start(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    CHECK_EQ(CALL("cuptiActivityRegisterTimestampCallback", ticks), 0);
    other_goes_on();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
    run_kernels(100, 1);
    other_rests();
    CHECK_EQ(other.kernels, 100);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    run_kernels(20, 6000);
    hand_over();
    CHECK_EQ(kernels_of(r), 20);
}

static void a_pause_taken_back_before_the_start(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

// A tool that has the subscription from the start, as Nsight may: the program's pause was
// for another profiler.
static void an_early_pause_displaces_no_other_tool(void)
{
    load_mock("libcupti.so.13");
    other_begins();
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
    CHECK_EQ(lockstep_cupti_resume(), 39);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_YIELDED, 39));
    CHECK_EQ(CALL("cuptiActivityRegisterTimestampCallback", ticks), 0);
    CHECK_EQ(lockstep_cupti_resume(), 39); // that clock came after the pause
    run_kernels(100, 1);
    other_ends();
    CHECK_EQ(other.kernels, 100);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

// A profiler within another, or two parts of a program that both pause.
static void only_the_last_resume_begins(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    other_goes_on();
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
    run_kernels(100, 1);
    other_rests();
    CHECK_EQ(other.kernels, 100);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    CHECK_EQ(lockstep_cupti_resume(), 0); // without a pause: no change, and none to come
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    run_kernels(20, 6000);
    hand_over();
    CHECK_EQ(kernels_of(r), 20);
}

static void *pause_and_resume(void *ring)
{
    for (int i = 0; i < 25; i++) {
        bool in_time = lockstep_cupti_pause() == 0;
        CHECK(!in_time || state_word(ring) == LOCKSTEP_CUPTI_PAUSED);
        lockstep_cupti_resume();
    }
    return NULL;
}

static void pauses_of_many_threads(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, pause_and_resume, r) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    wait_for_state(r, LOCKSTEP_CUPTI_ACTIVE);
}

// A resume that comes too early is taken at its word: the other loses what comes after,
// and as it ends it disables our kinds, too. No attribute is set while its kinds are on.
static void a_resume_while_the_other_records(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    other_goes_on();
    run_kernels(100, 1);
    MOCK(mock_cupti_flush)();
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    CHECK_EQ(MOCK(mock_cupti_buffers_apart)(), 1);
    run_kernels(20, 6000);
    hand_over();
    CHECK_EQ(other.kernels, 100);
    CHECK_EQ(kernels_of(r), 20);
    other_rests();
    run_kernels(20, 7000);
    hand_over();
    CHECK_EQ(kernels_of(r), 20);
    CHECK_EQ(lockstep_cupti_pause(), 0); // and the next pause and resume repair it
    CHECK_EQ(lockstep_cupti_resume(), 0);
    run_kernels(20, 8000);
    hand_over();
    CHECK_EQ(kernels_of(r), 40);
}

// An earlier pause proves nothing about a client that comes after its resume.
static void a_pause_that_yields_displaces_nothing(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    other_begins();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_YIELDED, 39));
    CHECK_EQ(lockstep_cupti_resume(), 39);
    run_kernels(10, 1);
    other_ends();
    CHECK_EQ(other.kernels, 10);
}

// Ours is off as the program pauses it for a profiler that keeps its subscription.
static void a_pause_while_yielded_asks_for_others(void)
{
    load_mock("libcupti.so.13");
    other_begins();
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_YIELDED, 39));
    other_ends();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    other_goes_on();
    other_rests();
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

static void pause_here(void) { CHECK_EQ(lockstep_cupti_pause(), -1); }
static void resume_here(void) { CHECK_EQ(lockstep_cupti_resume(), -1); }

// Another thread pauses or resumes while libcuda waits for our start.
static void a_pause_during_the_start(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    at_next_thread = pause_here;
    CHECK_EQ(InitializeInjection(), 1);
    wait_for_state(r, LOCKSTEP_CUPTI_PAUSED);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

static void a_resume_during_the_start(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    at_next_thread = resume_here;
    CHECK_EQ(InitializeInjection(), 1);
    wait_for_state(r, LOCKSTEP_CUPTI_ACTIVE);
}

static void without_threads_the_other_is_left_alone(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(CALL("cuptiSetThreadIdType", 7u), 0);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    other_begins();
    no_threads = true;
    CHECK_EQ(InitializeInjection(), 1);
    no_threads = false;
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_REFUSED);
    CHECK_EQ(MOCK(mock_cupti_thread_ids)(), 7);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityDisable"), 0);
    run_kernels(10, 1);
    other_ends();
    CHECK_EQ(other.kernels, 10);
}

static void without_threads_ours_is_off(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(CALL("cuptiSetThreadIdType", 7u), 0);
    no_threads = true;
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_REFUSED);
    CHECK_EQ(MOCK(mock_cupti_thread_ids)(), 7);
    CHECK_EQ(MOCK(mock_cupti_buffers_apart)(), 1);
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL), 0);
}

// What a pause has CUPTI hand over has its launches as ever.
static void a_pause_keeps_launches(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    run_kernels(10, 1);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    uint64_t got[10][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, 10), 10);
    for (int i = 0; i < 10; i++) {
        CHECK((got[i][1] >> 16 & LOCKSTEP_K_LAUNCH) != 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_NO_LAUNCH), 0);
}

// PyTorch's profiler has stamps in ticks, and leaves them so.
static void a_clock_of_anothers_is_replaced(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityRegisterTimestampCallback"), 0);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    CHECK_EQ(CALL("cuptiActivityRegisterTimestampCallback", ticks), 0);
    other_goes_on();
    other_rests();
    CHECK_EQ(lockstep_cupti_resume(), 0);
    uint64_t got[8][LOCKSTEP_WORDS];
    size_t n = records_of(r, LOCKSTEP_CLOCK, got, 8);
    CHECK(n >= 2 && n <= 8);
    for (size_t i = 0; i < n; i++) {
        CHECK(got[i][3] + 1000000000 > got[i][4] && got[i][4] + 1000000000 > got[i][3]);
    }
}

// Stamps in ticks would be taken for nanoseconds.
static void a_clock_of_anothers_that_stays_stops_us(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(CALL("cuptiSubscribe", &other.subscriber, NULL, NULL), 0);
    MOCK(mock_cupti_fault)(MOCK_REFUSE_CLOCK, 7);
    CHECK_EQ(lockstep_cupti_resume(), 0); // CUPTI's own is as good
    CHECK_EQ(lockstep_cupti_pause(), 0);
    MOCK(mock_cupti_fault)(MOCK_REFUSE_CLOCK, 0);
    CHECK_EQ(CALL("cuptiActivityRegisterTimestampCallback", ticks), 0);
    MOCK(mock_cupti_fault)(MOCK_REFUSE_CLOCK, 7);
    CHECK_EQ(lockstep_cupti_resume(), 7);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_REFUSED, 7));
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL), 0);
    CHECK_EQ(lockstep_cupti_resume(), 7);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), 7);
    MOCK(mock_cupti_fault)(MOCK_REFUSE_CLOCK, 0); // the refusal is over
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    run_kernels(20, 6000);
    hand_over();
    CHECK_EQ(kernels_of(r), 20);
}

// It does not tell us, while CUPTI fills a buffer of ours. That is handed to the
// other, with its own first records behind the last of ours, to read and to free.
static void one_that_does_not_tell_us(void)
{
    struct other want = without_us();
    struct lockstep_ring *r = start_with("libcupti.so.13");
    run_kernels(1, 5000);
    for (int i = 0; i < 30000 && cupti_signs() == 0; i++) {
        usleep(1000);
    }
    CHECK(cupti_signs() > 0);
    atomic_store(&other_takes_all, true);
    other_begins();
    run_kernels(1000, 1);
    cupti_tick(r);
    other_ends();
    CHECK_EQ(other.kernels, want.kernels + 1);
    CHECK_EQ(other.calls, want.calls + 1);
    CHECK_EQ(other.sum, want.sum + 5000);
    CHECK_EQ(kernels_of(r), 0);
    // Ours goes on with its other buffers where the program resumes it.
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    run_kernels(20, 6000);
    hand_over();
    CHECK_EQ(kernels_of(r), 20);
}

// One that takes only what it asked for, and flushes before it measures, gets all.
static void one_that_flushes_first(void)
{
    struct other want = without_us();
    start_with("libcupti.so.13");
    run_kernels(1, 5000);
    for (int i = 0; i < 30000 && cupti_signs() == 0; i++) {
        usleep(1000);
    }
    other_begins();
    CHECK_EQ(CALL("cuptiActivityFlushAll", 0u), 0);
    run_kernels(1000, 1);
    other_ends();
    check_as_without_us(&want);
}

static void a_pause_under_another_client_disables_nothing(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    other_begins();
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_YIELDED, 39));
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityDisable"), 0);
    run_kernels(10, 1);
    other_ends();
    CHECK_EQ(other.kernels, 10);
}

// Operations of NCCL end, and nothing comes from CUPTI.
static void silence_tells_of_another(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint16_t nccl = lockstep_comm_add(r, 1, 2, 0, 1, 7, 0, "world");
    uint16_t gloo = lockstep_comm_add(r, 2, 2, 0, 1, 0, 0, "cpu");
    struct lockstep_frontier *of_nccl = lockstep_frontier_of(r, nccl, 1), *of_gloo = lockstep_frontier_of(r, gloo, 1);
    for (int i = 0; i < 100; i++) {
        lockstep_frontier_raise(&of_gloo->completed, &of_gloo->completed_at, (uint64_t)i, 1);
        cupti_tick(r);
    }
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE); // a group without kernels proves nothing
    uint8_t *buffer;
    size_t size, most;
    for (int i = 0; i < 20; i++) {
        lockstep_frontier_raise(&of_nccl->completed, &of_nccl->completed_at, (uint64_t)i, 1);
        cupti_tick(r);
    }
    cupti_request(&buffer, &size, &most); // a sign: the silence begins anew
    cupti_tick(r);
    other_begins();
    for (int i = 0; i < 40; i++) {
        CHECK_EQ((uint32_t)state_word(r), i < 30 ? LOCKSTEP_CUPTI_ACTIVE : LOCKSTEP_CUPTI_YIELDED);
        lockstep_frontier_raise(&of_nccl->completed, &of_nccl->completed_at, (uint64_t)(20 + i), 1);
        cupti_tick(r);
    }
    unsigned flushes = MOCK(mock_cupti_calls)("cuptiActivityFlushAll");
    cupti_tick(r);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityFlushAll"), flushes);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityDisable"), 0);
    CHECK_EQ(lockstep_cupti_resume(), CUPTI_TAKEN);
    run_kernels(100, 1);
    other_ends();
    CHECK_EQ(other.kernels, 100); // all its own
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_YIELDED);
    CHECK_EQ(lockstep_cupti_resume(), CUPTI_TAKEN); // nothing shows that it is gone
    // Until a buffer of ours comes: it was not replaced after all.
    cupti_request(&buffer, &size, &most);
    cupti_tick(r);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    for (int i = 0; i < 29; i++) { // and the silence begins anew
        lockstep_frontier_raise(&of_nccl->completed, &of_nccl->completed_at, (uint64_t)(100 + i), 1);
        cupti_tick(r);
    }
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

static void a_refusal_is_recorded(enum mock_cupti_fault fault, uint32_t result)
{
    load_mock("libcupti.so.13");
    MOCK(mock_cupti_fault)(fault, result);
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_REFUSED, result));
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL), 0);
    CHECK_EQ(MOCK(mock_cupti_subscribers)(), 0);
    cupti_tick(r);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityFlushAll"), 0);
    CHECK_EQ(lockstep_cupti_resume(), result);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), result);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_REFUSED, result));
}

static void a_refused_subscription(void) { a_refusal_is_recorded(MOCK_REFUSE_SUBSCRIBE, 15); }
static void a_refused_registration(void) { a_refusal_is_recorded(MOCK_REFUSE_REGISTER, 999); }
static void a_refused_kind(void) { a_refusal_is_recorded(MOCK_REFUSE_ENABLE, 35); }
static void a_refused_clock(void) { a_refusal_is_recorded(MOCK_REFUSE_TIMESTAMP, 15); }

static void a_refusal_after_a_pause(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(lockstep_cupti_pause(), 0);
    MOCK(mock_cupti_fault)(MOCK_REFUSE_ENABLE, 35);
    CHECK_EQ(lockstep_cupti_resume(), 35);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_REFUSED, 35));
    MOCK(mock_cupti_fault)(MOCK_REFUSE_ENABLE, 0);
    other_begins(); // not paused for, so that its subscription counts
    CHECK_EQ(lockstep_cupti_resume(), 39);
    run_kernels(10, 1);
    other_ends();
    CHECK_EQ(other.kernels, 10);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

static void without_a_library(void)
{
    struct lockstep_ring *r = ring_here();
    setenv("LOCKSTEP_CUPTI", "/nonexistent/libcupti.so", 1);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_NO_LIBRARY);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_HAS(lockstep_status(), "ring: ");
}

// A library of that name that is none.
static void with_a_wrong_library(void)
{
    struct lockstep_ring *r = ring_here();
    setenv("LOCKSTEP_CUPTI", beside("libcuda.so.1"), 1);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_NO_LIBRARY);
}

static void by_its_path(void)
{
    struct lockstep_ring *r = ring_here();
    setenv("LOCKSTEP_CUPTI", beside("libcupti.so.12"), 1);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

static void switched_off(void)
{
    load_mock("libcupti.so.13");
    struct lockstep_ring *r = ring_here();
    setenv("LOCKSTEP_CUPTI", "0", 1);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_UNASKED);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiSubscribe"), 0);
}

static void without_a_ring(void)
{
    load_mock("libcupti.so.13");
    setenv("LOCKSTEP_DISABLE", "1", 1);
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiSubscribe"), 0);
    CHECK_EQ(lockstep_cupti_pause() + lockstep_cupti_resume(), 0);
}

static void the_tick_brings_what_is_there(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.12"); // without a flush period
    run_kernels(3, 1);
    for (int i = 0; i < 30000 && kernels_of(r) < 3; i++) {
        usleep(1000);
    }
    CHECK_EQ(kernels_of(r), 3);
    CHECK(records_of(r, LOCKSTEP_CLOCK, NULL, 0) >= 3); // begin, tick, buffer
}

static int child_of_a_fork(void *unused)
{
    (void)unused;
    uint8_t *buffer = (uint8_t *)1;
    size_t size = 1, most = 1;
    bool ok = InitializeInjection() == 1 && lockstep_cupti_pause() == 0 && lockstep_cupti_resume() == 0;
    cupti_request(&buffer, &size, &most);
    cupti_complete(NULL, 0, (uint8_t *)4096, 4096, 4096);
    ok = ok && buffer == NULL && size == 0;
    exit(ok ? 0 : 1); // with the handlers of exit
}

static void a_forked_child_does_nothing(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(in_child(child_of_a_fork, NULL), 0);
    run_kernels(4, 1);
    hand_over();
    CHECK_EQ(kernels_of(r), 4);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE), 0);
}

static int exit_with_kernels(void *hang)
{
    start_with("libcupti.so.13");
    MOCK(mock_cupti_fault)(MOCK_SLOW_CLOCK, 20); // what comes last is not read at once
    run_kernels(6, 1);
    MOCK(mock_cupti_fault)(MOCK_HANG_FLUSH, *(const uint32_t *)hang);
    exit(5);
}

// The only ring of the test's folder, whose process is over.
static const uint8_t *left_behind(size_t *size)
{
    char path[600] = "";
    DIR *d = opendir(test_dir);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", test_dir, e->d_name);
        }
    }
    closedir(d);
    int fd = open(path, O_RDONLY);
    struct stat st;
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    const uint8_t *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(file != MAP_FAILED);
    close(fd);
    *size = (size_t)st.st_size;
    return file;
}

static uint64_t kernels_in_file(void)
{
    size_t size;
    const uint8_t *file = left_behind(&size);
    const struct lockstep_header *h = (const struct lockstep_header *)file;
    CHECK_EQ(atomic_load(&h->state), LOCKSTEP_STATE_CLOSED);
    uint64_t n = 0;
    const struct lockstep_section *s = &h->sections[LOCKSTEP_S_RECORDS - 1];
    for (uint64_t i = 0; i < s->count; i++) {
        const uint64_t *w = (const uint64_t *)(file + s->offset) + i * LOCKSTEP_WORDS;
        n += w[0] != 0 && (w[1] & 0xff) == LOCKSTEP_KERNEL;
    }
    munmap((void *)file, size);
    return n;
}

static uint64_t numbered_in_file(void)
{
    size_t size;
    const uint8_t *file = left_behind(&size);
    const struct lockstep_section *s = &((const struct lockstep_header *)file)->sections[LOCKSTEP_S_LANES - 1];
    const struct lockstep_lane *lanes = (const struct lockstep_lane *)(file + s->offset);
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        n += atomic_load(&lanes[i].head);
    }
    munmap((void *)file, size);
    return n;
}

static void an_exit_hands_on_what_is_there(void)
{
    uint32_t hang = 0;
    CHECK_EQ(in_child(exit_with_kernels, &hang), 5);
    CHECK_EQ(kernels_in_file(), 6);
}

#define MANY 20000u // that a lane of 64 would take a minute for at the pace of a running process

static int exit_with_many(void *unused)
{
    (void)unused;
    load_mock("libcupti.so.13");
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_RECORDS", "64", 1);
    CHECK_EQ(InitializeInjection(), 1);
    run_kernels(MANY, 1);
    exit(5);
}

// What does not fit is lapped, and its numbers say so; unread it would be lost without.
static void an_exit_reads_without_pace(void)
{
    CHECK_EQ(in_child(exit_with_many, NULL), 5);
    CHECK(numbered_in_file() >= MANY);
}

static void an_exit_waits_for_no_driver(void)
{
    uint32_t hang = 600000;
    time_t before = time(NULL);
    CHECK_EQ(in_child(exit_with_kernels, &hang), 5);
    CHECK(time(NULL) - before < 300); // far from the ten minutes for which the flush hangs
    kernels_in_file();                // closed all the same
}

static uint32_t flushes(void) { return MOCK(mock_cupti_calls)("cuptiActivityFlushAll"); }

static void until_a_flush_hangs(void)
{
    MOCK(mock_cupti_fault)(MOCK_HANG_FLUSH, 600000);
    uint32_t before = flushes();
    for (int i = 0; i < 60000 && flushes() == before; i++) {
        usleep(1000);
    }
    CHECK(flushes() > before);
}

// The device hangs, and CUPTI with it: the ring's heart goes on, what CUPTI still
// hands over is read, the program is not held, and its wish is done in the end.
static void a_flush_that_hangs_holds_nobody(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    until_a_flush_hangs();
    for (int beats = 0; beats < 3; beats++) {
        uint64_t before = atomic_load(&r->header->heartbeat);
        for (int i = 0; i < 60000 && atomic_load(&r->header->heartbeat) == before; i++) {
            usleep(1000);
        }
        CHECK(atomic_load(&r->header->heartbeat) > before);
    }
    run_kernels(3, 1);
    hand_over();
    CHECK_EQ(kernels_of(r), 3);
    CHECK_EQ(lockstep_cupti_pause(), -1);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
    CHECK_EQ(MOCK(mock_cupti_calls)("cuptiActivityDisable"), 0);
    MOCK(mock_cupti_fault)(MOCK_HANG_FLUSH, 0);
    for (int i = 0; i < 60000 && state_word(r) != LOCKSTEP_CUPTI_PAUSED; i++) {
        usleep(1000);
    }
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
    CHECK_EQ(lockstep_cupti_resume(), 0);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_ACTIVE);
}

// The threads of ours that were found by their names and take no signal.
static void our_threads_take_no_signals(void)
{
    start_with("libcupti.so.13");
    unsigned found = 0;
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[600], line[128];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        bool ours = false;
        while (f != NULL && fgets(line, sizeof line, f) != NULL) {
            unsigned long long blocked;
            ours |= strcmp(line, "Name:\tlockstep-cupti\n") == 0 || strcmp(line, "Name:\tlockstep-read\n") == 0;
            if (ours && sscanf(line, "SigBlk: %llx", &blocked) == 1) {
                const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGPROF, SIGCHLD};
                for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
                    CHECK((blocked >> (signals[i] - 1) & 1) == 1);
                }
                found++;
            }
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    closedir(d);
    CHECK_EQ(found, 2);
}

static void a_pause_restores_what_was(void)
{
    load_mock("libcupti.so.13");
    CHECK_EQ(CALL("cuptiSetThreadIdType", 7u), 0);
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK(MOCK(mock_cupti_period)() > 0);
    CHECK_EQ(MOCK(mock_cupti_thread_ids)(), CUPTI_THREADS_BY_SYSTEM);
    CHECK_EQ(MOCK(mock_cupti_buffers_apart)(), 0);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(MOCK(mock_cupti_buffers_apart)(), 1);
    CHECK_EQ(MOCK(mock_cupti_period)(), 0);
    CHECK_EQ(MOCK(mock_cupti_thread_ids)(), 7);
    CHECK_EQ(state_word(r), LOCKSTEP_CUPTI_PAUSED);
}

// What CUPTI hands over takes a while to be read; a pause waits for it.
static void a_pause_waits_for_the_reader(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    MOCK(mock_cupti_fault)(MOCK_SLOW_CLOCK, 20);
    run_kernels(10, 1);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    CHECK_EQ(kernels_of(r), 10);
}

// A buffer that comes later is read all the same, and CUPTI feeds the ring no more.
static void a_buffer_may_come_after_a_pause(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    uint8_t *buffer;
    size_t size, most;
    cupti_request(&buffer, &size, &most);
    CHECK(buffer != NULL);
    CHECK_EQ(lockstep_cupti_pause(), 0);
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    struct cupti_kernel k = {.kind = CUPTI_KERNEL, .start = now, .end = now + 9, .name = (uintptr_t) "_Z3addv"};
    memset(buffer, 0, 248);
    memcpy(buffer, &k, sizeof k);
    cupti_complete(NULL, 0, buffer, size, 248);
    CHECK(cupti_wait_read(lockstep_now() + 60000000000ull));
    CHECK_EQ(kernels_of(r), 1);
    CHECK_EQ(atomic_load(&r->header->witnesses) & LOCKSTEP_W_CUPTI, 0);
}

static void a_kind_refused_leaves_none_enabled(void)
{
    load_mock("libcupti.so.13");
    MOCK(mock_cupti_fault)(MOCK_REFUSE_KIND, CUPTI_SET);
    struct lockstep_ring *r = ring_here();
    CHECK_EQ(InitializeInjection(), 1);
    CHECK_EQ(state_word(r), state(LOCKSTEP_CUPTI_REFUSED, 35));
    CHECK_EQ(MOCK(mock_cupti_enabled)(CUPTI_KERNEL) + MOCK(mock_cupti_enabled)(CUPTI_COPY), 0);
    CHECK_EQ(MOCK(mock_cupti_period)(), 0);
}

static void after_the_last_flush_comes_none(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    CHECK_EQ(cupti_ask(CUPTI_LEAVE, lockstep_now() + 60000000000ull), 0);
    CHECK_EQ(MOCK(mock_cupti_forced)(), 1);
    uint32_t before = flushes();
    cupti_tick(r);
    CHECK_EQ(flushes(), before);
}

static void tell_forced_flushes(void) { _exit(MOCK(mock_cupti_forced)() == 0 ? 5 : 6); }

static int exit_under_another(void *unused)
{
    (void)unused;
    atexit(tell_forced_flushes); // runs after ours
    start_with("libcupti.so.13");
    other_begins();
    exit(7);
}

static void an_exit_flushes_nothing_of_anothers(void) { CHECK_EQ(in_child(exit_under_another, NULL), 5); }

// More at once than a lane holds: it is written over some time, and on no lane of the
// thread that handed it over.
static void a_delivery_laps_no_lane(void)
{
    load_mock("libcupti.so.13");
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_RECORDS", "1024", 1);
    struct lockstep_ring *r = lockstep_ring_process();
    CHECK(r != NULL && InitializeInjection() == 1);
    uint8_t *buffer;
    size_t size, most;
    cupti_request(&buffer, &size, &most);
    CHECK(buffer != NULL);
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    const unsigned n = 3000;
    memset(buffer, 0, n * 248);
    for (unsigned i = 0; i < n; i++) {
        struct cupti_kernel k = {.kind = CUPTI_KERNEL, .start = now, .end = now + 9, .name = (uintptr_t) "_Z3addv"};
        memcpy(buffer + i * 248, &k, sizeof k);
    }
    lockstep_step_begin(1); // this thread has a lane
    uint64_t mine = lockstep_lane_of_thread - 1, head = atomic_load(&r->lanes[mine].head), before = lockstep_now();
    cupti_complete(NULL, 0, buffer, size, n * 248);
    CHECK(cupti_wait_read(before + 60000000000ull));
    // 11 whole quarters of a lane, 50 ms each.
    CHECK(lockstep_now() - before >= 11 * 50000000ull);
    CHECK_EQ(atomic_load(&r->lanes[mine].head), head);
    uint64_t most_of_a_lane = 0;
    for (uint64_t i = 0; i < r->nlanes; i++) {
        uint64_t h = atomic_load(&r->lanes[i].head);
        most_of_a_lane = h > most_of_a_lane ? h : most_of_a_lane;
    }
    CHECK(most_of_a_lane >= n);
}

#define THREADS 4
#define ROUNDS 40
#define EACH 50

static void *fill_and_complete(void *arg)
{
    uint32_t from = (uint32_t)(uintptr_t)arg;
    uint64_t now = MOCK(mock_cupti_now)() - 1000000;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint8_t *buffer;
        size_t size, most;
        for (cupti_request(&buffer, &size, &most); buffer == NULL; cupti_request(&buffer, &size, &most)) {
            usleep(1000); // all are being read
        }
        for (unsigned k = 0; k < EACH; k++) {
            static const char *const names[] = {"_Z3addv", "_Z3mulv", "_Z3subv"};
            struct cupti_kernel record = {.kind = CUPTI_KERNEL, .start = now, .end = now + 9, .stream = from,
                                          .correlation = from + i * EACH + k, .name = (uintptr_t)names[k % 3]};
            struct cupti_call call = {.kind = CUPTI_RUNTIME, .start = now - 9, .end = now, .thread = from,
                                      .correlation = record.correlation};
            uint8_t *at = buffer + k * (248 + 40);
            memset(at, 0, 248);
            memcpy(at, &record, sizeof record);
            memcpy(at + 248, &call, sizeof call);
        }
        cupti_complete(NULL, 0, buffer, size, EACH * (248 + 40));
    }
    return NULL;
}

static void many_threads_complete(void)
{
    struct lockstep_ring *r = start_with("libcupti.so.13");
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, fill_and_complete, (void *)(1 + i * 10000)) == 0);
    }
    for (int i = 0; i < 3; i++) {
        cupti_tick(r);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    hand_over();
    static uint64_t got[THREADS * ROUNDS * EACH][LOCKSTEP_WORDS];
    CHECK_EQ(records_of(r, LOCKSTEP_KERNEL, got, THREADS * ROUNDS * EACH), THREADS * ROUNDS * EACH);
    for (unsigned i = 0; i < THREADS * ROUNDS * EACH; i++) {
        CHECK_EQ(got[i][5] >> 32, (uint32_t)got[i][6]); // each its own launch
        CHECK((got[i][1] >> 16 & LOCKSTEP_K_LAUNCH) != 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CUPTI_GARBAGE) + drops_of(r, LOCKSTEP_D_CUPTI_NO_LAUNCH), 0);
}

static const struct test_case cases[] = {
    {"it_holds_no_subscription", it_holds_no_subscription},
    {"hardware_stamps_are_asked_for", hardware_stamps_are_asked_for},
    {"one_before_us_is_left_alone", one_before_us_is_left_alone},
    {"one_that_tells_us", one_that_tells_us},
    {"one_that_does_not_tell_us", one_that_does_not_tell_us},
    {"one_that_flushes_first", one_that_flushes_first},
    {"one_that_keeps_its_subscription", one_that_keeps_its_subscription},
    {"a_pause_before_the_start", a_pause_before_the_start},
    {"a_pause_taken_back_before_the_start", a_pause_taken_back_before_the_start},
    {"an_early_pause_displaces_no_other_tool", an_early_pause_displaces_no_other_tool},
    {"only_the_last_resume_begins", only_the_last_resume_begins},
    {"pauses_of_many_threads", pauses_of_many_threads},
    {"a_resume_while_the_other_records", a_resume_while_the_other_records},
    {"a_pause_that_yields_displaces_nothing", a_pause_that_yields_displaces_nothing},
    {"a_pause_while_yielded_asks_for_others", a_pause_while_yielded_asks_for_others},
    {"a_pause_during_the_start", a_pause_during_the_start},
    {"a_resume_during_the_start", a_resume_during_the_start},
    {"without_threads_the_other_is_left_alone", without_threads_the_other_is_left_alone},
    {"without_threads_ours_is_off", without_threads_ours_is_off},
    {"a_pause_keeps_launches", a_pause_keeps_launches},
    {"a_clock_of_anothers_is_replaced", a_clock_of_anothers_is_replaced},
    {"a_clock_of_anothers_that_stays_stops_us", a_clock_of_anothers_that_stays_stops_us},
    {"a_pause_under_another_client_disables_nothing", a_pause_under_another_client_disables_nothing},
    {"silence_tells_of_another", silence_tells_of_another},
    {"a_refused_subscription", a_refused_subscription},
    {"a_refused_registration", a_refused_registration},
    {"a_refused_kind", a_refused_kind},
    {"a_refused_clock", a_refused_clock},
    {"a_refusal_after_a_pause", a_refusal_after_a_pause},
    {"without_a_library", without_a_library},
    {"with_a_wrong_library", with_a_wrong_library},
    {"by_its_path", by_its_path},
    {"switched_off", switched_off},
    {"without_a_ring", without_a_ring},
    {"the_tick_brings_what_is_there", the_tick_brings_what_is_there},
    {"a_forked_child_does_nothing", a_forked_child_does_nothing},
    {"an_exit_hands_on_what_is_there", an_exit_hands_on_what_is_there},
    {"an_exit_reads_without_pace", an_exit_reads_without_pace},
    {"an_exit_waits_for_no_driver", an_exit_waits_for_no_driver},
    {"a_flush_that_hangs_holds_nobody", a_flush_that_hangs_holds_nobody},
    {"our_threads_take_no_signals", our_threads_take_no_signals},
    {"a_pause_restores_what_was", a_pause_restores_what_was},
    {"a_pause_waits_for_the_reader", a_pause_waits_for_the_reader},
    {"a_buffer_may_come_after_a_pause", a_buffer_may_come_after_a_pause},
    {"a_kind_refused_leaves_none_enabled", a_kind_refused_leaves_none_enabled},
    {"after_the_last_flush_comes_none", after_the_last_flush_comes_none},
    {"an_exit_flushes_nothing_of_anothers", an_exit_flushes_nothing_of_anothers},
    {"a_delivery_laps_no_lane", a_delivery_laps_no_lane},
    {"many_threads_complete", many_threads_complete},
};

TEST_MAIN(cases)
