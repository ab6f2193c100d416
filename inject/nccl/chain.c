// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// A second profiler plugin behind this one (LOCKSTEP_CHAIN), since NCCL loads but
// one. Where there is one, NCCL is given handles of pairs: ours and theirs. Their
// handles are kept and given back, never looked into; a handle is resolved by its
// number, never followed.
#define _GNU_SOURCE
#include "plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Pairs of operations, groups and calls are named after their stop, for as long as
// the operation runs: they are overwritten, the oldest first. Of other pairs, one
// is passed over as long as it is open, unless its stop seems lost.
#define PAIRS 65536u // of each of the two
#define LAPS_OPEN 64u
#define TRIES 16
#define LASTING_BIT (1ull << 55)

struct pair {
    lockstep_word ticket; // 0 while written
    lockstep_word ours, theirs;
    lockstep_word stopped; // STOPPED | version << 1
};

#define STOPPED 1ull

struct context_pair {
    lockstep_word state; // generation << 1 | taken
    lockstep_word ours, theirs;
    lockstep_word version; // of their table; 0: not followed by them
};

static struct pair *brief, *lasting;
static lockstep_word brief_tickets, lasting_tickets;
static struct context_pair contexts[MAX_CONTEXTS];
static const struct abi_table *tables[ABI_NEWEST + 1];
static bool on;
static char why_not[512]; // there is none behind, though one was asked for
static _Atomic int32_t own_pid; // there may be no ring to know it
static pthread_once_t once = PTHREAD_ONCE_INIT;

// What they ask for: they may keep its address and change it, as with NCCL's own.
static int their_mask;

int chain_mask(void) { return on ? mask_closure(__atomic_load_n(&their_mask, __ATOMIC_RELAXED)) : 0; }

static const struct abi_table *own_table(unsigned v)
{
    static const struct abi_table *const own[ABI_NEWEST + 1] = {
        NULL, &ncclProfiler_v1, &ncclProfiler_v2, &ncclProfiler_v3,
        &ncclProfiler_v4, &ncclProfiler_v5, &ncclProfiler_v6, &ncclProfiler_v7};
    return own[v];
}

static void know_pid(void) { atomic_store_explicit(&own_pid, getpid(), memory_order_relaxed); }

static const char *find_tables(void *lib)
{
    bool any = false;
    for (unsigned v = ABI_OLDEST; v <= ABI_NEWEST; v++) {
        char symbol[] = "ncclProfiler_v0";
        symbol[sizeof symbol - 2] = (char)('0' + v);
        tables[v] = dlsym(lib, symbol);
        if (tables[v] == own_table(v)) {
            return "it is this library itself";
        }
        any = any || tables[v] != NULL;
    }
    return any ? NULL : "it exports none of ncclProfiler_v1 to ncclProfiler_v7";
}

// Returns what is wrong, or NULL.
static const char *load_from(const char *path)
{
    if (*path != '/') {
        return "it is no absolute path";
    }
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (lib == NULL) {
        const char *error = dlerror();
        return error != NULL ? error : "it cannot be loaded";
    }
    const char *problem = find_tables(lib);
    if (problem != NULL) {
        return problem;
    }
    brief = calloc(PAIRS, sizeof *brief);
    lasting = calloc(PAIRS, sizeof *lasting);
    know_pid();
    on = brief != NULL && lasting != NULL && pthread_atfork(NULL, NULL, know_pid) == 0;
    return on ? NULL : "there is no memory for it";
}

static void load(void)
{
    const char *path = getenv("LOCKSTEP_CHAIN");
    const char *problem = path != NULL && *path != '\0' ? load_from(path) : NULL;
    if (problem != NULL) {
        snprintf(why_not, sizeof why_not,
                 "LOCKSTEP_CHAIN: got \"%.128s\"; want the absolute path of another profiler plugin: none is chained: %s",
                 path, problem);
    }
}

const char *chain_problem(void) { return why_not[0] != '\0' ? why_not : NULL; }

// The version to speak with them: NCCL's own, or an older one whose events are a
// prefix of NCCL's. Versions 1 to 3 differ from each other.
static unsigned their_version(unsigned abi)
{
    unsigned least = abi >= 4 ? 4 : abi;
    for (unsigned v = abi; v >= least; v--) {
        if (tables[v] != NULL) {
            return v;
        }
    }
    return 0;
}

static int their_init(unsigned v, void **ctx, const struct naming *n)
{
    const struct abi_table *t = tables[v];
    if (v <= 3) {
        return t->init.v1(ctx, &their_mask);
    }
    if (v == 4) {
        return t->init.v4(ctx, &their_mask, n->name, n->hash, n->nodes, n->ranks, n->rank, n->log);
    }
    return t->init.v5(ctx, n->hash, &their_mask, n->name, n->nodes, n->ranks, n->rank, n->log);
}

static struct context_pair *claim_context(uint64_t *handle)
{
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        struct context_pair *p = &contexts[i];
        uint64_t s = get(&p->state);
        if ((s & 1) == 0 && atomic_compare_exchange_strong(&p->state, &s, s + 3)) {
            *handle = tagged(TAG_PAIR, (s + 3) >> 1 << 16 | (i + 1));
            return p;
        }
    }
    return NULL;
}

static struct context_pair *context_pair_of(void *ctx, uint64_t *state)
{
    uint64_t h = (uintptr_t)ctx, index = h & 0xffff;
    if (tag_of(h) != TAG_PAIR || index == 0 || index > MAX_CONTEXTS) {
        return NULL;
    }
    struct context_pair *p = &contexts[index - 1];
    *state = atomic_load_explicit(&p->state, memory_order_acquire);
    return (*state & 1) != 0 && *state >> 1 == body_of(h) >> 16 ? p : NULL;
}

static int init_both(void **ctx, int *mask, unsigned abi, const struct naming *n)
{
    void *ours = NULL, *theirs = NULL;
    uint64_t handle = 0;
    struct context_pair *p = claim_context(&handle);
    unsigned v = p != NULL ? their_version(abi) : 0;
    int before = __atomic_load_n(&their_mask, __ATOMIC_RELAXED);
    if (v != 0 && their_init(v, &theirs, n) != 0) {
        v = 0; // they failed: they alone are left out
        __atomic_store_n(&their_mask, before, __ATOMIC_RELAXED);
    }
    context_init(&ours, mask, abi, n);
    if (p == NULL) {
        *ctx = NULL;
        return 0;
    }
    if (ours == NULL && mask != NULL) {
        __atomic_store_n(mask, __atomic_load_n(&their_mask, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    }
    put(&p->ours, (uintptr_t)ours);
    put(&p->theirs, (uintptr_t)theirs);
    put(&p->version, v);
    *ctx = (void *)(uintptr_t)handle;
    return 0;
}

int chain_init(void **ctx, int *mask, unsigned abi, const struct naming *n)
{
    pthread_once(&once, load);
    return on && ctx != NULL ? init_both(ctx, mask, abi, n) : context_init(ctx, mask, abi, n);
}

static bool lasts(uint64_t type)
{
    return (type & (T_GROUP | T_COLL | T_P2P | T_CE_COLL | T_GROUP_API | T_COLL_API | T_P2P_API | T_KERNEL_LAUNCH)) != 0;
}

static bool is_open(const struct pair *p, uint64_t now)
{
    uint64_t ticket = get(&p->ticket);
    return ticket != 0 && (get(&p->stopped) & STOPPED) == 0 && now - ticket < (uint64_t)LAPS_OPEN * PAIRS;
}

static struct pair *pair_claim(uint64_t type, uint64_t *body)
{
    if (lasts(type)) {
        *body = 1 + atomic_fetch_add_explicit(&lasting_tickets, 1, memory_order_relaxed);
        struct pair *p = &lasting[*body % PAIRS];
        *body |= LASTING_BIT;
        return p;
    }
    for (int i = 0; i < TRIES; i++) {
        *body = 1 + atomic_fetch_add_explicit(&brief_tickets, 1, memory_order_relaxed);
        if (!is_open(&brief[*body % PAIRS], *body)) {
            break;
        }
    }
    return &brief[*body % PAIRS];
}

// What they do not follow needs no pair: ours are told apart by their tags.
static uint64_t pair_make(uint64_t type, uint64_t ours, uint64_t theirs, unsigned version)
{
    uint64_t body;
    if (theirs == 0) {
        return ours;
    }
    struct pair *p = pair_claim(type, &body);
    put(&p->ticket, 0);
    atomic_thread_fence(memory_order_release);
    put(&p->ours, ours);
    put(&p->theirs, theirs);
    put(&p->stopped, (uint64_t)version << 1);
    atomic_store_explicit(&p->ticket, body & ~LASTING_BIT, memory_order_release);
    return tagged(TAG_PAIR, body);
}

static struct pair *pair_of(const void *handle, uint64_t *ours, uint64_t *theirs)
{
    uint64_t h = (uintptr_t)handle, ticket = body_of(h) & ~LASTING_BIT;
    struct pair *p = (h & LASTING_BIT) != 0 ? &lasting[ticket % PAIRS] : &brief[ticket % PAIRS];
    *ours = tag_of(h) != TAG_PAIR ? h : 0;
    *theirs = 0;
    if (tag_of(h) != TAG_PAIR || atomic_load_explicit(&p->ticket, memory_order_acquire) != ticket) {
        return NULL;
    }
    *ours = get(&p->ours);
    *theirs = get(&p->theirs);
    atomic_thread_fence(memory_order_acquire);
    if (get(&p->ticket) == ticket) {
        return p;
    }
    *ours = *theirs = 0;
    return NULL;
}

static const size_t descr_size[ABI_NEWEST + 1] = {0, 120, 128, 120, 104, 112, 112, 136};

// A descriptor for each of the two: with parents of its own.
union descr {
    struct abi_event e;
    struct abi_event_v1 v1;
    struct abi_event_v2 v2;
    struct abi_event_v3 v3;
};

static void **group_in(unsigned abi, uint64_t type, union descr *d)
{
    if (abi < 5 || (type != T_COLL && type != T_P2P)) {
        return NULL;
    }
    return type == T_COLL ? &d->e.coll.group : &d->e.p2p.group;
}

static void translate(unsigned abi, uint64_t type, const void *descr, union descr *mine, union descr *other)
{
    uint64_t ours, theirs;
    memcpy(mine, descr, descr_size[abi]);
    memcpy(other, descr, descr_size[abi]);
    bool foreign = type == T_PROXY_OP && mine->e.proxy_op.pid != atomic_load_explicit(&own_pid, memory_order_relaxed);
    pair_of(foreign ? NULL : mine->e.parent, &ours, &theirs);
    mine->e.parent = (void *)(uintptr_t)ours;
    other->e.parent = (void *)(uintptr_t)theirs;
    void **group = group_in(abi, type, mine);
    if (group != NULL) {
        pair_of(*group, &ours, &theirs);
        *group = (void *)(uintptr_t)ours;
        *group_in(abi, type, other) = (void *)(uintptr_t)theirs;
    }
}

static void *start_theirs(struct context_pair *p, unsigned abi, uint64_t type, union descr *d)
{
    unsigned v = (unsigned)get(&p->version);
    void *handle = NULL;
    if (v == 0 || (type & (uint64_t)abi_known(v) & (uint64_t)chain_mask()) == 0) {
        return NULL;
    }
    if (v == 4 && abi >= 5 && (type == T_COLL || type == T_P2P)) {
        d->e.parent = *group_in(abi, type, d); // there, groups are parents
    }
    if (tables[v]->start((void *)(uintptr_t)get(&p->theirs), &handle, d) != 0) {
        return NULL;
    }
    return handle;
}

static int start_both(unsigned abi, void *ctx, void **handle, const void *descr)
{
    uint64_t state;
    struct context_pair *p = context_pair_of(ctx, &state);
    void *ours = NULL, *theirs = NULL;
    union descr mine, other;
    if (handle == NULL) {
        return 0;
    }
    *handle = NULL;
    if (p == NULL || descr == NULL) {
        return own_start(abi, NULL, handle, descr);
    }
    uint64_t type = type_of(abi, descr);
    translate(abi, type, descr, &mine, &other);
    own_start(abi, (void *)(uintptr_t)get(&p->ours), &ours, &mine);
    theirs = start_theirs(p, abi, type, &other);
    *handle = (void *)(uintptr_t)pair_make(type, (uintptr_t)ours, (uintptr_t)theirs, (unsigned)get(&p->version));
    return 0;
}

HOT int chain_start(unsigned abi, void *ctx, void **handle, const void *descr)
{
    return on ? start_both(abi, ctx, handle, descr) : own_start(abi, ctx, handle, descr);
}

static int stop_both(void *handle)
{
    uint64_t ours, theirs;
    struct pair *p = pair_of(handle, &ours, &theirs);
    if (p == NULL) {
        return own_stop(handle);
    }
    uint64_t before = atomic_fetch_or_explicit(&p->stopped, STOPPED, memory_order_relaxed);
    own_stop((void *)(uintptr_t)ours);
    if (theirs != 0 && (before & STOPPED) == 0) {
        tables[before >> 1]->stop((void *)(uintptr_t)theirs);
    }
    return 0;
}

HOT int chain_stop(void *handle) { return on ? stop_both(handle) : own_stop(handle); }

static int state_both(void *handle, int state, void *args)
{
    uint64_t ours, theirs;
    struct pair *p = pair_of(handle, &ours, &theirs);
    if (p == NULL) {
        return own_state(handle, state, args);
    }
    own_state((void *)(uintptr_t)ours, state, args);
    uint64_t stopped = get(&p->stopped);
    if (theirs != 0 && (stopped & STOPPED) == 0) {
        tables[stopped >> 1]->state((void *)(uintptr_t)theirs, state, args);
    }
    return 0;
}

HOT int chain_state(void *handle, int state, void *args)
{
    return on ? state_both(handle, state, args) : own_state(handle, state, args);
}

static int finalize_both(void *ctx)
{
    uint64_t state;
    struct context_pair *p = context_pair_of(ctx, &state);
    if (p == NULL) {
        return context_finalize(ctx);
    }
    void *ours = (void *)(uintptr_t)get(&p->ours), *theirs = (void *)(uintptr_t)get(&p->theirs);
    unsigned v = (unsigned)get(&p->version);
    if (!atomic_compare_exchange_strong(&p->state, &state, state - 1)) {
        return 0;
    }
    if (v != 0) {
        tables[v]->finalize(theirs);
    }
    return context_finalize(ours);
}

int chain_finalize(void *ctx) { return on ? finalize_both(ctx) : context_finalize(ctx); }
