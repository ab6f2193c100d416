// SPDX-License-Identifier: Apache-2.0

// NCCL's profiler interface as it lies in memory on 64-bit Linux, versions 1 to
// 7, declared here on our own so that no vendor header is needed. A version's
// layout never changed once released; the assertions hold it.
#ifndef LOCKSTEP_NCCL_ABI_H
#define LOCKSTEP_NCCL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum abi_type {
    T_GROUP = 1 << 0,
    T_COLL = 1 << 1,
    T_P2P = 1 << 2,
    T_PROXY_OP = 1 << 3,
    T_PROXY_STEP = 1 << 4,
    T_PROXY_CTRL = 1 << 5,
    T_KERNEL_CH = 1 << 6,
    T_NET_PLUGIN = 1 << 7,
    T_GROUP_API = 1 << 8,
    T_COLL_API = 1 << 9,
    T_P2P_API = 1 << 10,
    T_KERNEL_LAUNCH = 1 << 11,
    T_CE_COLL = 1 << 12,
    T_CE_SYNC = 1 << 13,
    T_CE_BATCH = 1 << 14,
    T_KERNEL_PHASE = 1 << 15,
};

// States that mark the entry into a wait, and two that carry a stamp. Those of
// proxy operations (0 to 7) and of proxy control (13 to 18) tell us nothing.
enum abi_state {
    S_SEND_GPU_WAIT = 8,
    S_SEND_WAIT = 9,
    S_RECV_WAIT = 10,
    S_RECV_FLUSH_WAIT = 11,
    S_RECV_GPU_WAIT = 12,
    S_OP_IN_PROGRESS = 19,
    S_SEND_PEER_WAIT = 20, // since version 4
    S_NET_UPDATE = 21,
    S_KERNEL_CH_STOP = 22,
    S_GROUP_START_API_STOP = 23,
    S_GROUP_END_API_START = 24,
};

struct abi_proxy_op {
    int32_t pid;
    uint8_t channel;
    int peer, steps, chunk, is_send;
};

struct abi_kernel_ch {
    uint8_t channel;
    uint64_t timer; // since version 4
};

struct abi_net {
    int64_t id;
    const void *data;
};

// Versions 4 to 7 share every offset; what came later stands at the end. The type
// is one byte in version 4 and eight since version 5.
struct abi_event {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
            void *group;         // since version 5
            const char *variant; // since version 7
            bool symmetric;
            uint64_t user_tag;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
            void *group;       // since version 5
            uint64_t user_tag; // since version 7
        } p2p;
        struct abi_proxy_op proxy_op;
        struct {
            int step;
        } proxy_step;
        struct abi_kernel_ch kernel_ch;
        struct abi_net net;
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
            uint64_t user_tag; // since version 7
        } coll_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool captured;
            uint64_t user_tag; // since version 7
        } p2p_api;
        struct {
            void *stream;
        } kernel_launch;
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            const char *sync_strategy;
            bool intra_batch_sync;
            uint32_t batch_size, batches, ce_seq;
            void *stream;
            uint64_t user_tag; // since version 7
        } ce_coll;
        struct {
            bool complete;
            int ranks;
        } ce_sync;
        struct {
            int ops;
            size_t total_bytes;
            bool intra_sync;
        } ce_batch;
        struct {
            uint8_t channel, phase;
            const char *name;
            uint64_t timer;
        } kernel_phase;
    };
};

// Versions 1 to 3 name the communicator in each operation.
struct abi_event_v1 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t hash, seq;
            uint8_t func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            uint8_t datatype;
            uint32_t op;
            size_t traffic;
            uint8_t channels, warps, algo, proto;
            int collnet, nvls;
        } coll;
        struct {
            const char *name;
            uint64_t hash;
            uint8_t func;
            void *buff;
            uint8_t datatype;
            size_t count;
            int peer;
        } p2p;
        struct abi_proxy_op proxy_op;
        struct {
            int step;
        } proxy_step;
    };
};

struct abi_event_v2 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t hash, seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            size_t traffic;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
        struct {
            const char *name;
            uint64_t hash;
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
        struct abi_proxy_op proxy_op;
        struct {
            int step;
        } proxy_step;
    };
};

struct abi_event_v3 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t hash, seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
        struct {
            const char *name;
            uint64_t hash;
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
        struct abi_proxy_op proxy_op;
        struct {
            int step;
        } proxy_step;
        struct {
            uint8_t channel;
        } kernel_ch;
        struct abi_net net;
    };
};

// What comes with a state: one word since version 4, read before only for the
// size of what a step moved, which is the first word there too.
union abi_args {
    size_t trans_size;
    uint64_t timer;
    const void *data;
};

// Descriptors of network plugins: what `data` points to, by id.
#define ABI_NET_IB (1ll << 16 | 1)
#define ABI_NET_SOCKET (2ll << 16 | 1)

struct abi_net_ib {
    uint8_t type;
    _Alignas(8) int device;
    uint64_t wr_id;
    int opcode;
    int qp;
    size_t length;
};

struct abi_net_socket {
    uint8_t type;
    _Alignas(8) int fd;
    int op;
    size_t length;
};

typedef void (*abi_logger)(int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

#define ABI_LOG_WARN 2
#define ABI_LOG_INFO 3
#define ABI_LOG_PROFILE 0x4000ul

typedef int (*abi_init_v1)(void **ctx, int *mask);
typedef int (*abi_init_v4)(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank,
                           abi_logger log);
typedef int (*abi_init_v5)(void **ctx, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank,
                           abi_logger log);

// What NCCL looks up: six words, of which only init differs between versions.
struct abi_table {
    const char *name;
    union {
        abi_init_v1 v1;
        abi_init_v4 v4;
        abi_init_v5 v5;
    } init;
    int (*start)(void *ctx, void **handle, void *descr);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, void *args);
    int (*finalize)(void *ctx);
};

#define ABI_OLDEST 1
#define ABI_NEWEST 7

#define AT(s, field, at) _Static_assert(offsetof(struct s, field) == (at), #s "." #field)

AT(abi_event, type, 0);
AT(abi_event, parent, 8);
AT(abi_event, rank, 16);
AT(abi_event, coll.seq, 24);
AT(abi_event, coll.func, 32);
AT(abi_event, coll.send, 40);
AT(abi_event, coll.recv, 48);
AT(abi_event, coll.count, 56);
AT(abi_event, coll.root, 64);
AT(abi_event, coll.datatype, 72);
AT(abi_event, coll.channels, 80);
AT(abi_event, coll.warps, 81);
AT(abi_event, coll.algo, 88);
AT(abi_event, coll.proto, 96);
AT(abi_event, coll.group, 104);
AT(abi_event, coll.variant, 112);
AT(abi_event, coll.symmetric, 120);
AT(abi_event, coll.user_tag, 128);
AT(abi_event, p2p.func, 24);
AT(abi_event, p2p.buff, 32);
AT(abi_event, p2p.datatype, 40);
AT(abi_event, p2p.count, 48);
AT(abi_event, p2p.peer, 56);
AT(abi_event, p2p.channels, 60);
AT(abi_event, p2p.group, 64);
AT(abi_event, p2p.user_tag, 72);
AT(abi_event, proxy_op.pid, 24);
AT(abi_event, proxy_op.channel, 28);
AT(abi_event, proxy_op.peer, 32);
AT(abi_event, proxy_op.steps, 36);
AT(abi_event, proxy_op.chunk, 40);
AT(abi_event, proxy_op.is_send, 44);
AT(abi_event, proxy_step.step, 24);
AT(abi_event, kernel_ch.channel, 24);
AT(abi_event, kernel_ch.timer, 32);
AT(abi_event, net.id, 24);
AT(abi_event, net.data, 32);
AT(abi_event, group_api.captured, 24);
AT(abi_event, group_api.depth, 28);
AT(abi_event, coll_api.func, 24);
AT(abi_event, coll_api.count, 32);
AT(abi_event, coll_api.datatype, 40);
AT(abi_event, coll_api.root, 48);
AT(abi_event, coll_api.stream, 56);
AT(abi_event, coll_api.captured, 64);
AT(abi_event, coll_api.user_tag, 72);
AT(abi_event, p2p_api.func, 24);
AT(abi_event, p2p_api.count, 32);
AT(abi_event, p2p_api.datatype, 40);
AT(abi_event, p2p_api.stream, 48);
AT(abi_event, p2p_api.captured, 56);
AT(abi_event, p2p_api.user_tag, 64);
AT(abi_event, kernel_launch.stream, 24);
AT(abi_event, ce_coll.seq, 24);
AT(abi_event, ce_coll.func, 32);
AT(abi_event, ce_coll.send, 40);
AT(abi_event, ce_coll.recv, 48);
AT(abi_event, ce_coll.count, 56);
AT(abi_event, ce_coll.root, 64);
AT(abi_event, ce_coll.datatype, 72);
AT(abi_event, ce_coll.sync_strategy, 80);
AT(abi_event, ce_coll.intra_batch_sync, 88);
AT(abi_event, ce_coll.batch_size, 92);
AT(abi_event, ce_coll.batches, 96);
AT(abi_event, ce_coll.ce_seq, 100);
AT(abi_event, ce_coll.stream, 104);
AT(abi_event, ce_coll.user_tag, 112);
AT(abi_event, ce_sync.complete, 24);
AT(abi_event, ce_sync.ranks, 28);
AT(abi_event, ce_batch.ops, 24);
AT(abi_event, ce_batch.total_bytes, 32);
AT(abi_event, ce_batch.intra_sync, 40);
AT(abi_event, kernel_phase.channel, 24);
AT(abi_event, kernel_phase.phase, 25);
AT(abi_event, kernel_phase.name, 32);
AT(abi_event, kernel_phase.timer, 40);
_Static_assert(sizeof(struct abi_event) == 136, "version 7");

AT(abi_event_v1, coll.name, 24);
AT(abi_event_v1, coll.hash, 32);
AT(abi_event_v1, coll.seq, 40);
AT(abi_event_v1, coll.func, 48);
AT(abi_event_v1, coll.send, 56);
AT(abi_event_v1, coll.recv, 64);
AT(abi_event_v1, coll.count, 72);
AT(abi_event_v1, coll.root, 80);
AT(abi_event_v1, coll.datatype, 84);
AT(abi_event_v1, coll.op, 88);
AT(abi_event_v1, coll.traffic, 96);
AT(abi_event_v1, coll.channels, 104);
AT(abi_event_v1, coll.warps, 105);
AT(abi_event_v1, coll.algo, 106);
AT(abi_event_v1, coll.proto, 107);
AT(abi_event_v1, p2p.name, 24);
AT(abi_event_v1, p2p.hash, 32);
AT(abi_event_v1, p2p.func, 40);
AT(abi_event_v1, p2p.buff, 48);
AT(abi_event_v1, p2p.datatype, 56);
AT(abi_event_v1, p2p.count, 64);
AT(abi_event_v1, p2p.peer, 72);
AT(abi_event_v1, proxy_op.pid, 24);
AT(abi_event_v1, proxy_step.step, 24);
_Static_assert(sizeof(struct abi_event_v1) == 120, "version 1");

AT(abi_event_v2, coll.func, 48);
AT(abi_event_v2, coll.count, 72);
AT(abi_event_v2, coll.root, 80);
AT(abi_event_v2, coll.datatype, 88);
AT(abi_event_v2, coll.traffic, 96);
AT(abi_event_v2, coll.channels, 104);
AT(abi_event_v2, coll.algo, 112);
AT(abi_event_v2, coll.proto, 120);
AT(abi_event_v2, p2p.func, 40);
AT(abi_event_v2, p2p.datatype, 56);
AT(abi_event_v2, p2p.count, 64);
AT(abi_event_v2, p2p.peer, 72);
AT(abi_event_v2, proxy_op.pid, 24);
_Static_assert(sizeof(struct abi_event_v2) == 128, "version 2");

AT(abi_event_v3, coll.name, 24);
AT(abi_event_v3, coll.hash, 32);
AT(abi_event_v3, coll.seq, 40);
AT(abi_event_v3, coll.func, 48);
AT(abi_event_v3, coll.count, 72);
AT(abi_event_v3, coll.root, 80);
AT(abi_event_v3, coll.datatype, 88);
AT(abi_event_v3, coll.channels, 96);
AT(abi_event_v3, coll.warps, 97);
AT(abi_event_v3, coll.algo, 104);
AT(abi_event_v3, coll.proto, 112);
AT(abi_event_v3, p2p.func, 40);
AT(abi_event_v3, p2p.datatype, 56);
AT(abi_event_v3, p2p.count, 64);
AT(abi_event_v3, p2p.peer, 72);
AT(abi_event_v3, kernel_ch.channel, 24);
AT(abi_event_v3, net.id, 24);
AT(abi_event_v3, net.data, 32);
_Static_assert(sizeof(struct abi_event_v3) == 120, "version 3");

AT(abi_net_ib, device, 8);
AT(abi_net_ib, wr_id, 16);
AT(abi_net_ib, opcode, 24);
AT(abi_net_ib, qp, 28);
AT(abi_net_ib, length, 32);
_Static_assert(sizeof(struct abi_net_ib) == 40, "queue pair");
AT(abi_net_socket, fd, 8);
AT(abi_net_socket, op, 12);
AT(abi_net_socket, length, 16);

_Static_assert(sizeof(union abi_args) == 8, "state arguments");
_Static_assert(sizeof(struct abi_table) == 48, "six words");

#undef AT

#endif
