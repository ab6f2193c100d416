// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Calls into NCCL, named as parents by what they enqueue.
#include "plugin.h"

#define CALLS 4096u    // outside graphs: of these, the last are known
#define CAPTURED 4096u // into graphs: named again at every replay
#define CAPTURED_BIT (1ull << 55)

static struct call calls[CALLS], captured_calls[CAPTURED];
static lockstep_word tickets, captured_tickets;

static struct call *entry_of(uint64_t body)
{
    uint64_t ticket = body & ~CAPTURED_BIT;
    return (body & CAPTURED_BIT) != 0 ? &captured_calls[ticket % CAPTURED] : &calls[ticket % CALLS];
}

uint64_t call_begin(enum tag tag, struct context *c, uint32_t code, uint64_t count, uint64_t stream, bool captured)
{
    uint64_t body = 1 + atomic_fetch_add_explicit(captured ? &captured_tickets : &tickets, 1, memory_order_relaxed);
    if (captured) {
        body |= CAPTURED_BIT;
    }
    struct call *k = entry_of(body);
    put(&k->ticket, 0);
    atomic_thread_fence(memory_order_release);
    put(&k->context, c != NULL ? context_index(c) + 1 : 0);
    put(&k->begin, lockstep_now());
    put(&k->stream, stream);
    put(&k->count, count);
    put(&k->what, code | (uint64_t)captured << 32);
    atomic_store_explicit(&k->ticket, body, memory_order_release);
    return tagged(tag, body);
}

bool call_read(uint64_t handle, struct call *copy)
{
    struct call *k = entry_of(body_of(handle));
    if (atomic_load_explicit(&k->ticket, memory_order_acquire) != body_of(handle)) {
        return false;
    }
    put(&copy->context, get(&k->context));
    put(&copy->begin, get(&k->begin));
    put(&copy->stream, get(&k->stream));
    put(&copy->count, get(&k->count));
    put(&copy->what, get(&k->what));
    atomic_thread_fence(memory_order_acquire);
    return get(&k->ticket) == body_of(handle);
}

static void call_emit(struct lockstep_ring *r, const struct call *k)
{
    uint64_t context = get(&k->context);
    uint64_t comm = context != 0 ? get(&context_at((uint32_t)context - 1)->comm) : 0;
    uint64_t what = get(&k->what);
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_API, LOCKSTEP_LEVEL_ALL, 0, comm != 0 ? (unsigned)comm - 1 : 0, what & 0xff, 0),
        [2] = get(&k->begin),
        [3] = lockstep_now(),
        [4] = lockstep_pair(current_step(r), 0),
        [5] = lockstep_pair((uint32_t)what, what >> 32 & 1),
        [6] = get(&k->count),
        [7] = get(&k->stream),
    };
    word[4] |= (uint64_t)thread_id() << 32;
    lockstep_emit(r, word);
}

#define ENDED (1ull << 33)

void call_end(struct lockstep_ring *r, uint64_t handle)
{
    struct call copy;
    if (!call_read(handle, &copy)) {
        return; // overwritten meanwhile: only its record at level all is lost
    }
    struct call *k = entry_of(body_of(handle));
    if ((atomic_fetch_or_explicit(&k->what, ENDED, memory_order_relaxed) & ENDED) != 0) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    if (level_all(r)) {
        call_emit(r, &copy);
    }
}

uint64_t api_start(struct lockstep_ring *r, struct context *c, const struct abi_event *e, uint64_t type)
{
    switch (type) {
    case T_GROUP_API:
        return call_begin(TAG_GROUP_API, c, code_of(r, "Group"), 0, 0, e->group_api.captured);
    case T_COLL_API:
        return call_begin(TAG_API, c, code_of(r, e->coll_api.func), e->coll_api.count, (uintptr_t)e->coll_api.stream,
                          e->coll_api.captured);
    case T_P2P_API:
        return call_begin(TAG_API, c, code_of(r, e->p2p_api.func), e->p2p_api.count, (uintptr_t)e->p2p_api.stream,
                          e->p2p_api.captured);
    default:
        return call_begin(TAG_LAUNCH, c, code_of(r, "KernelLaunch"), 0, (uintptr_t)e->kernel_launch.stream, false);
    }
}
