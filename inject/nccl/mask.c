// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What is asked of NCCL: events by level, written where NCCL looks.
#include "plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// NCCL's word is only touched under this lock, and only while one of its
// communicators lives: after that, NCCL may be gone.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const int known[ABI_NEWEST + 1] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};

int abi_known(unsigned abi) { return known[abi]; }

static int by_level(uint32_t level)
{
    int m = T_COLL | T_P2P | T_KERNEL_CH | T_PROXY_OP | T_CE_COLL;
    if (level >= LOCKSTEP_LEVEL_COLLECTIVES) {
        m |= T_PROXY_STEP;
    }
    if (level >= LOCKSTEP_LEVEL_ALL) {
        m |= T_GROUP_API | T_COLL_API | T_P2P_API | T_KERNEL_LAUNCH | T_KERNEL_PHASE | T_NET_PLUGIN | T_CE_SYNC |
             T_CE_BATCH;
    }
    return m;
}

// LOCKSTEP_EVENT_MASK, or -1; read once.
static int from_environment(void)
{
    static _Atomic int value = -2;
    int v = atomic_load_explicit(&value, memory_order_relaxed);
    if (v == -2) {
        const char *s = getenv("LOCKSTEP_EVENT_MASK");
        char *end = NULL;
        long n = s != NULL && *s != '\0' ? strtol(s, &end, 0) : -1;
        v = n >= 0 && n <= 0xffff && *end == '\0' ? (int)n : -1;
        atomic_store_explicit(&value, v, memory_order_relaxed);
    }
    return v;
}

const char *mask_problem(void)
{
    const char *s = getenv("LOCKSTEP_EVENT_MASK");
    static char text[128];
    if (s == NULL || *s == '\0' || from_environment() >= 0) {
        return NULL;
    }
    snprintf(text, sizeof text, "LOCKSTEP_EVENT_MASK: got \"%.32s\"; want a number from 0 to 0xffff: the level's is used", s);
    return text;
}

int mask_wanted(struct lockstep_ring *r, unsigned abi)
{
    int m = from_environment();
    return (m >= 0 ? m : by_level(lockstep_level(r))) & known[abi];
}

int mask_closure(int m)
{
    if ((m & T_NET_PLUGIN) != 0) {
        m |= T_PROXY_STEP;
    }
    if ((m & T_PROXY_STEP) != 0) {
        m |= T_PROXY_OP;
    }
    if ((m & T_KERNEL_PHASE) != 0) {
        m |= T_KERNEL_CH;
    }
    if ((m & (T_PROXY_OP | T_KERNEL_CH)) != 0) {
        m |= T_COLL | T_P2P;
    }
    if ((m & (T_CE_SYNC | T_CE_BATCH)) != 0) {
        m |= T_CE_COLL;
    }
    if ((m & (T_COLL | T_P2P | T_CE_COLL)) != 0) {
        m |= T_GROUP | T_COLL_API | T_P2P_API | T_GROUP_API;
    }
    if ((m & (T_COLL_API | T_P2P_API | T_KERNEL_LAUNCH)) != 0) {
        m |= T_GROUP_API;
    }
    return m;
}

// What both plugins want, and what of it was ours.
static uint64_t wanted_by_both(struct lockstep_ring *r, unsigned abi)
{
    return (uint64_t)mask_wanted(r, abi) | (uint64_t)(chain_mask() & known[abi]) << 16;
}

static void write_mask(struct context *c, uint64_t wanted)
{
    put(&c->asked, wanted | MASK_WRITTEN);
    if (c->mask != NULL) {
        __atomic_store_n(c->mask, (int)((wanted | wanted >> 16) & 0xffff), __ATOMIC_RELAXED);
    }
}

void mask_attach(struct lockstep_ring *r, struct context *c, unsigned abi, int *mask)
{
    pthread_mutex_lock(&lock);
    c->mask = mask;
    write_mask(c, wanted_by_both(r, abi));
    pthread_mutex_unlock(&lock);
}

void mask_detach(struct context *c)
{
    pthread_mutex_lock(&lock);
    c->mask = NULL;
    put(&c->asked, 0);
    pthread_mutex_unlock(&lock);
}

// Writes only where the level changed, so that what others set meanwhile (NCCL's
// own RAS can) stays.
void masks_follow(struct lockstep_ring *r)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        struct context *c = context_at(i);
        uint64_t asked = get(&c->asked);
        uint64_t wanted = wanted_by_both(r, (unsigned)get(&c->abi));
        if ((asked & MASK_WRITTEN) != 0 && asked != (wanted | MASK_WRITTEN)) {
            write_mask(c, wanted);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool level_all(struct lockstep_ring *r) { return lockstep_level(r) == LOCKSTEP_LEVEL_ALL; }
