// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Names, communicators, GPUs and frontiers: tables that only grow.
#include "ring_internal.h"

#include <sched.h>
#include <string.h>
#include <time.h>

// Waits for an entry that another thread is writing: some microseconds of work,
// unless it lost its core meanwhile. In all 0.1 s, since it must end.
#define WRITING_YIELDS 100
#define WRITING_NAPS 1000
#define WRITING_NAP_NS 100000
// Places of the frontier table looked at; beyond, it is as good as full.
#define FRONTIER_TRIES 64u

// Set in every ring before all others: what most programs use costs no search.
static const char *const seeds[] = {
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", "SendRecv", "AlltoAll",
    "AllToAll", "AllToAllv", "Gather", "Scatter", "AllGatherV", "Barrier", "PutSignal", "Signal", "WaitSignal",
    "ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64", "ncclUint64", "ncclFloat16", "ncclFloat32",
    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2", "ncclChar", "ncclInt", "ncclHalf",
    "ncclFloat", "ncclDouble", "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT", "LL",
    "LL128", "SIMPLE", "Unknown", "unknown", "data_loading", "forward", "backward", "optimizer", "compile",
    "checkpoint", "eval", "init", "garbage_collection", "checkpoint_save", "checkpoint_load", "process_group",
    "(other)",
};

static bool wait_written(lockstep_word *state, uint64_t writing)
{
    const struct timespec nap = {0, WRITING_NAP_NS};
    for (int i = 0; i < WRITING_YIELDS + WRITING_NAPS; i++) {
        if (atomic_load_explicit(state, memory_order_acquire) != writing) {
            return true;
        }
        if (i < WRITING_YIELDS) {
            sched_yield();
        } else {
            nanosleep(&nap, NULL);
        }
    }
    return false;
}

static bool claim_entry(lockstep_word *state, uint64_t free, uint64_t writing)
{
    return atomic_compare_exchange_strong_explicit(state, &free, writing, memory_order_acquire, memory_order_acquire);
}

// Bytes of the text that fit, not ending within a UTF-8 sequence.
static size_t fitting(const char *text, size_t room)
{
    size_t n = strnlen(text, room);
    if (n < room || text[n] == '\0') {
        return n;
    }
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) {
        n--;
    }
    return n;
}

static uint32_t hash_text(const char *text, size_t n)
{
    uint32_t h = 2166136261u; // FNV-1a
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    }
    return h;
}

static bool holds(const struct lockstep_string *s, const char *text, size_t n)
{
    return atomic_load_explicit(&s->state, memory_order_acquire) == 2 && memcmp(s->text, text, n) == 0 &&
           s->text[n] == '\0';
}

// The entry with this text among some, made where there is none; 0: no room.
static uint16_t find_or_add(struct lockstep_ring *r, uint64_t first, uint64_t end, const char *text, size_t n)
{
    for (uint64_t code = first; code < end; code++) {
        struct lockstep_string *s = &r->strings[code];
        if (claim_entry(&s->state, 0, 1)) {
            memcpy(s->text, text, n);
            s->text[n] = '\0';
            atomic_store_explicit(&s->state, 2, memory_order_release);
            return (uint16_t)code;
        }
        wait_written(&s->state, 1);
        if (holds(s, text, n)) {
            return (uint16_t)code;
        }
    }
    lockstep_drop(r, LOCKSTEP_D_STRINGS_FULL);
    return 0;
}

uint16_t lockstep_intern(struct lockstep_ring *r, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    size_t n = fitting(text, sizeof r->strings[0].text - 1);
    _Atomic uint16_t *cached = &private_of(r)->text_index[hash_text(text, n) & (TEXT_INDEX - 1)];
    uint16_t code = atomic_load_explicit(cached, memory_order_acquire);
    if (code != 0 && holds(&r->strings[code], text, n)) {
        return code;
    }
    code = find_or_add(r, 1, SHORT_CODES, text, n);
    if (code != 0) {
        atomic_store_explicit(cached, code, memory_order_release);
    }
    return code;
}

uint16_t ring_add_name(struct lockstep_ring *r, const char *text, size_t n)
{
    return find_or_add(r, SHORT_CODES, r->nstrings, text, n);
}

void ring_seed_strings(struct lockstep_ring *r)
{
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        ring_seed_name(r, seeds[i]);
    }
}

static void fill_comm(struct lockstep_comm *c, const char *name)
{
    size_t n = name != NULL ? fitting(name, sizeof c->name - 1) : 0;
    if (n > 0) {
        memcpy(c->name, name, n);
    }
    c->created = lockstep_now();
    atomic_store_explicit(&c->state, LOCKSTEP_E_LIVE, memory_order_release);
}

uint16_t lockstep_comm_add(struct lockstep_ring *r, uint64_t hash, int32_t nranks, int32_t rank, int32_t nnodes,
                           uint32_t abi, uint32_t gpu, const char *name)
{
    for (uint64_t i = 1; i < r->ncomms; i++) {
        struct lockstep_comm *c = &r->comms[i];
        if (!claim_entry(&c->state, LOCKSTEP_E_FREE, LOCKSTEP_E_WRITING)) {
            continue;
        }
        c->hash = hash;
        c->nranks = nranks;
        c->rank = rank;
        c->nnodes = nnodes;
        c->abi = abi;
        c->gpu = gpu;
        fill_comm(c, name);
        return (uint16_t)i;
    }
    lockstep_drop(r, LOCKSTEP_D_COMMS_FULL);
    return 0;
}

void lockstep_comm_end(struct lockstep_ring *r, uint16_t comm)
{
    if (comm == 0 || comm >= r->ncomms) {
        return;
    }
    uint64_t live = LOCKSTEP_E_LIVE;
    atomic_compare_exchange_strong_explicit(&r->comms[comm].state, &live, LOCKSTEP_E_ENDED, memory_order_release,
                                            memory_order_relaxed);
}

uint32_t lockstep_gpu_add(struct lockstep_ring *r, const uint8_t uuid[16], int32_t device)
{
    for (uint64_t i = 1; i < r->ngpus; i++) {
        struct lockstep_gpu *g = &r->gpus[i];
        if (claim_entry(&g->state, LOCKSTEP_E_FREE, LOCKSTEP_E_WRITING)) {
            memcpy(g->uuid, uuid, sizeof g->uuid);
            g->device = device;
            atomic_store_explicit(&g->state, LOCKSTEP_E_LIVE, memory_order_release);
            return (uint32_t)i;
        }
        if (wait_written(&g->state, LOCKSTEP_E_WRITING) && memcmp(g->uuid, uuid, sizeof g->uuid) == 0) {
            return (uint32_t)i;
        }
    }
    lockstep_drop(r, LOCKSTEP_D_COMMS_FULL);
    return 0;
}

static uint64_t frontier_key(uint16_t comm, uint8_t func) { return 1 | (uint64_t)comm << 16 | (uint64_t)func << 32; }

struct lockstep_frontier *lockstep_frontier_of(struct lockstep_ring *r, uint16_t comm, uint8_t func)
{
    uint64_t key = frontier_key(comm, func);
    uint64_t at = (key * 0x9e3779b97f4a7c15ull) >> 32;
    for (uint32_t i = 0; i < FRONTIER_TRIES; i++, at++) {
        struct lockstep_frontier *f = &r->frontiers[at & (r->nfrontiers - 1)];
        uint64_t k = atomic_load_explicit(&f->key, memory_order_relaxed);
        if (k == key) {
            return f;
        }
        if (k == 0 && (atomic_compare_exchange_strong_explicit(&f->key, &k, key, memory_order_relaxed,
                                                               memory_order_relaxed) ||
                       k == key)) {
            return f;
        }
    }
    lockstep_drop(r, LOCKSTEP_D_FRONTIERS_FULL);
    return NULL;
}

void lockstep_frontier_raise(lockstep_word *seq, lockstep_word *at, uint64_t to, uint64_t now)
{
    uint64_t stored = to + 1;
    uint64_t old = atomic_load_explicit(seq, memory_order_relaxed);
    while (old < stored) {
        if (atomic_compare_exchange_weak_explicit(seq, &old, stored, memory_order_relaxed, memory_order_relaxed)) {
            atomic_store_explicit(at, now, memory_order_relaxed);
            return;
        }
    }
}
