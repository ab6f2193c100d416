// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Communicators.
#define _GNU_SOURCE
#include "plugin.h"
#include "ring_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATE_BITS 8
#define UNKNOWN_COMM_PEERS 1024u
#define MIN_PEERS 256u
#define MAX_PEERS 65536u

static struct context contexts[MAX_CONTEXTS];
static _Atomic uint32_t next_context;
static _Atomic uint32_t live;
static _Atomic bool logged;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;
static const char *problems[2]; // of the environment; NULL is none

uint32_t thread_id(void)
{
    static _Thread_local uint32_t tid;
    if (tid == 0) {
        tid = (uint32_t)syscall(SYS_gettid);
    }
    return tid;
}

struct context *context_at(uint32_t index) { return &contexts[index % MAX_CONTEXTS]; }
uint32_t context_index(const struct context *c) { return (uint32_t)(c - contexts); }

static uint64_t handle_of(const struct context *c, uint64_t word)
{
    return tagged(TAG_CONTEXT, (word >> STATE_BITS) << 16 | (context_index(c) + 1));
}

HOT struct context *context_of(void *handle, bool *finished)
{
    uint64_t h = (uintptr_t)handle, index = h & 0xffff;
    *finished = false;
    if (tag_of(h) != TAG_CONTEXT || index == 0 || index > MAX_CONTEXTS) {
        return NULL;
    }
    struct context *c = &contexts[index - 1];
    uint64_t w = atomic_load_explicit(&c->generation, memory_order_acquire);
    if ((w & 0xff) == CTX_LIVE && handle_of(c, w) == h) {
        return c;
    }
    *finished = true;
    return NULL;
}

// The one that has been free the longest, nearly: generations do the rest.
static struct context *context_claim(uint64_t *word)
{
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        uint32_t n = atomic_fetch_add_explicit(&next_context, 1, memory_order_relaxed);
        struct context *c = &contexts[n % MAX_CONTEXTS];
        uint64_t w = atomic_load_explicit(&c->generation, memory_order_relaxed);
        uint64_t busy = ((w >> STATE_BITS) + 1) << STATE_BITS | CTX_BUSY;
        if ((w & 0xff) == CTX_FREE && atomic_compare_exchange_strong_explicit(
                                          &c->generation, &w, busy, memory_order_acq_rel, memory_order_relaxed)) {
            *word = busy;
            return c;
        }
    }
    return NULL;
}

static uint64_t peers_for(int ranks)
{
    uint64_t n = MIN_PEERS;
    if (ranks <= 0) {
        return UNKNOWN_COMM_PEERS;
    }
    while (n < 4 * (uint64_t)ranks && n < MAX_PEERS) {
        n *= 2;
    }
    return n;
}

// Words from `orders` to `window` are counters that start at 0.
static void context_clear(struct context *c, int ranks)
{
    lockstep_word *first = &c->orders, *end = (lockstep_word *)(void *)&c->peers;
    for (lockstep_word *w = first; w < end; w++) {
        put(w, 0);
    }
    uint64_t n = peers_for(ranks);
    if (c->npeers < n) {
        // The former table is left alone: a late caller may look at it. Tables
        // grow, so that all of them are smaller than the last.
        struct peer_count *p = calloc(n, sizeof *p);
        if (p != NULL) {
            c->peers = p;
            c->npeers = n;
        }
        return;
    }
    for (uint64_t i = 0; i < c->npeers; i++) {
        put(&c->peers[i].count, 0);
        put(&c->peers[i].key, 0);
    }
}

static void tick(void *arg)
{
    masks_follow(arg);
    ops_sweep(arg);
    proxy_ops_show(arg);
}

// To stderr, as the ring's own status: before version 4 there is no other way.
static void know_problems(void)
{
    problems[0] = chain_problem();
    problems[1] = mask_problem();
    for (unsigned i = 0; i < 2 && ring_env_true("LOCKSTEP_DEBUG"); i++) {
        if (problems[i] != NULL) {
            dprintf(STDERR_FILENO, "lockstep: %s\n", problems[i]);
        }
    }
}

static void setup(void)
{
    know_problems();
    struct lockstep_ring *r = lockstep_ring_process();
    usable = r != NULL && pools_init() && ops_init(r);
    if (usable) {
        lockstep_ring_on_tick(r, tick, r);
    }
}

// A setting that was put right or left out is told of as what does not work is. A
// forked child has no ring, whatever its parent had.
static int gravity(struct lockstep_ring *r)
{
    return r != NULL && usable && private_of(r)->cfg.notes[0] == '\0' ? ABI_LOG_INFO : ABI_LOG_WARN;
}

// Once for the process, by way of NCCL's own log, which there is since version 4.
static void say(const struct naming *n, struct lockstep_ring *r)
{
    if (n->log == NULL || atomic_exchange(&logged, true)) {
        return;
    }
    n->log(gravity(r), ABI_LOG_PROFILE, "lockstep", __LINE__, "PROFILER/lockstep: %s", lockstep_ring_status());
    for (unsigned i = 0; i < 2; i++) {
        if (problems[i] != NULL) {
            n->log(ABI_LOG_WARN, ABI_LOG_PROFILE, "lockstep", __LINE__, "PROFILER/lockstep: %s", problems[i]);
        }
    }
}

// A name that may belong to an NCCL that was unloaded since is looked at again.
static void begin_life(void)
{
    if (atomic_fetch_add(&live, 1) == 0) {
        codes_forget();
    }
}

static void context_fill(struct lockstep_ring *r, struct context *c, unsigned abi, const struct naming *n)
{
    put(&c->abi, abi);
    put(&c->rank, (uint32_t)n->rank);
    put(&c->created, lockstep_now());
    put(&c->comm, 0);
    c->gpu = gpu_of_thread(r);
    context_clear(c, n->ranks);
    if (abi >= 4) {
        put(&c->comm, 1u + lockstep_comm_add(r, n->hash, n->ranks, n->rank, n->nodes, abi, c->gpu, n->name));
    }
}

int context_init(void **ctx, int *mask, unsigned abi, const struct naming *n)
{
    struct lockstep_ring *r = lockstep_ring_process();
    pthread_once(&once, setup);
    say(n, r);
    if (ctx == NULL) {
        return 0;
    }
    *ctx = NULL;
    uint64_t word = 0;
    struct context *c = r != NULL && usable ? context_claim(&word) : NULL;
    if (c == NULL) {
        if (r != NULL) {
            lockstep_drop(r, LOCKSTEP_D_COMMS_FULL);
        }
        return 0;
    }
    begin_life();
    atomic_fetch_or_explicit(&r->header->witnesses, LOCKSTEP_W_NCCL, memory_order_relaxed);
    context_fill(r, c, abi, n);
    mask_attach(r, c, abi, mask);
    word = (word & ~0xffull) | CTX_LIVE;
    atomic_store_explicit(&c->generation, word, memory_order_release);
    *ctx = (void *)(uintptr_t)handle_of(c, word);
    return 0;
}

int context_finalize(void *ctx)
{
    struct lockstep_ring *r = lockstep_ring_process();
    bool finished;
    struct context *c = context_of(ctx, &finished);
    if (c == NULL || r == NULL) {
        if (finished && r != NULL) {
            lockstep_drop(r, LOCKSTEP_D_FINALIZED);
        }
        return 0;
    }
    uint64_t w = get(&c->generation), busy = (w & ~0xffull) | CTX_BUSY;
    if (!atomic_compare_exchange_strong(&c->generation, &w, busy)) {
        return 0;
    }
    mask_detach(c);
    ops_abandon(r, c);
    uint64_t comm = get(&c->comm);
    if (comm > 1) {
        lockstep_comm_end(r, (uint16_t)(comm - 1));
    }
    atomic_fetch_sub(&live, 1);
    atomic_store_explicit(&c->generation, (w & ~0xffull) | CTX_FREE, memory_order_release);
    return 0;
}

#define COMM_NAMING UINT64_MAX

// Before version 4 a communicator's hash comes with its first operation.
uint16_t context_comm(struct lockstep_ring *r, struct context *c, uint64_t hash, const char *name, int rank)
{
    uint64_t comm = get(&c->comm);
    if (comm == 0 && atomic_compare_exchange_strong(&c->comm, &comm, COMM_NAMING)) {
        comm = 1u + lockstep_comm_add(r, hash, LOCKSTEP_NONE, rank, LOCKSTEP_NONE, (uint32_t)get(&c->abi), c->gpu, name);
        put(&c->comm, comm);
    }
    return comm == 0 || comm == COMM_NAMING ? 0 : (uint16_t)(comm - 1);
}

// Streams are numbered from 1 as they come; 0 is an unknown one, as before
// version 5. Beyond the table all share a number, which so proves nothing.
uint16_t context_stream(struct context *c, uint64_t key)
{
    if ((key & KEY_STREAM) == 0) {
        return 0;
    }
    for (unsigned i = 0; i + 1 < STREAMS; i++) {
        uint64_t known = get(&c->streams[i]);
        if (known == key || (known == 0 && (atomic_compare_exchange_strong(&c->streams[i], &known, key) ||
                                               known == key))) {
            return (uint16_t)(i + 1);
        }
    }
    return STREAMS;
}

#define PEER_TRIES 64u

// Number of this message between here and a peer, from 0.
uint64_t context_message(struct lockstep_ring *r, struct context *c, int peer, bool send)
{
    uint64_t key = 1 | (uint64_t)send << 1 | (uint64_t)(uint32_t)peer << 2;
    uint64_t at = key * 0x9e3779b97f4a7c15ull >> 32;
    for (unsigned i = 0; i < PEER_TRIES && c->npeers != 0; i++, at++) {
        struct peer_count *p = &c->peers[at & (c->npeers - 1)];
        uint64_t k = get(&p->key);
        if (k == key || (k == 0 && (atomic_compare_exchange_strong(&p->key, &k, key) || k == key))) {
            return atomic_fetch_add_explicit(&p->count, 1, memory_order_relaxed);
        }
    }
    lockstep_drop(r, LOCKSTEP_D_FRONTIERS_FULL);
    return UINT64_MAX;
}
