// SPDX-License-Identifier: Apache-2.0

// A ring all-reduce as NCCL's kernels do it: reduce-scatter and all-gather in
// chunks, with a bounded number of them between device and proxy. This is the
// host's call and the device's part; proxy.c moves the bytes.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

#define FUNC "AllReduce"
#define DATATYPE "ncclFloat32"
// The kernel that NCCL compiles for sums of floats around a ring, whatever the protocol.
#define KERNEL "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
#define IN_FLIGHT 64

static struct collective pool[IN_FLIGHT];
static uint64_t next_seq;
static uint64_t next_work[MAX_CHANNELS], next_step[MAX_CHANNELS];

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static uint64_t steps_of_loop(void) { return 2 * (uint64_t)(opt.ranks - 1); }

// Phase p of a loop handles chunk rank - 1 - p: it sends but in the last one,
// and receives but in the first.
struct chunk chunk_of(const struct collective *c, int channel, uint64_t loop, int phase)
{
    const struct part *part = &c->parts[channel];
    size_t n = (size_t)opt.ranks, whole = opt.chunk / sizeof(float);
    size_t begin = loop * n * whole;
    size_t left = part->count - begin;
    size_t size = smaller(whole, (left + n - 1) / n);
    size_t which = (size_t)(opt.rank - 1 - phase + 3 * opt.ranks) % n;
    size_t from = smaller(which * size, left);
    return (struct chunk){part->offset + begin + from, smaller(size, left - from)};
}

struct chunk chunk_of_step(const struct collective *c, int channel, uint64_t step, bool send)
{
    uint64_t k = step - c->parts[channel].base;
    return chunk_of(c, channel, k / steps_of_loop(), (int)(k % steps_of_loop()) + (send ? 0 : 1));
}

// Progress of one channel of the kernel.
struct walk {
    const struct collective *c;
    int channel;
    uint64_t loop, loops;
    int phase;
};

static bool walk_ended(const struct walk *w) { return w->loop >= w->loops; }

static bool walk_ready(const struct walk *w)
{
    const struct channel *ch = &channels[w->channel];
    uint64_t at = w->c->parts[w->channel].base + w->loop * steps_of_loop() + (uint64_t)w->phase;
    if (w->phase > 0 && atomic_load_explicit(&ch->received, memory_order_acquire) < at) {
        return false;
    }
    bool sends = w->phase < 2 * opt.ranks - 2;
    return !sends || at < atomic_load_explicit(&ch->sent, memory_order_acquire) + FIFO;
}

static void add(float *to, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = a[i] + b[i];
    }
}

static void walk_step(struct walk *w)
{
    struct channel *ch = &channels[w->channel];
    struct chunk k = chunk_of(w->c, w->channel, w->loop, w->phase);
    float *data = w->c->data + k.offset;
    size_t bytes = k.count * sizeof(float);
    bool sends = w->phase < 2 * opt.ranks - 2, receives = w->phase > 0;
    float *out = ch->send_buf[atomic_load(&ch->ready) % FIFO];
    const float *in = ch->recv_buf[atomic_load(&ch->consumed) % FIFO];
    if (!receives) {
        memcpy(out, data, bytes);
    } else if (w->phase < opt.ranks - 1) {
        add(out, in, data, k.count);
    } else {
        if (w->phase == opt.ranks - 1) {
            add(data, in, data, k.count);
        } else {
            memcpy(data, in, bytes);
        }
        if (sends) {
            memcpy(out, data, bytes);
        }
    }
    if (receives) {
        atomic_fetch_add(&ch->consumed, 1);
    }
    if (sends) {
        atomic_fetch_add(&ch->ready, 1);
    }
    if (++w->phase > 2 * opt.ranks - 2) {
        w->phase = 0;
        w->loop++;
    }
}

static bool any_ready(void *arg)
{
    struct walk *walks = arg;
    for (int i = 0; i < opt.channels; i++) {
        if (!walk_ended(&walks[i]) && walk_ready(&walks[i])) {
            return true;
        }
    }
    return false;
}

static int walk_all(struct walk *walks)
{
    int left = 0;
    for (int i = 0; i < opt.channels; i++) {
        bool moved = false;
        while (!walk_ended(&walks[i]) && walk_ready(&walks[i])) {
            walk_step(&walks[i]);
            moved = true;
        }
        if (moved) {
            proxy_wake();
        }
        if (walk_ended(&walks[i])) {
            if (moved) {
                stamp_stop(i, walks[i].c->parts[i].work);
            }
        } else {
            left++;
        }
    }
    return left;
}

static void run_all_reduce(void *arg, int n)
{
    (void)n;
    struct collective *c = arg;
    struct walk walks[MAX_CHANNELS];
    for (int i = 0; i < opt.channels; i++) {
        uint64_t loops = opt.ranks > 1 ? c->parts[i].steps / steps_of_loop() : 0;
        walks[i] = (struct walk){.c = c, .channel = i, .loops = loops};
        stamp_start(i, c->parts[i].work);
        if (loops == 0) {
            stamp_stop(i, c->parts[i].work);
        }
    }
    while (walk_all(walks) > 0 && !atomic_load(&failed)) {
        device_wait(any_ready, walks);
    }
    collective_release(c);
}

static struct collective *take(float *data, size_t count)
{
    struct collective *c = &pool[next_seq % IN_FLIGHT];
    while (atomic_load(&c->users) > 0) {
        usleep(100);
    }
    c->data = data;
    c->count = count;
    c->seq = next_seq++;
    c->handle = NULL;
    size_t each = (count + (size_t)opt.channels - 1) / (size_t)opt.channels;
    size_t loop = (size_t)opt.ranks * (opt.chunk / sizeof(float));
    for (int i = 0; i < opt.channels; i++) {
        struct part *p = &c->parts[i];
        p->offset = smaller((size_t)i * each, count);
        p->count = smaller(each, count - p->offset);
        p->steps = (p->count + loop - 1) / loop * steps_of_loop();
        p->base = next_step[i];
        next_step[i] += p->steps;
        p->work = ++next_work[i];
    }
    atomic_store(&c->users, 2 + 2 * opt.channels);
    return c;
}

void collective_first(void) { next_seq = 0; }

void collective_release(struct collective *c) { atomic_fetch_sub(&c->users, 1); }

enum {
    UNDER_COLL = EV_COLL | EV_PROXY_OP | EV_PROXY_STEP | EV_KERNEL_CH | EV_NET_PLUGIN,
    UNDER_GROUP = UNDER_COLL | EV_GROUP | EV_P2P,
    UNDER_API = UNDER_GROUP | EV_GROUP_API | EV_COLL_API | EV_P2P_API | EV_KERNEL_LAUNCH,
};

static void *start_if(bool wanted, struct descr d) { return wanted ? event_start(&d) : NULL; }

static uint64_t launch(struct collective *c, void *group_api, struct stream *after, uint64_t ticket)
{
    void *e = start_if(profiler.abi >= 5 && (c->mask & EV_KERNEL_LAUNCH),
                       (struct descr){.type = EV_KERNEL_LAUNCH, .parent = group_api, .kernel_launch.stream = &comm_stream});
    uint64_t mine = stream_push(&comm_stream, (struct kernel){.run = run_all_reduce, .arg = c, .name = KERNEL, .after = after, .ticket = ticket});
    event_stop(e);
    return mine;
}

// As NCCL: the task's events start after the launch, and what they are parents
// of is handed to the proxy and the profiler thread in between.
static void post(struct collective *c, void *group_api, void *coll_api)
{
    void *group = start_if(c->mask & UNDER_GROUP, (struct descr){.type = EV_GROUP, .parent = group_api});
    c->handle = start_if(c->mask & UNDER_COLL,
                         (struct descr){.type = EV_COLL,
                                        .parent = profiler.abi >= 5 ? coll_api : group,
                                        .rank = opt.rank,
                                        .coll = {.seq = c->seq,
                                                 .func = FUNC,
                                                 .send = c->data,
                                                 .recv = c->data,
                                                 .count = c->count,
                                                 .datatype = DATATYPE,
                                                 .channels = (uint8_t)opt.channels,
                                                 .warps = 16,
                                                 .algo = "RING",
                                                 .proto = "SIMPLE",
                                                 .group = group}});
    poller_post(c);
    proxy_append(c);
    event_stop(c->handle);
    event_stop(group);
}

static uint64_t reduce(float *data, size_t count, bool odd, struct stream *after, uint64_t ticket)
{
    struct collective *c = take(data, count);
    c->odd = odd;
    c->mask = profiler.table != NULL ? atomic_load_explicit(&profiler.mask, memory_order_relaxed) : 0;
    bool api = profiler.abi >= 5;
    void *group_api = start_if(api && (c->mask & UNDER_API), (struct descr){.type = EV_GROUP_API, .group_api.depth = 1});
    void *coll_api = start_if(api && (c->mask & (UNDER_COLL | EV_COLL_API)),
                              (struct descr){.type = EV_COLL_API,
                                             .parent = group_api,
                                             .coll_api = {.func = FUNC, .count = count, .datatype = DATATYPE, .stream = &comm_stream}});
    event_stop(coll_api);
    event_state(group_api, ST_GROUP_END_API_START, NULL);
    uint64_t mine = launch(c, group_api, after, ticket);
    post(c, group_api, coll_api);
    event_stop(group_api);
    return mine;
}

uint64_t all_reduce(float *data, size_t count, struct stream *after, uint64_t ticket)
{
    return reduce(data, count, false, after, ticket);
}

uint64_t all_reduce_odd(float *data, size_t count, struct stream *after, uint64_t ticket)
{
    return reduce(data, count, true, after, ticket);
}
