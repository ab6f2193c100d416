// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// The client of CUPTI: what libcuda calls where CUDA_INJECTION64_PATH names us.
// CUPTI has room for one client. We hold no subscription, so that a profiler that
// the program begins later gets its own.
#include "cupti.h"
#include "lockstep.h"
#include "ring_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_MS 500u
#define DEFAULT_BUFFERS 8
// Seconds without a sign of life from CUPTI, while NCCL's kernels came to their
// ends, after which another client has taken its place.
#define SILENT_TICKS 30u
#define PATIENCE_NS 1000000000u // a call of the program, and its exit, wait no longer
#define READ_NS 500000000u      // of that, for what CUPTI handed over to be read

// Calls that put work on a device: the same numbers in the headers of 11.8 to 13.5,
// as far as they have them.
static const uint16_t runtime_calls[] = {
    211, 214, 269, 270, 311, 312, 430, 431, 505, 506, // launches of kernels and graphs
    31, 32, 41, 44, 145, 160, 161, 163, 215, 225, 228, // copies
    49, 51, 52, 233, 235, // sets
};
static const uint16_t driver_calls[] = {
    307, 442, 477, 478, 514, 515, 652, 653,
    277, 279, 281, 306, 319, 418, 421, 422, 423, 426,
    216, 218, 220, 428, 429, 430,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static bool on;       // kinds of ours are enabled
static bool leaving;  // the process ends
static bool replaced; // another's callbacks seem to be in place of ours
static bool resumed;  // a refusal came after the start, so that it may pass
static bool beside;   // ours began while another held the subscription
// What the program's pause found, until ours begins again.
static enum { NO_PAUSE, PAUSE_ALONE, PAUSE_EARLY } pause_found;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // of the next two; no call is made under it
static enum { IDLE, STARTING, RUNNING } phase;
static uint32_t pauses;       // that no resume has ended
static uint32_t thread_ids;   // how CUPTI numbered threads before
static bool numbered_threads; // that was changed
static uint8_t buffers_apart; // whether threads had buffers of their own before
static bool shared_buffers;   // that was changed
static uint64_t signs_seen, ends_seen;
static unsigned silent;

static void say(struct lockstep_ring *r, enum lockstep_cupti_state state, cupti_result result)
{
    atomic_store(&r->header->cupti, lockstep_pair(state, result));
    if (state != LOCKSTEP_CUPTI_ACTIVE) {
        atomic_fetch_and(&r->header->witnesses, ~(uint64_t)LOCKSTEP_W_CUPTI);
    }
}

static enum lockstep_cupti_state state_of(const struct lockstep_ring *r)
{
    return (enum lockstep_cupti_state)(uint32_t)atomic_load(&r->header->cupti);
}

static void no_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
    (void)user, (void)domain, (void)cbid, (void)data;
}

// CUPTI_TAKEN where another client is there. The subscription lasts no longer than
// the question.
static cupti_result ask_for_others(void)
{
    void *subscriber = NULL;
    cupti_result result = cupti.subscribe(&subscriber, no_callback, NULL);
    return result == CUPTI_OK ? cupti.unsubscribe(subscriber) : result;
}

static bool calls_switch(cupti_result (*set)(uint32_t, uint8_t), const uint16_t *calls, size_t n, uint8_t to)
{
    bool any = false;
    for (size_t i = 0; set != NULL && i < n; i++) {
        any |= set(calls[i], to) == CUPTI_OK; // an older CUPTI does not know the newest
    }
    return any;
}

static bool launches_switch(uint8_t to)
{
    bool runtime = calls_switch(cupti.enable_runtime, runtime_calls, sizeof runtime_calls / sizeof *runtime_calls, to);
    bool driver = calls_switch(cupti.enable_driver, driver_calls, sizeof driver_calls / sizeof *driver_calls, to);
    return runtime || driver;
}

static void switch_on_launches(void)
{
    const char *asked = getenv("LOCKSTEP_CUPTI_LAUNCH");
    bool wanted = asked == NULL || strcmp(asked, "0") != 0;
    atomic_store(&cupti_launches, wanted && launches_switch(1));
}

// Scopes and calls name threads as the system does.
static void number_threads(void)
{
    numbered_threads = cupti.set_thread_ids != NULL && cupti.get_thread_ids != NULL &&
                       cupti.get_thread_ids(&thread_ids) == CUPTI_OK;
    if (numbered_threads) {
        cupti.set_thread_ids(CUPTI_THREADS_BY_SYSTEM);
    }
}

// CUPTI 13 has buffers for each thread, so that a kernel and the call that launched it
// come apart. Before callbacks are registered all threads can be given one, but only
// while no kind is enabled, which another client may have done.
static void share_buffers(void)
{
    size_t size = sizeof buffers_apart;
    shared_buffers = !beside && cupti.get_attribute != NULL && cupti.set_attribute != NULL &&
                     cupti.get_attribute(CUPTI_BUFFERS_APART, &size, &buffers_apart) == CUPTI_OK && buffers_apart != 0;
    if (shared_buffers) {
        uint8_t none = 0;
        size = sizeof none;
        shared_buffers = cupti.set_attribute(CUPTI_BUFFERS_APART, &size, &none) == CUPTI_OK;
    }
}

static void part_buffers(void)
{
    size_t size = sizeof buffers_apart;
    if (shared_buffers) {
        cupti.set_attribute(CUPTI_BUFFERS_APART, &size, &buffers_apart);
        shared_buffers = false;
    }
}

// What CUPTI still hands over is looked up among the launches, so that cupti_launches
// is left to who calls this.
static void switch_off(void)
{
    if (atomic_load(&cupti_launches)) {
        launches_switch(0);
    }
    cupti.disable(CUPTI_SET);
    cupti.disable(CUPTI_COPY);
    cupti.disable(CUPTI_KERNEL);
    if (cupti.flush_period != NULL) {
        cupti.flush_period(0);
    }
    if (numbered_threads) {
        cupti.set_thread_ids(thread_ids);
        numbered_threads = false;
    }
    on = false;
}

static cupti_result switch_on(void)
{
    share_buffers();
    cupti_result result = cupti.register_callbacks(cupti_request, cupti_complete);
    if (result != CUPTI_OK) {
        part_buffers();
        return result;
    }
    number_threads();
    const uint32_t kinds[] = {CUPTI_KERNEL, CUPTI_COPY, CUPTI_SET};
    for (size_t i = 0; i < 3 && result == CUPTI_OK; i++) {
        result = cupti.enable(kinds[i]);
    }
    if (result != CUPTI_OK) {
        switch_off();
        part_buffers();
        return result;
    }
    switch_on_launches();
    if (cupti.flush_period != NULL) {
        cupti.flush_period(FLUSH_MS);
    }
    on = true;
    return CUPTI_OK;
}

// Whether the client that holds the subscription is the program's profiler, which has
// ended: PyTorch's keeps the subscription. It is where that client came after the pause.
// Before our start CUPTI was not asked, and another tool may have been there; but then
// PyTorch's profiler could not have given CUPTI a clock.
static bool holder_has_ended(void)
{
    return pause_found == PAUSE_ALONE || (pause_found == PAUSE_EARLY && cupti_clock_replaced());
}

static cupti_result begin(struct lockstep_ring *r)
{
    uint64_t now;
    cupti_result result = ask_for_others();
    beside = result == CUPTI_TAKEN && holder_has_ended();
    if (result == CUPTI_TAKEN && !beside) {
        pause_found = NO_PAUSE;
        say(r, LOCKSTEP_CUPTI_YIELDED, result);
        return result;
    }
    if (result == CUPTI_OK || beside) {
        result = cupti_clock_restore(beside);
    }
    if (result == CUPTI_OK) {
        result = cupti_clock(r, &now);
    }
    if (result == CUPTI_OK) {
        result = switch_on();
    }
    if (result == CUPTI_OK || !beside) { // where it was refused beside another, that one is known
        pause_found = NO_PAUSE;
    }
    silent = 0;
    say(r, result == CUPTI_OK ? LOCKSTEP_CUPTI_ACTIVE : LOCKSTEP_CUPTI_REFUSED, result);
    return result;
}

// Whether what is enabled is another client's now.
static bool taken_over(void) { return !beside && ask_for_others() == CUPTI_TAKEN; }

// Operations of NCCL that are over: their kernels were, too. Programs' own groups
// have no kernels, and no version of the profiler's interface.
static uint64_t ends_of_nccl(const struct lockstep_ring *r)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < r->nfrontiers; i++) {
        const struct lockstep_frontier *f = &r->frontiers[i];
        uint64_t comm = atomic_load_explicit(&f->key, memory_order_acquire) >> 16 & 0xffff;
        if (comm != 0 && comm < r->ncomms && r->comms[comm].abi != 0) {
            sum += atomic_load_explicit(&f->completed, memory_order_relaxed);
        }
    }
    return sum;
}

// Tells a later client that replaced our callbacks by the silence since. To ask
// CUPTI itself would take a subscription, in which the other's call could fail.
static void listen_for_silence(struct lockstep_ring *r)
{
    uint64_t signs = cupti_signs(), ends = ends_of_nccl(r);
    if (signs != signs_seen) {
        silent = 0;
        if (replaced) {
            replaced = false;
            say(r, LOCKSTEP_CUPTI_ACTIVE, CUPTI_OK);
        }
    } else if (ends != ends_seen && ++silent == SILENT_TICKS && state_of(r) == LOCKSTEP_CUPTI_ACTIVE) {
        replaced = true;
        say(r, LOCKSTEP_CUPTI_YIELDED, CUPTI_OK);
    }
    signs_seen = signs;
    ends_seen = ends;
}

void cupti_delivered(struct lockstep_ring *r)
{
    if (state_of(r) == LOCKSTEP_CUPTI_ACTIVE) {
        atomic_fetch_or_explicit(&r->header->witnesses, LOCKSTEP_W_CUPTI, memory_order_relaxed);
    }
}

void cupti_tick(void *arg)
{
    struct lockstep_ring *r = arg;
    pthread_mutex_lock(&control);
    if (on) {
        listen_for_silence(r);
    }
    if (state_of(r) == LOCKSTEP_CUPTI_ACTIVE && !leaving) {
        uint64_t now;
        cupti_clock(r, &now);
        cupti.flush(0); // a period alone hands over full buffers only
    }
    pthread_mutex_unlock(&control);
}

// At exit the driver may be gone, or wait for a device that hangs: the process waits
// a second for the last flush.
static void leave(void)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r != NULL && state_of(r) == LOCKSTEP_CUPTI_ACTIVE) {
        uint64_t until = lockstep_now() + PATIENCE_NS;
        atomic_store(&cupti_hurry, true);
        cupti_ask(CUPTI_LEAVE, until);
        cupti_wait_read(until);
    }
}

static unsigned buffers_setting(void)
{
    const char *text = getenv("LOCKSTEP_CUPTI_BUFFERS");
    int n = text != NULL ? atoi(text) : 0;
    return (unsigned)(n > 0 ? n : DEFAULT_BUFFERS);
}

static void debug(struct lockstep_ring *r, const char *why)
{
    static const char *const states[] = {"not asked for", "active", "yielded to another client", "no library",
                                         "refused", "paused"};
    if (ring_env_true("LOCKSTEP_DEBUG")) {
        uint64_t word = atomic_load(&r->header->cupti);
        uint32_t version = 0;
        if (why == NULL) {
            cupti.version(&version);
        }
        dprintf(STDERR_FILENO, "lockstep: CUPTI %u: %s, result %u%s%s\n", version, states[(uint32_t)word],
                (uint32_t)(word >> 32), why != NULL ? ": " : "", why != NULL ? why : "");
    }
}

// Whether the program wants ours paused as it starts.
static bool enter_start(void)
{
    pthread_mutex_lock(&gate);
    phase = STARTING;
    bool paused = pauses > 0;
    pthread_mutex_unlock(&gate);
    return paused;
}

// Whether the program has changed its mind meanwhile.
static bool leave_start(int next, bool paused)
{
    pthread_mutex_lock(&gate);
    phase = next;
    bool changed = (pauses > 0) != paused;
    pthread_mutex_unlock(&gate);
    return changed;
}

static void start(void)
{
    struct lockstep_ring *r = lockstep_ring_process();
    const char *asked = getenv("LOCKSTEP_CUPTI");
    if (r == NULL || (asked != NULL && strcmp(asked, "0") == 0)) {
        return;
    }
    bool path = asked != NULL && asked[0] != '\0' && strcmp(asked, "1") != 0;
    const char *why = cupti_load(path ? asked : NULL);
    if (why != NULL) {
        say(r, LOCKSTEP_CUPTI_NO_LIBRARY, CUPTI_OK);
        debug(r, why);
        return;
    }
    cupti_buffers_init(buffers_setting());
    // Only before the first context, and for good; where it cannot be, CUPTI goes on as ever.
    if (cupti.enable_hardware != NULL && ring_env_true("LOCKSTEP_CUPTI_HES") && ask_for_others() == CUPTI_OK) {
        cupti.enable_hardware(1);
    }
    cupti_find_driver();
    bool paused = enter_start();
    if (paused) {
        pause_found = PAUSE_EARLY;
        say(r, LOCKSTEP_CUPTI_PAUSED, CUPTI_OK);
    } else {
        begin(r);
    }
    if (!cupti_threads_start(r)) {
        if (on) {
            switch_off();
            part_buffers();
        }
        say(r, LOCKSTEP_CUPTI_REFUSED, CUPTI_OK);
        leave_start(IDLE, paused);
        return;
    }
    atexit(leave);
    debug(r, NULL);
    if (leave_start(RUNNING, paused)) {
        cupti_ask(CUPTI_FOLLOW, 0); // libcuda does not wait for it
    }
}

// libcuda's name for it. Another result than 1 might have the driver give up.
LOCKSTEP_EXPORT int InitializeInjection(void);
int InitializeInjection(void)
{
    pthread_once(&once, start);
    return 1;
}

static bool can_resume(const struct lockstep_ring *r)
{
    enum lockstep_cupti_state state = state_of(r);
    return state == LOCKSTEP_CUPTI_PAUSED || state == LOCKSTEP_CUPTI_YIELDED ||
           (state == LOCKSTEP_CUPTI_REFUSED && resumed);
}

// Ours is off. Where no other client is there either, one that is there at the resume
// came after the pause.
static void pause_while_off(const struct lockstep_ring *r)
{
    if (pause_found == NO_PAUSE && can_resume(r) && ask_for_others() == CUPTI_OK) {
        pause_found = PAUSE_ALONE;
    }
}

static cupti_result pause_now(struct lockstep_ring *r)
{
    if (replaced) {
        return CUPTI_OK;
    }
    if (!on) {
        pause_while_off(r);
        return CUPTI_OK;
    }
    if (taken_over()) {
        on = false; // what is enabled is the other's now
        pause_found = NO_PAUSE;
        say(r, LOCKSTEP_CUPTI_YIELDED, CUPTI_TAKEN);
        return CUPTI_OK;
    }
    pause_found = PAUSE_ALONE;
    switch_off();
    // After that, so that no buffer of ours is left for the next client's callback.
    cupti_result result = cupti.flush(CUPTI_FLUSH_FORCED);
    cupti_wait_read(lockstep_now() + READ_NS);
    part_buffers();
    say(r, LOCKSTEP_CUPTI_PAUSED, result);
    return result;
}

// Not where another took our callbacks' place without a subscription: to ask would
// not show it, and to begin would take its own.
static cupti_result resume_now(struct lockstep_ring *r)
{
    if (replaced) {
        return CUPTI_TAKEN;
    }
    if (can_resume(r)) {
        resumed = true;
        return begin(r);
    }
    bool refused = state_of(r) == LOCKSTEP_CUPTI_REFUSED;
    return refused ? (cupti_result)(atomic_load(&r->header->cupti) >> 32) : CUPTI_OK;
}

// What the program wants by now, which the last call alone would not show where several
// threads pause and resume at once.
static cupti_result follow(struct lockstep_ring *r)
{
    pthread_mutex_lock(&gate);
    bool paused = pauses > 0;
    pthread_mutex_unlock(&gate);
    return paused ? pause_now(r) : resume_now(r);
}

static cupti_result leave_now(void)
{
    leaving = true;
    return on && !taken_over() ? cupti.flush(CUPTI_FLUSH_FORCED) : CUPTI_OK;
}

cupti_result cupti_obey(struct lockstep_ring *r, enum cupti_command what)
{
    pthread_mutex_lock(&control);
    cupti_result result = what == CUPTI_FOLLOW ? follow(r) : leave_now();
    pthread_mutex_unlock(&control);
    return result;
}

// A profiler that the program starts before it uses CUDA has libcuda load us, so that
// pauses count before our start.
static int count_pauses(bool more)
{
    pthread_mutex_lock(&gate);
    if (more) {
        pauses += pauses < UINT32_MAX;
    } else {
        pauses -= pauses > 0;
    }
    int now = phase;
    pthread_mutex_unlock(&gate);
    return now;
}

static int ask(bool pause)
{
    if (lockstep_ring_process() == NULL) {
        return 0;
    }
    switch (count_pauses(pause)) {
    case IDLE:
        return 0;
    case STARTING:
        return (int)CUPTI_LATE; // done as the start ends
    default:
        return (int)cupti_ask(CUPTI_FOLLOW, lockstep_now() + PATIENCE_NS);
    }
}

int lockstep_cupti_pause(void) { return ask(true); }
int lockstep_cupti_resume(void) { return ask(false); }
