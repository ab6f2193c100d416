// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Readers of the descriptors of operations, to one form for all versions.
#include "plugin.h"

// Enumerations of version 1, which were strings from version 2 on.
static const char *const funcs[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
                                    "Send", "Recv"};
static const char *const datatypes[] = {"ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64",
                                        "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16",
                                        "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const algos[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protos[] = {"LL", "LL128", "SIMPLE"};

#define NAME(table, i) ((i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : NULL)

static void read_v1(const struct abi_event_v1 *e, bool message, struct op_descr *d)
{
    d->group = (uintptr_t)e->parent;
    d->rank = e->rank;
    if (message) {
        d->comm_name = e->p2p.name;
        d->hash = e->p2p.hash;
        d->func = NAME(funcs, e->p2p.func);
        d->datatype = NAME(datatypes, e->p2p.datatype);
        d->count = e->p2p.count;
        d->peer = e->p2p.peer;
        return;
    }
    d->comm_name = e->coll.name;
    d->hash = e->coll.hash;
    d->seq = e->coll.seq;
    d->func = NAME(funcs, e->coll.func);
    d->datatype = NAME(datatypes, e->coll.datatype);
    d->algo = NAME(algos, e->coll.algo);
    d->proto = NAME(protos, e->coll.proto);
    d->count = e->coll.count;
    d->peer = e->coll.root;
    d->channels = e->coll.channels;
}

static void read_v2(const struct abi_event_v2 *e, bool message, struct op_descr *d)
{
    d->group = (uintptr_t)e->parent;
    d->rank = e->rank;
    d->comm_name = message ? e->p2p.name : e->coll.name;
    d->hash = message ? e->p2p.hash : e->coll.hash;
    d->func = message ? e->p2p.func : e->coll.func;
    d->datatype = message ? e->p2p.datatype : e->coll.datatype;
    d->count = message ? e->p2p.count : e->coll.count;
    d->peer = message ? e->p2p.peer : e->coll.root;
    if (!message) {
        d->seq = e->coll.seq;
        d->algo = e->coll.algo;
        d->proto = e->coll.proto;
        d->channels = e->coll.channels;
    }
}

static void read_v3(const struct abi_event_v3 *e, bool message, struct op_descr *d)
{
    d->group = (uintptr_t)e->parent;
    d->rank = e->rank;
    d->comm_name = message ? e->p2p.name : e->coll.name;
    d->hash = message ? e->p2p.hash : e->coll.hash;
    d->func = message ? e->p2p.func : e->coll.func;
    d->datatype = message ? e->p2p.datatype : e->coll.datatype;
    d->count = message ? e->p2p.count : e->coll.count;
    d->peer = message ? e->p2p.peer : e->coll.root;
    if (!message) {
        d->seq = e->coll.seq;
        d->algo = e->coll.algo;
        d->proto = e->coll.proto;
        d->channels = e->coll.channels;
    }
}

static void read_v4(unsigned abi, const struct abi_event *e, bool message, struct op_descr *d)
{
    void *group = abi < 5 ? e->parent : message ? e->p2p.group : e->coll.group;
    d->group = (uintptr_t)group;
    d->parent = (uintptr_t)e->parent;
    d->rank = e->rank;
    d->func = message ? e->p2p.func : e->coll.func;
    d->datatype = message ? e->p2p.datatype : e->coll.datatype;
    d->count = message ? e->p2p.count : e->coll.count;
    d->peer = message ? e->p2p.peer : e->coll.root;
    d->channels = message ? e->p2p.channels : e->coll.channels;
    if (!message) {
        d->seq = e->coll.seq;
        d->algo = e->coll.algo;
        d->proto = e->coll.proto;
    }
}

void read_op(unsigned abi, const void *descr, bool message, struct op_descr *d)
{
    switch (abi) {
    case 1: read_v1(descr, message, d); break;
    case 2: read_v2(descr, message, d); break;
    case 3: read_v3(descr, message, d); break;
    default: read_v4(abi, descr, message, d); break;
    }
    if (tag_of(d->group) != TAG_GROUP) {
        d->group = 0;
    }
}
