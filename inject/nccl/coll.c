// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Collectives, messages, and collectives that the copy engine executes.
#include "plugin.h"

#include <string.h>

// The stream and whether it is in a graph are known of the call that asked for
// the operation, by then over.
static void ask_call(struct op_descr *d)
{
    struct call k;
    unsigned tag = tag_of(d->parent);
    if ((tag != TAG_API && tag != TAG_GROUP_API) || !call_read(d->parent, &k)) {
        return;
    }
    d->on_stream = tag == TAG_API;
    d->stream = get(&k.stream);
    if ((get(&k.what) >> 32 & 1) != 0) {
        d->flags |= LOCKSTEP_F_GRAPH;
    }
}

uint64_t coll_start(struct lockstep_ring *r, struct context *c, unsigned abi, const void *descr)
{
    struct op_descr d = {0};
    read_op(abi, descr, false, &d);
    ask_call(&d);
    return op_begin(r, c, &d);
}

uint64_t p2p_start(struct lockstep_ring *r, struct context *c, unsigned abi, const void *descr)
{
    struct op_descr d = {0};
    read_op(abi, descr, true, &d);
    ask_call(&d);
    bool send = d.func == NULL || strncmp(d.func, "Recv", 4) != 0;
    d.flags |= send ? LOCKSTEP_F_SEND : LOCKSTEP_F_RECV;
    d.seq = context_message(r, c, d.peer, send);
    return op_begin(r, c, &d);
}

uint64_t ce_start(struct lockstep_ring *r, struct context *c, const struct abi_event *e)
{
    struct op_descr d = {
        .func = e->ce_coll.func,
        .datatype = e->ce_coll.datatype,
        .algo = "CE",
        .proto = e->ce_coll.sync_strategy,
        .seq = e->ce_coll.ce_seq,
        .count = e->ce_coll.count,
        .peer = e->ce_coll.root,
        .flags = LOCKSTEP_F_CE,
        .parent = (uintptr_t)e->parent,
        .rank = e->rank,
    };
    if (tag_of(d.parent) == TAG_GROUP) {
        d.group = d.parent;
    }
    ask_call(&d);
    d.on_stream = true;
    d.stream = (uintptr_t)e->ce_coll.stream;
    return op_begin(r, c, &d);
}
