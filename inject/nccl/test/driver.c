// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int driver_failed;
const char *driver_plugin, *driver_dir;
struct nccl nccl;

static const size_t sizes[] = {0, 120, 128, 120, 104, 112, 112, 136};

static void logger(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    (void)flags;
    (void)file;
    (void)line;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (level == ABI_LOG_WARN) {
        nccl.warnings++;
        size_t used = strlen(nccl.warned);
        snprintf(nccl.warned + used, sizeof nccl.warned - used, "%s\n", text);
    }
}

void nccl_load(unsigned v)
{
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclProfiler_v%u", v);
    nccl.v = v;
    nccl.lib = dlopen(driver_plugin, RTLD_NOW | RTLD_LOCAL);
    if (nccl.lib == NULL || (nccl.table = dlsym(nccl.lib, symbol)) == NULL) {
        printf("    load %s: %s\n", driver_plugin, dlerror());
        exit(1);
    }
}

bool driver_mute;

void *comm_init(uint64_t hash, int ranks, int rank, const char *name)
{
    void *ctx = NULL;
    int rc;
    if (nccl.v <= 3) {
        rc = nccl.table->init.v1(&ctx, &nccl.mask);
    } else if (nccl.v == 4) {
        rc = nccl.table->init.v4(&ctx, &nccl.mask, name, hash, 1, ranks, rank, driver_mute ? NULL : logger);
    } else {
        rc = nccl.table->init.v5(&ctx, hash, &nccl.mask, name, 1, ranks, rank, driver_mute ? NULL : logger);
    }
    CHECK(rc == 0);
    return ctx;
}

void comm_finalize(void *ctx) { CHECK(nccl.table->finalize(ctx) == 0); }

void *start_raw(void *ctx, const void *descr, size_t size)
{
    void *handle = (void *)(uintptr_t)0x5a5a, *copy = malloc(size);
    memcpy(copy, descr, size);
    int rc = nccl.table->start(ctx, &handle, copy);
    CHECK(rc == 0);
    memset(copy, 0xee, size);
    free(copy);
    return handle;
}

void *start_new(void *ctx, const struct abi_event *e)
{
    struct abi_event copy = *e;
    if (nccl.v == 4) {
        copy.type |= 0xa5a5a5a5a5a5a500u; // the rest of the word is undefined there
    }
    return start_raw(ctx, &copy, sizes[nccl.v]);
}

// Types whose fields are the same in all versions.
static void *start_any(void *ctx, const struct abi_event *e)
{
    if (nccl.v >= 4) {
        return start_new(ctx, e);
    }
    char descr[136];
    memset(descr, 0xa5, sizeof descr);
    descr[0] = (char)e->type;
    memcpy(descr + 8, (const char *)e + 8, sizes[nccl.v] - 8);
    return start_raw(ctx, descr, sizes[nccl.v]);
}

static int enum_of(const char *func)
{
    static const char *const names[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
                                        "Send", "Recv"};
    for (int i = 0; i < 8; i++) {
        if (strcmp(func, names[i]) == 0) {
            return i;
        }
    }
    return 255;
}

void *start_coll(void *ctx, struct coll c)
{
    const char *name = "world";
    uint8_t n = (uint8_t)c.channels;
    if (nccl.v == 1) {
        struct abi_event_v1 e = {.type = T_COLL, .parent = c.group,
                                 .coll = {.name = name, .hash = c.hash, .seq = c.seq, .func = (uint8_t)enum_of(c.func),
                                          .count = c.count, .root = c.root, .datatype = 7, .channels = n, .algo = 1,
                                          .proto = 2}};
        return start_raw(ctx, &e, sizeof e);
    }
    if (nccl.v == 2) {
        struct abi_event_v2 e = {.type = T_COLL, .parent = c.group,
                                 .coll = {.name = name, .hash = c.hash, .seq = c.seq, .func = c.func, .count = c.count,
                                          .root = c.root, .datatype = c.datatype, .channels = n, .algo = c.algo,
                                          .proto = c.proto}};
        return start_raw(ctx, &e, sizeof e);
    }
    if (nccl.v == 3) {
        struct abi_event_v3 e = {.type = T_COLL, .parent = c.group,
                                 .coll = {.name = name, .hash = c.hash, .seq = c.seq, .func = c.func, .count = c.count,
                                          .root = c.root, .datatype = c.datatype, .channels = n, .algo = c.algo,
                                          .proto = c.proto}};
        return start_raw(ctx, &e, sizeof e);
    }
    struct abi_event e = {.type = T_COLL, .parent = nccl.v == 4 ? c.group : c.parent,
                          .coll = {.seq = c.seq, .func = c.func, .count = c.count, .root = c.root,
                                   .datatype = c.datatype, .channels = n, .algo = c.algo, .proto = c.proto,
                                   .group = c.group}};
    return start_new(ctx, &e);
}

void *start_p2p(void *ctx, void *parent, void *group, bool send, int peer)
{
    const char *func = send ? "Send" : "Recv";
    if (nccl.v == 1) {
        struct abi_event_v1 e = {.type = T_P2P, .parent = group,
                                 .p2p = {.name = "world", .hash = 7, .func = send ? 6 : 7, .datatype = 7, .count = 8,
                                         .peer = peer}};
        return start_raw(ctx, &e, sizeof e);
    }
    if (nccl.v <= 3) { // the same in both
        struct abi_event_v2 e = {.type = T_P2P, .parent = group,
                                 .p2p = {.name = "world", .hash = 7, .func = func, .datatype = "ncclFloat32",
                                         .count = 8, .peer = peer}};
        return start_raw(ctx, &e, sizes[nccl.v]);
    }
    struct abi_event e = {.type = T_P2P, .parent = nccl.v == 4 ? group : parent,
                          .p2p = {.func = func, .datatype = "ncclFloat32", .count = 8, .peer = peer, .channels = 1,
                                  .group = group}};
    return start_new(ctx, &e);
}

void *start_group(void *ctx, void *parent)
{
    return start_any(ctx, &(struct abi_event){.type = T_GROUP, .parent = parent});
}

void *start_api(void *ctx, void *parent, uint64_t type, void *stream, bool captured)
{
    struct abi_event e = {.type = type, .parent = parent};
    if (type == T_COLL_API) {
        e.coll_api.func = "AllReduce";
        e.coll_api.count = 256;
        e.coll_api.stream = stream;
        e.coll_api.captured = captured;
    } else if (type == T_P2P_API) {
        e.p2p_api.func = "Send";
        e.p2p_api.stream = stream;
        e.p2p_api.captured = captured;
    } else if (type == T_GROUP_API) {
        e.group_api.captured = captured;
    } else {
        e.kernel_launch.stream = stream;
    }
    return start_new(ctx, &e);
}

void *start_proxy_op(void *ctx, void *parent, int pid, int channel, int peer, bool send)
{
    struct abi_event e = {.type = T_PROXY_OP, .parent = parent,
                          .proxy_op = {.pid = pid, .channel = (uint8_t)channel, .peer = peer, .steps = 4,
                                       .chunk = 1 << 20, .is_send = send}};
    return start_any(ctx, &e);
}

void *start_proxy_step(void *ctx, void *parent, int step)
{
    return start_any(ctx, &(struct abi_event){.type = T_PROXY_STEP, .parent = parent, .proxy_step = {step}});
}

void *start_kernel(void *ctx, void *parent, int channel, uint64_t timer)
{
    return start_any(ctx, &(struct abi_event){.type = T_KERNEL_CH, .parent = parent,
                                              .kernel_ch = {(uint8_t)channel, timer}});
}

void *start_net(void *ctx, void *parent, int64_t id, const void *data)
{
    return start_any(ctx, &(struct abi_event){.type = T_NET_PLUGIN, .parent = parent, .net = {id, data}});
}

void stop(void *handle) { CHECK(nccl.table->stop(handle) == 0); }

void state(void *handle, int s, uint64_t value)
{
    union abi_args a[2] = {{.timer = value}, {.timer = 0}}; // two words before version 4
    CHECK(nccl.table->state(handle, s, a) == 0);
}

void state_null(void *handle, int s) { CHECK(nccl.table->state(handle, s, NULL) == 0); }

void *enqueue(void *ctx, uint64_t seq, int channels)
{
    void *api = NULL, *outer = NULL;
    if (nccl.v >= 5) {
        outer = start_api(ctx, NULL, T_GROUP_API, NULL, false);
        state_null(outer, S_GROUP_START_API_STOP);
        api = start_api(ctx, outer, T_COLL_API, (void *)(uintptr_t)0x1234, false);
        stop(api);
        state_null(outer, S_GROUP_END_API_START);
    }
    void *group = start_group(ctx, outer);
    void *op = start_coll(ctx, (struct coll){api, group, seq, "AllReduce", "ncclFloat32", "RING", "SIMPLE", 256, 0,
                                             channels, 7});
    stop(op);
    stop(group);
    stop(outer);
    return op;
}

void run_kernel(void *ctx, void *op, int channels, uint64_t from, uint64_t took)
{
    void *k[64];
    for (int i = 0; i < channels; i++) {
        k[i] = start_kernel(ctx, op, i, from + (uint64_t)i);
    }
    for (int i = 0; i < channels; i++) {
        if (nccl.v >= 4) {
            state(k[i], S_KERNEL_CH_STOP, from + took + 2 * (uint64_t)i);
        }
        stop(k[i]);
    }
}

void run_proxy(void *ctx, void *op, bool send, int peer)
{
    void *p = start_proxy_op(ctx, op, getpid(), 0, peer, send);
    state_null(p, nccl.v >= 4 ? S_OP_IN_PROGRESS : 1);
    for (int i = 0; i < 4; i++) {
        void *s = start_proxy_step(ctx, p, i);
        state_null(s, send ? S_SEND_GPU_WAIT : S_RECV_WAIT);
        if (!send || nccl.v >= 4) {
            state_null(s, send ? S_SEND_PEER_WAIT : S_RECV_FLUSH_WAIT);
        }
        state_null(s, send ? S_SEND_WAIT : S_RECV_GPU_WAIT);
        stop(s);
    }
    stop(p);
}

static bool is_ring_of(const char *name, int pid)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%d-", pid);
    size_t n = strlen(name);
    return strncmp(name, prefix, strlen(prefix)) == 0 && n > 5 && strcmp(name + n - 5, ".ring") == 0;
}

struct reading ring_read(int pid)
{
    struct reading r = {0};
    DIR *d = opendir(driver_dir);
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        struct stat st;
        int fd = is_ring_of(e->d_name, pid) ? openat(dirfd(d), e->d_name, O_RDWR) : -1;
        if (fd < 0) {
            continue;
        }
        if (fstat(fd, &st) == 0) {
            r.size = (size_t)st.st_size;
            r.base = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            r.header = (struct lockstep_header *)r.base;
        }
        // Left open: closing it would drop the lock that this process holds on it.
    }
    closedir(d);
    if (r.header == NULL || r.header->magic != LOCKSTEP_RING_MAGIC) {
        printf("    no ring of %d in %s\n", pid, driver_dir);
        exit(1);
    }
    return r;
}

struct lockstep_section *ring_section(struct reading *r, int kind)
{
    for (unsigned i = 0; i < LOCKSTEP_SECTIONS; i++) {
        if ((int)r->header->sections[i].kind == kind) {
            return &r->header->sections[i];
        }
    }
    exit(1);
}

static void *entry(struct reading *r, int kind, uint64_t index)
{
    struct lockstep_section *s = ring_section(r, kind);
    return index < s->count ? r->base + s->offset + index * s->entry_size : NULL;
}

const struct lockstep_slot *ring_slot(struct reading *r, uint64_t i) { return entry(r, LOCKSTEP_S_SLOTS, i); }
const struct lockstep_comm *ring_comm(struct reading *r, unsigned i) { return entry(r, LOCKSTEP_S_COMMS, i); }

const struct lockstep_frontier *ring_frontier(struct reading *r)
{
    const struct lockstep_frontier *found = NULL, *f;
    for (uint64_t i = 0; (f = entry(r, LOCKSTEP_S_FRONTIERS, i)) != NULL; i++) {
        if (atomic_load(&f->key) != 0) {
            CHECK(found == NULL);
            found = f;
        }
    }
    return found;
}

const char *ring_string(struct reading *r, unsigned code)
{
    const struct lockstep_string *s = entry(r, LOCKSTEP_S_STRINGS, code);
    return s != NULL ? s->text : "?";
}

size_t ring_records(struct reading *r, int kind, uint64_t (*out)[LOCKSTEP_WORDS], size_t max)
{
    struct lockstep_section *lanes = ring_section(r, LOCKSTEP_S_LANES), *recs = ring_section(r, LOCKSTEP_S_RECORDS);
    uint64_t capacity = recs->count / lanes->count;
    size_t n = 0;
    for (uint64_t l = 0; l < lanes->count; l++) {
        const struct lockstep_lane *lane = entry(r, LOCKSTEP_S_LANES, l);
        uint64_t head = atomic_load(&lane->head), from = head > capacity ? head - capacity : 0;
        for (uint64_t i = from; i < head && n < max; i++) {
            const lockstep_word *w = entry(r, LOCKSTEP_S_RECORDS, l * capacity + i % capacity);
            for (unsigned j = 0; j < LOCKSTEP_WORDS; j++) {
                out[n][j] = atomic_load(&w[j]);
            }
            n += (int)(out[n][1] & 0xff) == kind;
        }
    }
    return n;
}

size_t ring_await(struct reading *r, int kind, size_t n, uint64_t (*out)[LOCKSTEP_WORDS], size_t max)
{
    size_t got;
    for (int i = 0; (got = ring_records(r, kind, out, max)) < n && i < 500; i++) {
        nap(10000);
    }
    return got;
}

uint64_t ring_drops(enum lockstep_drop d)
{
    struct reading r = ring_read(getpid());
    return atomic_load(&r.header->drops[d]);
}

unsigned rec_flags(const uint64_t *w) { return w[1] >> 16 & 0xffff; }
void nap(long us) { usleep((unsigned)us); }
