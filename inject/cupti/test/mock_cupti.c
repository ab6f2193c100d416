// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// A libcupti without a device. Layouts are written here by their offsets, apart from
// those that the client under test reads by.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mock_cupti.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define KINDS 64u
#define CALLS 1024u
#define LARGEST 256u

enum { COPY = 1, SET = 2, SERIAL = 3, DRIVER = 4, RUNTIME = 5, KERNEL = 10 };
enum { OK = 0, BAD_PARAMETER = 1, END = 12, INVALID = 21, WRONG_TIME = 16, NOT_COMPATIBLE = 35, TAKEN = 39 };
#define LAUNCH_KERNEL 211u // cudaLaunchKernel
#define NEWEST_CALL 600u

typedef void (*request_fn)(uint8_t **, size_t *, size_t *);
typedef void (*complete_fn)(void *, uint32_t, uint8_t *, size_t, size_t);

struct record {
    struct record *next;
    size_t size;
    uint8_t bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct record *first, **last = &first;
static uint64_t flushes_asked, flushes_done;
static bool runs;
static request_fn request;
static complete_fn complete;
static bool kinds[KINDS], calls_on[2][CALLS];
static uint32_t thread_type;
static uint8_t *buffer; // being filled
static size_t size, used;
static _Thread_local bool in_callback;

static _Atomic uint32_t version = 130500, faults[MOCK_FAULTS];
static _Atomic unsigned layout = 13, subscribers, no_buffer, handed_over, dropped, forced;
static _Atomic uint32_t period;
static _Atomic int64_t offset;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const uint16_t kernel_sizes[] = {[4] = 144, 160, 168, 176, 200, 208, 216, 224, 232, 248};

// Times that each function was called.
static struct counted {
    const char *name;
    _Atomic unsigned times;
} counted[32];

static void count(const char *name)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < 32; i++) {
        if (counted[i].name == NULL || strcmp(counted[i].name, name) == 0) {
            counted[i].name = name;
            counted[i].times++;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

EXPORT unsigned mock_cupti_calls(const char *function)
{
    unsigned times = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < 32 && counted[i].name != NULL; i++) {
        if (strcmp(counted[i].name, function) == 0) {
            times = counted[i].times;
        }
    }
    pthread_mutex_unlock(&lock);
    return times;
}

static unsigned layout_of(uint32_t v)
{
    static const struct {
        uint32_t from;
        unsigned layout;
    } since[] = {{130400, 13}, {130300, 12}, {130100, 11}, {130000, 10}, {20, 9}, {18, 8}, {0, 7}};
    unsigned i = 0;
    while (v < since[i].from) {
        i++;
    }
    return since[i].layout;
}

EXPORT void mock_cupti_version(uint32_t v)
{
    version = v;
    layout = layout_of(v);
}

static void from_environment(void)
{
    const char *v = getenv("MOCK_CUPTI_VERSION"), *refuse = getenv("MOCK_CUPTI_REFUSE");
    if (v != NULL) {
        mock_cupti_version((uint32_t)strtoul(v, NULL, 10));
    }
    if (refuse != NULL) {
        faults[MOCK_REFUSE_REGISTER] = (uint32_t)strtoul(refuse, NULL, 10);
    }
}

__attribute__((constructor)) static void begin(void) { pthread_once(&once, from_environment); }

EXPORT void mock_cupti_layout(unsigned kernel) { layout = kernel; }

EXPORT size_t mock_cupti_kernel_size(unsigned kernel)
{
    unsigned k = kernel != 0 ? kernel : layout;
    return k >= 4 && k <= 13 ? kernel_sizes[k] : 0;
}

static size_t copy_size(void) { return layout >= 13 ? 112 : layout >= 10 ? 96 : layout >= 8 ? 88 : layout >= 6 ? 80 : 64; }

static size_t set_size(void) { return layout >= 13 ? 104 : layout >= 8 ? 88 : layout >= 6 ? 80 : 64; }

// Bytes of a record by its kind; one that CUPTI does not have tells its own, from
// kind 1000 on. 0: not known.
static size_t size_of(const uint8_t *record, size_t room)
{
    uint32_t kind, own = 0;
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case COPY:
        return copy_size();
    case SET:
        return set_size();
    case DRIVER:
    case RUNTIME:
        return 40;
    case KERNEL:
    case SERIAL:
        return kernel_sizes[layout];
    }
    if (kind >= 1000 && room >= 8) {
        memcpy(&own, record + 4, sizeof own);
    }
    return own % 8 == 0 && own >= 8 ? own : 0;
}

EXPORT void mock_cupti_fault(enum mock_cupti_fault what, uint32_t value)
{
    if (what == MOCK_LOSE) {
        dropped += value;
    } else {
        faults[what] = value;
    }
}

static uint64_t (*_Atomic own_clock)(void);

EXPORT uint64_t mock_cupti_now(void)
{
    uint64_t (*own)(void) = own_clock;
    if (own != NULL) {
        return own();
    }
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)((int64_t)t.tv_sec * 1000000000 + t.tv_nsec + offset);
}

EXPORT void mock_cupti_clock(int64_t by) { offset = by; }

// The worker: fills buffers with the records as they came, hands over what is full,
// and all there is where somebody flushes.
static void hand_over(void)
{
    uint8_t *full = buffer;
    size_t full_size = size, full_used = used;
    complete_fn fn = complete;
    buffer = NULL;
    size = used = 0;
    if (full == NULL || fn == NULL) {
        return;
    }
    pthread_mutex_unlock(&lock);
    in_callback = true;
    fn(NULL, 0, full, full_size, full_used);
    in_callback = false;
    pthread_mutex_lock(&lock);
    handed_over++;
}

static void get_buffer(void)
{
    size_t most = 0;
    request_fn fn = request;
    if (fn == NULL) {
        return;
    }
    uint8_t *got = NULL;
    size_t got_size = 0;
    pthread_mutex_unlock(&lock);
    in_callback = true;
    fn(&got, &got_size, &most);
    in_callback = false;
    pthread_mutex_lock(&lock);
    buffer = got;
    size = got_size;
    used = 0;
}

static void store(const struct record *r)
{
    if (buffer != NULL && used + r->size > size) {
        hand_over();
    }
    if (buffer == NULL) {
        get_buffer();
    }
    if (buffer == NULL || used + r->size > size) {
        no_buffer++;
        dropped++;
        return;
    }
    memcpy(buffer + used, r->bytes, r->size);
    used += r->size;
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        uint64_t asked = flushes_asked;
        while (first != NULL) {
            struct record *r = first;
            first = r->next;
            last = first == NULL ? &first : last;
            store(r);
            free(r);
        }
        if (flushes_done < asked) {
            if (used > 0) {
                hand_over();
            }
            flushes_done = asked;
            pthread_cond_broadcast(&changed);
        } else if (first == NULL && flushes_done == flushes_asked) { // both may change in a callback
            pthread_cond_wait(&changed, &lock);
        }
    }
    return NULL;
}

static void run_worker(void)
{
    pthread_t t;
    if (!runs && pthread_create(&t, NULL, worker, NULL) == 0) {
        runs = true;
        pthread_detach(t);
    }
}

static void flush(void)
{
    pthread_mutex_lock(&lock);
    if (runs) {
        uint64_t mine = ++flushes_asked;
        pthread_cond_broadcast(&changed);
        while (flushes_done < mine) {
            pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
}

EXPORT void mock_cupti_flush(void) { flush(); }

static void add(const void *bytes, size_t n)
{
    struct record *r = malloc(sizeof *r + n);
    r->next = NULL;
    r->size = n;
    memcpy(r->bytes, bytes, n);
    pthread_mutex_lock(&lock);
    *last = r;
    last = &r->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

EXPORT void mock_cupti_record(const void *record, size_t n) { add(record, n); }

static bool is_on(unsigned kind)
{
    pthread_mutex_lock(&lock);
    bool on = kinds[kind];
    pthread_mutex_unlock(&lock);
    return on;
}

EXPORT unsigned mock_cupti_enabled(unsigned kind) { return kind < KINDS && is_on(kind); }

EXPORT unsigned mock_cupti_api_enabled(unsigned kind)
{
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < CALLS; i++) {
        n += calls_on[kind == RUNTIME][i];
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static atomic_uint buffers_apart = 1;

EXPORT unsigned mock_cupti_subscribers(void) { return subscribers; }
EXPORT uint32_t mock_cupti_period(void) { return period; }
EXPORT unsigned mock_cupti_forced(void) { return forced; }

EXPORT uint32_t mock_cupti_thread_ids(void)
{
    pthread_mutex_lock(&lock);
    uint32_t type = thread_type;
    pthread_mutex_unlock(&lock);
    return type;
}

EXPORT unsigned mock_cupti_no_buffer(void) { return no_buffer; }
EXPORT unsigned mock_cupti_handed_over(void) { return handed_over; }

static void put16(uint8_t *r, size_t at, uint16_t v) { memcpy(r + at, &v, sizeof v); }
static void put32(uint8_t *r, size_t at, uint32_t v) { memcpy(r + at, &v, sizeof v); }
static void put64(uint8_t *r, size_t at, uint64_t v) { memcpy(r + at, &v, sizeof v); }

EXPORT void mock_cupti_launch(uint32_t correlation, uint64_t start, uint64_t end, uint32_t thread)
{
    uint8_t r[40] = {0};
    pthread_mutex_lock(&lock);
    bool on = kinds[RUNTIME] || calls_on[1][LAUNCH_KERNEL];
    pthread_mutex_unlock(&lock);
    put32(r, 0, RUNTIME);
    put32(r, 4, LAUNCH_KERNEL);
    put64(r, 8, start);
    put64(r, 16, end);
    put32(r, 24, (uint32_t)getpid());
    put32(r, 28, thread);
    put32(r, 32, correlation);
    if (on) {
        add(r, sizeof r);
    }
}

// As CUPTI does, names are kept for good.
static const char *keep(const char *name)
{
    static struct kept {
        struct kept *next;
        char name[];
    } *all;
    if (name == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct kept *k = all;
    while (k != NULL && strcmp(k->name, name) != 0) {
        k = k->next;
    }
    if (k == NULL) {
        k = malloc(sizeof *k + strlen(name) + 1);
        strcpy(k->name, name);
        k->next = all;
        all = k;
    }
    pthread_mutex_unlock(&lock);
    return k->name;
}

// The rest of a record is filled with what no field may be read from.
#define NOISE 0xa5

EXPORT void mock_cupti_kernel(const char *mangled, uint64_t start, uint64_t end, uint32_t stream, uint32_t device,
                              uint32_t correlation)
{
    uint8_t r[LARGEST];
    memset(r, NOISE, sizeof r);
    put32(r, 0, KERNEL);
    put16(r, 6, 40);
    put64(r, 16, start);
    put64(r, 24, end);
    put64(r, 32, end);
    put32(r, 40, device);
    put32(r, 44, 1); // context
    put32(r, 48, stream);
    put32(r, 52, 1024);
    put32(r, 56, 2);
    put32(r, 60, 3);
    put32(r, 64, 256);
    put32(r, 68, 4);
    put32(r, 72, 1);
    put32(r, 76, 1000);
    put32(r, 80, 24);
    put32(r, 92, correlation);
    put64(r, 104, (uint64_t)(uintptr_t)keep(mangled));
    if (layout >= 5) {
        put64(r, 144, 0);
        put32(r, 156, 0);
    }
    if (is_on(KERNEL)) {
        add(r, kernel_sizes[layout]);
    }
}

static void memory(uint32_t kind, size_t n, uint64_t bytes, uint64_t start, uint64_t end, uint32_t stream,
                   uint32_t device, uint32_t correlation)
{
    uint8_t r[LARGEST];
    memset(r, NOISE, sizeof r);
    put32(r, 0, kind);
    put64(r, 8, bytes);
    put64(r, 16, start);
    put64(r, 24, end);
    put32(r, 32, device);
    put32(r, 36, 1);
    put32(r, 40, stream);
    put32(r, 44, correlation);
    put32(r, 72, 0); // graph
    if (is_on(kind)) {
        add(r, n);
    }
}

EXPORT void mock_cupti_copy(uint64_t bytes, uint64_t start, uint64_t end, uint32_t stream, uint32_t device,
                            uint32_t correlation)
{
    memory(COPY, copy_size(), bytes, start, end, stream, device, correlation);
}

EXPORT void mock_cupti_set(uint64_t bytes, uint64_t start, uint64_t end, uint32_t stream, uint32_t device,
                           uint32_t correlation)
{
    memory(SET, set_size(), bytes, start, end, stream, device, correlation);
}

// CUPTI's own functions.

EXPORT uint32_t cuptiGetVersion(uint32_t *v);
uint32_t cuptiGetVersion(uint32_t *v)
{
    *v = version;
    return OK;
}

EXPORT uint32_t cuptiSubscribe(void **subscriber, void *fn, void *user);
uint32_t cuptiSubscribe(void **subscriber, void *fn, void *user)
{
    (void)fn, (void)user;
    count(__func__);
    if (faults[MOCK_REFUSE_SUBSCRIBE] != 0) {
        return faults[MOCK_REFUSE_SUBSCRIBE];
    }
    unsigned none = 0;
    if (!atomic_compare_exchange_strong(&subscribers, &none, 1)) {
        return TAKEN;
    }
    *subscriber = &subscribers;
    return OK;
}

EXPORT uint32_t cuptiUnsubscribe(void *subscriber);
uint32_t cuptiUnsubscribe(void *subscriber)
{
    count(__func__);
    if (subscriber != &subscribers) {
        return BAD_PARAMETER;
    }
    subscribers = 0;
    return OK;
}

EXPORT uint32_t cuptiGetTimestamp(uint64_t *ns);
uint32_t cuptiGetTimestamp(uint64_t *ns)
{
    static _Thread_local unsigned turn;
    if (faults[MOCK_SLOW_CLOCK] != 0 && turn++ % 5 != 2) {
        usleep(faults[MOCK_SLOW_CLOCK] * 1000u);
    }
    *ns = mock_cupti_now();
    return faults[MOCK_REFUSE_TIMESTAMP];
}

EXPORT uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void));
uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void))
{
    count(__func__);
    if (clock == NULL || faults[MOCK_REFUSE_CLOCK] != 0) {
        return clock == NULL ? BAD_PARAMETER : faults[MOCK_REFUSE_CLOCK];
    }
    own_clock = clock;
    return OK;
}

EXPORT uint32_t cuptiActivityRegisterCallbacks(request_fn r, complete_fn c);
uint32_t cuptiActivityRegisterCallbacks(request_fn r, complete_fn c)
{
    count(__func__);
    if (r == NULL || c == NULL) {
        return BAD_PARAMETER;
    }
    if (faults[MOCK_REFUSE_REGISTER] != 0) {
        return faults[MOCK_REFUSE_REGISTER];
    }
    pthread_mutex_lock(&lock);
    request = r;
    complete = c;
    run_worker();
    pthread_mutex_unlock(&lock);
    return OK;
}

static uint32_t turn(uint32_t kind, bool to)
{
    if (kind >= KINDS) {
        return BAD_PARAMETER;
    }
    pthread_mutex_lock(&lock);
    kinds[kind] = to;
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT uint32_t cuptiActivityEnable(uint32_t kind);
uint32_t cuptiActivityEnable(uint32_t kind)
{
    count(__func__);
    if (faults[MOCK_REFUSE_KIND] == kind) {
        return NOT_COMPATIBLE;
    }
    return faults[MOCK_REFUSE_ENABLE] != 0 ? faults[MOCK_REFUSE_ENABLE] : turn(kind, true);
}

EXPORT uint32_t cuptiActivityDisable(uint32_t kind);
uint32_t cuptiActivityDisable(uint32_t kind)
{
    count(__func__);
    return turn(kind, false);
}

EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *b, size_t valid, uint8_t **record);
uint32_t cuptiActivityGetNextRecord(uint8_t *b, size_t valid, uint8_t **record)
{
    if (faults[MOCK_STRAY] != 0) {
        *record = b + (ptrdiff_t)(int32_t)faults[MOCK_STRAY];
        return OK;
    }
    if (faults[MOCK_ODD] != 0) {
        uint32_t result = *record == NULL ? OK : END;
        *record = b + faults[MOCK_ODD];
        return result;
    }
    if (faults[MOCK_ENDLESS] != 0) {
        *record = b;
        return OK;
    }
    size_t at = 0;
    if (*record != NULL) {
        at = (size_t)(*record - b);
        at += size_of(*record, valid - at);
    }
    if (at + 8 > valid) {
        return END;
    }
    size_t n = size_of(b + at, valid - at);
    if (n == 0 || at + n > valid) {
        return INVALID;
    }
    *record = b + at;
    return OK;
}

EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
    (void)context, (void)stream;
    *n = atomic_exchange(&dropped, 0);
    return OK;
}

EXPORT uint32_t cuptiActivityFlushAll(uint32_t flag);
uint32_t cuptiActivityFlushAll(uint32_t flag)
{
    count(__func__);
    forced += flag;
    if (in_callback) {
        fprintf(stderr, "mock_cupti: a flush within a callback\n");
        abort();
    }
    for (uint32_t waited = 0; waited < faults[MOCK_HANG_FLUSH]; waited++) {
        usleep(1000);
    }
    flush();
    return OK;
}

EXPORT uint32_t cuptiSetThreadIdType(uint32_t type);
uint32_t cuptiSetThreadIdType(uint32_t type)
{
    pthread_mutex_lock(&lock);
    thread_type = type;
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT uint32_t cuptiGetThreadIdType(uint32_t *type);
uint32_t cuptiGetThreadIdType(uint32_t *type)
{
    pthread_mutex_lock(&lock);
    *type = thread_type;
    pthread_mutex_unlock(&lock);
    return OK;
}

#define BUFFERS_APART 9u

// To change it while kinds are enabled is not defined.
EXPORT uint32_t cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value);
uint32_t cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
    if (attribute != BUFFERS_APART || *size < 1) {
        return BAD_PARAMETER;
    }
    *(uint8_t *)value = (uint8_t)atomic_load(&buffers_apart);
    return OK;
}

EXPORT uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value);
uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    if (attribute != BUFFERS_APART || *size < 1) {
        return BAD_PARAMETER;
    }
    if (mock_cupti_enabled(10) != 0) {
        fprintf(stderr, "mock_cupti: an attribute set while kinds are enabled\n");
        abort();
    }
    atomic_store(&buffers_apart, *(const uint8_t *)value);
    return OK;
}

EXPORT unsigned mock_cupti_buffers_apart(void) { return atomic_load(&buffers_apart); }

#ifndef MOCK_OLD // 12.9 and later
static uint32_t turn_call(bool runtime, uint32_t cbid, uint8_t to)
{
    if (cbid >= NEWEST_CALL) {
        return BAD_PARAMETER;
    }
    pthread_mutex_lock(&lock);
    calls_on[runtime][cbid] = to != 0;
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT uint32_t cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t to);
uint32_t cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t to) { return turn_call(true, cbid, to); }

EXPORT uint32_t cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t to);
uint32_t cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t to) { return turn_call(false, cbid, to); }

EXPORT uint32_t cuptiActivityFlushPeriod(uint32_t ms);
uint32_t cuptiActivityFlushPeriod(uint32_t ms)
{
    period = ms; // hands over full buffers only, which the worker does at once
    return OK;
}

EXPORT uint32_t cuptiActivityEnableHWTrace(uint8_t on);
uint32_t cuptiActivityEnableHWTrace(uint8_t on)
{
    (void)on;
    count(__func__);
    return OK;
}
#endif
