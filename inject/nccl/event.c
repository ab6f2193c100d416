// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Starts, states and stops, sent on to what they concern.
#include "plugin.h"

// Number of a group, all that is ever asked of it.
static uint64_t group_start(struct context *c)
{
    return tagged(TAG_GROUP, 1 + (atomic_fetch_add_explicit(&c->groups, 1, memory_order_relaxed) & 0x7fffffff));
}

uint64_t type_of(unsigned abi, const void *descr)
{
    return abi <= 4 ? *(const uint8_t *)descr : *(const uint64_t *)descr;
}

// Events that begin something on the communicator's own threads.
static uint64_t start_on(struct lockstep_ring *r, struct context *c, unsigned abi, uint64_t type, const void *descr)
{
    switch (type) {
    case T_GROUP: return group_start(c);
    case T_COLL: return coll_start(r, c, abi, descr);
    case T_P2P: return p2p_start(r, c, abi, descr);
    case T_KERNEL_CH: return abi >= 3 ? kernel_start(r, c, abi, descr) : 0;
    case T_CE_COLL: return ce_start(r, c, descr);
    case T_GROUP_API:
    case T_COLL_API:
    case T_P2P_API:
    case T_KERNEL_LAUNCH: return api_start(r, c, descr, type);
    default: return 0;
    }
}

static bool is_known(unsigned abi, uint64_t type)
{
    return type != 0 && (type & (type - 1)) == 0 && (type & (uint64_t)abi_known(abi)) != 0;
}

static uint64_t start(struct lockstep_ring *r, struct context *c, unsigned abi, uint64_t type, const void *descr)
{
    switch (type) {
    case T_PROXY_STEP: return proxy_step_start(r, descr);
    case T_PROXY_OP: return proxy_op_start(r, descr);
    case T_KERNEL_PHASE: return phase_start(r, descr);
    case T_NET_PLUGIN: return net_start(r, descr);
    case T_PROXY_CTRL:
    case T_CE_SYNC:
    case T_CE_BATCH: return 0; // of no use here
    default: return start_on(r, c, abi, type, descr);
    }
}

HOT int own_start(unsigned abi, void *ctx, void **handle, const void *descr)
{
    struct lockstep_ring *r = lockstep_ring_process();
    bool finished;
    if (handle == NULL) {
        return 0;
    }
    *handle = NULL;
    if (r == NULL) {
        return 0;
    }
    struct context *c = context_of(ctx, &finished);
    if (c == NULL || descr == NULL) {
        lockstep_drop(r, descr == NULL ? LOCKSTEP_D_NULL_ARGS
                                       : finished ? LOCKSTEP_D_FINALIZED : LOCKSTEP_D_STALE_HANDLE);
        return 0;
    }
    uint64_t type = type_of(abi, descr);
    if (!is_known(abi, type)) {
        lockstep_drop(r, LOCKSTEP_D_UNKNOWN_EVENT);
        return 0;
    }
    *handle = (void *)(uintptr_t)start(r, c, abi, type, descr);
    return 0;
}

static void op_stop(struct lockstep_ring *r, uint64_t h)
{
    struct lockstep_slot *s;
    struct op *o = op_of(r, h, &s);
    if (o != NULL && (get(&o->flags) & LOCKSTEP_F_CE) != 0) {
        op_enqueued_only(r, h); // nothing tells when the copy engine is done
    } else {
        op_enqueued(r, h);
    }
}

HOT int own_stop(void *handle)
{
    struct lockstep_ring *r = lockstep_ring_process();
    uint64_t h = (uintptr_t)handle;
    if (r == NULL || h == 0) {
        return 0;
    }
    switch (tag_of(h)) {
    case TAG_PROXY_STEP: proxy_step_stop(r, h); break;
    case TAG_KERNEL_CH:
    case TAG_KERNEL_PHASE: kernel_stop(r, h); break;
    case TAG_PROXY_OP: proxy_op_stop(r, h); break;
    case TAG_OP: op_stop(r, body_of(h)); break;
    case TAG_NET: net_stop(r, h); break;
    case TAG_GROUP_API:
    case TAG_API:
    case TAG_LAUNCH: call_end(r, h); break;
    case TAG_GROUP: break;
    default: lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE); break;
    }
    return 0;
}

HOT int own_state(void *handle, int state, void *args)
{
    struct lockstep_ring *r = lockstep_ring_process();
    uint64_t h = (uintptr_t)handle;
    if (r == NULL || h == 0) {
        return 0;
    }
    switch (tag_of(h)) {
    case TAG_PROXY_STEP: proxy_step_state(r, h, state, args); break;
    case TAG_KERNEL_CH:
    case TAG_KERNEL_PHASE: kernel_state(r, h, state, args); break;
    case TAG_NET: net_state(r, h, args); break;
    case TAG_PROXY_OP: // that it is in progress, and the eight states before version 4
    case TAG_GROUP:
    case TAG_GROUP_API: // where its parts begin and end
    case TAG_API:
    case TAG_LAUNCH:
    case TAG_OP: break;
    default: lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE); break;
    }
    return 0;
}
