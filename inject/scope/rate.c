// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// How many scopes a lane takes. A thread writes its scopes where it writes the
// operations of NCCL, and the lane overwrites what is oldest: whoever makes scopes
// without end must not push out operations that nobody has read yet.
//
// Each scope uses up 2 / capacity seconds of its lane's time, and half a second
// may be saved up or owed: at most 3/4 of a lane's records in any second are
// scopes. A reader looks every 100 ms, so one that comes ten looks late still
// finds all of them, and as many operations as there is room for in the rest.
#include "scope.h"

#define SCOPES_NS 2000000000ull // for as many scopes as a lane has records
#define AHEAD_NS 500000000ull
#define MAX_LANES 1024u // of a ring

// Until when a lane's time is used up; each on a cache line of its own.
static struct {
    _Alignas(64) lockstep_word due;
} lanes[MAX_LANES];

static inline uint64_t next_due(uint64_t due, uint64_t now, uint64_t each) { return (due > now ? due : now) + each; }

static bool take_own(lockstep_word *due, uint64_t now, uint64_t each)
{
    uint64_t d = atomic_load_explicit(due, memory_order_relaxed);
    if (d > now + AHEAD_NS) {
        return false;
    }
    atomic_store_explicit(due, next_due(d, now, each), memory_order_relaxed);
    return true;
}

// Lane 0 belongs to several threads.
static bool take_shared(lockstep_word *due, uint64_t now, uint64_t each)
{
    uint64_t d = atomic_load_explicit(due, memory_order_relaxed);
    do {
        if (d > now + AHEAD_NS) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(due, &d, next_due(d, now, each), memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool scope_take(struct lockstep_ring *r, uint32_t lane, uint64_t now)
{
    uint64_t each = SCOPES_NS >> __builtin_ctzll(r->capacity);
    lockstep_word *due = &lanes[lane].due;
    bool taken = lane != 0 ? take_own(due, now, each) : take_shared(due, now, each);
    if (!taken) {
        lockstep_drop(r, LOCKSTEP_D_SCOPES_RATE);
    }
    return taken;
}
