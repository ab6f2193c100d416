// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Work requests of network plugins, where they tell of them.
#include "plugin.h"

uint64_t net_start(struct lockstep_ring *r, const struct abi_event *e)
{
    uint64_t parent = (uintptr_t)e->parent;
    struct entry *step = pool_of(&proxy_steps, TAG_PROXY_STEP, parent);
    if (step == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return 0;
    }
    struct entry *n = pool_claim(r, &nets, get(&step->op));
    if (n == NULL) {
        return 0;
    }
    uint64_t id = (uint64_t)e->net.id, number = 0, opcode = 0, length = 0;
    bool send = (get(&step->what) >> 40 & 0xff) != 0;
    if (id == ABI_NET_IB && e->net.data != NULL) {
        const struct abi_net_ib *q = e->net.data;
        number = (uint32_t)q->qp;
        // NCCL does not set these of a receive.
        opcode = send ? (uint32_t)q->opcode : 0;
        length = send ? q->length : 0;
    } else if (id == ABI_NET_SOCKET && e->net.data != NULL) {
        const struct abi_net_socket *s = e->net.data;
        number = (uint32_t)s->fd;
        opcode = (uint32_t)s->op;
        length = s->length;
    }
    put(&n->begin, lockstep_now());
    put(&n->sum, id);
    put(&n->what, lockstep_pair((uint32_t)number, (uint32_t)opcode));
    put(&n->size, length);
    return pool_publish(&nets, TAG_NET, n);
}

void net_state(struct lockstep_ring *r, uint64_t handle, const void *args)
{
    (void)args; // plugins may tell more under ids of their own: of no known form
    if (pool_of(&nets, TAG_NET, handle) == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
    }
}

void net_stop(struct lockstep_ring *r, uint64_t handle)
{
    struct entry *n = pool_of(&nets, TAG_NET, handle);
    if (n == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    struct lockstep_slot *s = lockstep_slot_of(r, get(&n->op));
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_NET, LOCKSTEP_LEVEL_ALL, 0, s != NULL ? get(&s->word[1]) >> 32 & 0xffff : 0, 0, 0),
        [2] = get(&n->begin),
        [3] = lockstep_now(),
        [4] = get(&n->sum),
        [5] = get(&n->what),
        [6] = get(&n->size),
        [7] = get(&n->op),
    };
    if (pool_free(n, handle)) {
        lockstep_emit(r, word);
    } else {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
    }
}
