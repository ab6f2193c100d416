// SPDX-License-Identifier: Apache-2.0

// What the parts of the profiler plugin share. Handles that NCCL is given are
// integers: a tag in the top byte, and below it a slot handle of the ring, an
// entry of a pool with its generation, or a number. None is ever followed.
#ifndef LOCKSTEP_NCCL_PLUGIN_H
#define LOCKSTEP_NCCL_PLUGIN_H

#include "abi.h"
#include "ring.h"

#define HOT __attribute__((hot))

enum tag {
    TAG_CONTEXT = 0xA1,
    TAG_OP,
    TAG_GROUP,
    TAG_GROUP_API,
    TAG_API,
    TAG_LAUNCH,
    TAG_PROXY_OP,
    TAG_PROXY_STEP,
    TAG_KERNEL_CH,
    TAG_KERNEL_PHASE,
    TAG_NET,
    TAG_CE_PART,
    TAG_PAIR,
};

#define TAG_SHIFT 56
#define BODY_MASK ((1ull << TAG_SHIFT) - 1)

static inline uint64_t tagged(enum tag t, uint64_t body) { return (uint64_t)t << TAG_SHIFT | (body & BODY_MASK); }
static inline unsigned tag_of(uint64_t handle) { return (unsigned)(handle >> TAG_SHIFT); }
static inline uint64_t body_of(uint64_t handle) { return handle & BODY_MASK; }

// Relaxed, since each stands alone; order is made where operations are counted.
static inline uint64_t get(const lockstep_word *w) { return atomic_load_explicit(w, memory_order_relaxed); }
static inline void put(lockstep_word *w, uint64_t v) { atomic_store_explicit(w, v, memory_order_relaxed); }
static inline void add(lockstep_word *w, uint64_t v) { atomic_fetch_add_explicit(w, v, memory_order_relaxed); }
void raise_to(lockstep_word *w, uint64_t v);       // maximum
void lower_to(lockstep_word *w, uint64_t v);       // minimum, where 0 is none

static inline uint32_t saturate(uint64_t v) { return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v; }

// Pools of things that begin and end within an operation. A lost end would leak
// its entry, so a claim also takes one whose operation is over. Between claim and
// publication an entry is its claimer's alone.
struct entry {
    lockstep_word generation; // see pool.c
    lockstep_word op;         // handle of the operation, in the ring
    lockstep_word parent;     // our handle of the event above
    lockstep_word begin;
    lockstep_word at[3];      // entries of waits; proxy operation: the last step to enter each; kernels: GPU start,
                              // host start, GPU stop
    lockstep_word what;       // small fields, by kind
    lockstep_word size;       // of a proxy operation: steps whose time on the wire is in sum
    lockstep_word sum;        // proxy operation: time on the wire; net: id
    lockstep_word nth;        // of a step among its proxy operation's, from 1; proxy operation: of the last that began
    lockstep_word ended;      // proxy operation: the last step that ended
    lockstep_word newest;     // proxy operation: handle of its last step
    lockstep_word state;      // proxy operation: what its oldest step waits for, and since when
    lockstep_word since;
    uint64_t reserved[1];
};

struct pool {
    struct entry *entries;
    uint32_t count; // a power of two
    _Atomic uint32_t next;
};

extern struct pool proxy_ops, proxy_steps, kernel_chs, nets;
bool pools_init(void);
struct entry *pool_claim(struct lockstep_ring *r, struct pool *p, uint64_t op);     // NULL: none free
uint64_t pool_publish(struct pool *p, enum tag tag, struct entry *e);                // its handle
struct entry *pool_of(struct pool *p, enum tag tag, uint64_t handle); // NULL: stale
bool pool_free(struct entry *e, uint64_t handle);                       // true for the first
uint64_t pool_taken(const struct entry *e);                             // its generation; 0: it is free

// Calls into NCCL, and groups of them. Operations name them as parents after
// their end, so entries are not freed but overwritten, the oldest first; those
// that were captured into a graph are named at every replay and kept apart.
struct call {
    lockstep_word ticket; // 0 while written
    lockstep_word context;
    lockstep_word begin, stream, count, what; // what: string code | captured << 32 | ended << 33
};

struct context;
uint64_t call_begin(enum tag tag, struct context *c, uint32_t code, uint64_t count, uint64_t stream, bool captured);
bool call_read(uint64_t handle, struct call *copy);
void call_end(struct lockstep_ring *r, uint64_t handle);

#define STREAMS 16u
#define WINDOW 64u
#define CHANNELS 256u
#define MAX_CONTEXTS 256u

enum context_state { CTX_FREE = 0, CTX_BUSY, CTX_LIVE };

// A communicator, as far as this process is concerned. Never freed; used again
// for another one after its end, with a new generation.
struct context {
    lockstep_word generation; // << 8 | enum context_state
    lockstep_word comm;       // index in the ring + 1; 0: not named yet (before version 4)
    lockstep_word abi, rank, created;
    int *mask;                // NCCL's; guarded by the lock of masks
    lockstep_word asked;      // what was last written there: ours u16 | the other plugin's u16 | MASK_WRITTEN
    lockstep_word orders, groups, kernels_seen, children_seen;
    lockstep_word swept;      // operations up to this order are over
    lockstep_word streams[STREAMS];
    lockstep_word completed[STREAMS]; // highest order completed on a stream
    lockstep_word channel_start[CHANNELS], channel_bad[CHANNELS];
    lockstep_word window[WINDOW]; // handles of the last operations, by order
    struct peer_count *peers;
    uint64_t npeers;          // a power of two
    uint32_t gpu;
};

struct peer_count {
    lockstep_word key; // 0 free; else 1 | send << 1 | peer << 2
    lockstep_word count;
};

// Events that NCCL was asked for, by either plugin.
static inline uint64_t context_asked(const struct context *c)
{
    uint64_t a = get(&c->asked);
    return (a | a >> 16) & 0xffff;
}

struct context *context_of(void *handle, bool *finished);
struct context *context_at(uint32_t index);
uint32_t context_index(const struct context *c);
uint16_t context_comm(struct lockstep_ring *r, struct context *c, uint64_t hash, const char *name, int rank);
uint16_t context_stream(struct context *c, uint64_t key);
uint64_t context_message(struct lockstep_ring *r, struct context *c, int peer, bool send);

struct naming {
    uint64_t hash;
    const char *name;
    int nodes, ranks, rank;
    abi_logger log;
};
int context_init(void **ctx, int *mask, unsigned abi, const struct naming *n);
int context_finalize(void *ctx);

// Operations, private side: what need not be seen from outside, one for each slot.
struct op {
    lockstep_word handle; // in the ring; 0: none
    lockstep_word counts; // see op.h
    lockstep_word context, order, fseq;
    lockstep_word head;   // word 1 as it was at the start
    lockstep_word enqueue_began, enqueue_ended;
    lockstep_word kernel_start, kernel_stop, slowest; // slowest: took << 8 | channel
    lockstep_word flags;
    lockstep_word proxy_start, proxy_stop;
    lockstep_word waits[4];
    lockstep_word sends;     // steps whose wait for the wire is in waits
    lockstep_word wire_peer; // (took + 1) << 32 | peer, of the longest
    lockstep_word expected;  // kernel channels; 0: none are asked for
    lockstep_word group, stream, bytes, seq, shape, step;
    lockstep_word key;       // operations of the same key run one after the other; 0: after none that is known
    lockstep_word late;      // when a later one completed
    _Atomic(struct lockstep_frontier *) frontier;
};

// What a proxy operation sent, as far as its steps told.
struct sent {
    uint64_t steps, wire; // ns
    int peer;
};

enum wait { WAIT_GPU, WAIT_PEER, WAIT_WIRE, WAIT_FLUSH, WAITS };

// Keys of order: a stream, or before version 5 the communicator, whose kernels
// NCCL orders.
#define KEY_STREAM (1ull << 63)
#define KEY_COMM 1ull

struct op_descr {
    const char *func, *datatype, *algo, *proto;
    uint64_t seq, count, hash;
    const char *comm_name;
    int peer; // or root
    uint8_t channels;
    unsigned flags;
    uint64_t group;  // handle or 0
    uint64_t parent; // handle or 0
    bool on_stream;  // the stream is known
    uint64_t stream; // pointer, which may be 0
    int rank;
};

bool ops_init(struct lockstep_ring *r);
uint64_t op_begin(struct lockstep_ring *r, struct context *c, const struct op_descr *d);
struct op *op_of(struct lockstep_ring *r, uint64_t handle, struct lockstep_slot **slot);
void op_enqueued(struct lockstep_ring *r, uint64_t handle);
bool op_kernel_begin(struct lockstep_ring *r, uint64_t handle, uint64_t gpu_start, uint64_t now);
void op_kernel_end(struct lockstep_ring *r, uint64_t handle, unsigned channel, uint64_t start, uint64_t stop,
                   bool times, uint64_t now);
bool op_proxy_begin(struct lockstep_ring *r, uint64_t handle, uint64_t now);
void op_proxy_end(struct lockstep_ring *r, uint64_t handle, const struct sent *sent, uint64_t now);
void op_waited(struct lockstep_ring *r, uint64_t handle, const uint64_t waits[WAITS], bool sent);
void op_enqueued_only(struct lockstep_ring *r, uint64_t handle);
void ops_sweep(struct lockstep_ring *r);
void ops_abandon(struct lockstep_ring *r, struct context *c);
uint32_t current_step(struct lockstep_ring *r);
uint32_t thread_id(void);

// Readers of descriptors and one function for each kind of event.
void read_op(unsigned abi, const void *descr, bool message, struct op_descr *d);
uint64_t coll_start(struct lockstep_ring *r, struct context *c, unsigned abi, const void *descr);
uint64_t p2p_start(struct lockstep_ring *r, struct context *c, unsigned abi, const void *descr);
uint64_t ce_start(struct lockstep_ring *r, struct context *c, const struct abi_event *e);
uint64_t proxy_op_start(struct lockstep_ring *r, const void *descr);
void proxy_op_stop(struct lockstep_ring *r, uint64_t handle);
uint64_t proxy_step_start(struct lockstep_ring *r, const void *descr);
void proxy_step_state(struct lockstep_ring *r, uint64_t handle, int state, const void *args);
void proxy_step_stop(struct lockstep_ring *r, uint64_t handle);
void proxy_ops_show(struct lockstep_ring *r);
uint64_t kernel_start(struct lockstep_ring *r, struct context *c, unsigned abi, const struct abi_event *e);
void kernel_state(struct lockstep_ring *r, uint64_t handle, int state, const void *args);
void kernel_stop(struct lockstep_ring *r, uint64_t handle);
uint64_t phase_start(struct lockstep_ring *r, const struct abi_event *e);
uint64_t net_start(struct lockstep_ring *r, const struct abi_event *e);
void net_state(struct lockstep_ring *r, uint64_t handle, const void *args);
void net_stop(struct lockstep_ring *r, uint64_t handle);
uint64_t api_start(struct lockstep_ring *r, struct context *c, const struct abi_event *e, uint64_t type);

// Codes of strings that live in NCCL.
uint8_t code_of(struct lockstep_ring *r, const char *text);
void codes_forget(void);
unsigned size_of_datatype(const char *text);

// Masks. What was asked for a context is marked, since it may be nothing.
#define MASK_WRITTEN (1ull << 32)
int mask_wanted(struct lockstep_ring *r, unsigned abi);
const char *mask_problem(void); // what is wrong with LOCKSTEP_EVENT_MASK, or NULL; one thread calls it
int mask_closure(int mask); // with the ancestors that NCCL emits along
void mask_attach(struct lockstep_ring *r, struct context *c, unsigned abi, int *mask);
void mask_detach(struct context *c);
void masks_follow(struct lockstep_ring *r);
int abi_known(unsigned abi); // events that a version has

uint32_t gpu_of_thread(struct lockstep_ring *r);

bool level_all(struct lockstep_ring *r);

// Plugin proper, without the chain.
uint64_t type_of(unsigned abi, const void *descr);
int own_start(unsigned abi, void *ctx, void **handle, const void *descr);
int own_stop(void *handle);
int own_state(void *handle, int state, void *args);

// The other plugin, and ours.
int chain_init(void **ctx, int *mask, unsigned abi, const struct naming *n);
int chain_start(unsigned abi, void *ctx, void **handle, const void *descr);
int chain_stop(void *handle);
int chain_state(void *handle, int state, void *args);
int chain_finalize(void *ctx);
int chain_mask(void);            // events the other plugin asks for, with their ancestors
const char *chain_problem(void); // why none is chained though one was asked for, or NULL

extern const struct abi_table ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3, ncclProfiler_v4, ncclProfiler_v5,
    ncclProfiler_v6, ncclProfiler_v7;

#endif
