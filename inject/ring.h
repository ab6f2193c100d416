// SPDX-License-Identifier: Apache-2.0

// The ring: how code inside a job's process hands events to an agent outside,
// without a lock, an allocation or a system call where events are made, and
// without either side being able to harm the other. docs/format/ring.md is the
// specification; this file is its C side, internal/ring the only reader.
#ifndef LOCKSTEP_RING_H
#define LOCKSTEP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
#error "ring.h is C11"
#endif

#define LOCKSTEP_RING_MAGIC 0x474e495254534b4cull // "LKSTRING", little-endian
#define LOCKSTEP_RING_VERSION 1u
#define LOCKSTEP_PAGE 4096u

#define LOCKSTEP_WORDS 16u // of 8 bytes in a record: two cache lines
#define LOCKSTEP_RECORD_SIZE (LOCKSTEP_WORDS * 8u)

#define LOCKSTEP_NO_STEP 0xffffffffu
#define LOCKSTEP_NONE (-1)

typedef _Atomic uint64_t lockstep_word;

// What a record is; bits 0..7 of word 1.
enum lockstep_kind {
    LOCKSTEP_OP = 1,         // a collective or one side of a message, ended
    LOCKSTEP_STEP = 2,       // a step begins
    LOCKSTEP_SCOPE = 3,      // a phase of the host, ended
    LOCKSTEP_PROXY_STEP = 4, // one chunk of one proxy operation, ended
    LOCKSTEP_KERNEL_CH = 5,  // one channel of one kernel, ended
    LOCKSTEP_API = 6,        // a call into NCCL, ended
    LOCKSTEP_NET = 7,        // a work request of a network plugin, ended
    LOCKSTEP_KERNEL = 8,     // a kernel, copy or set that the device ran, by CUPTI
    LOCKSTEP_CLOCK = 9,      // readings of CUPTI's clock and the host's together
    LOCKSTEP_LINK = 10,      // a span of a trace that the step works for
    LOCKSTEP_RESUME = 11,    // what the process loaded as it resumed
    LOCKSTEP_FINGERPRINT = 12, // what a slice of its parameters hashes to
};

// Levels of detail; bits 8..15 of word 1, and the control word.
enum lockstep_level {
    LOCKSTEP_LEVEL_DEFAULT = 0,     // control word only: the producer's own default
    LOCKSTEP_LEVEL_SUMMARY = 1,     // operations, steps, scopes; no proxy steps asked of NCCL
    LOCKSTEP_LEVEL_COLLECTIVES = 2, // and the waits of the proxy, summed per operation
    LOCKSTEP_LEVEL_ALL = 3,         // and single proxy steps, channels, calls, requests
};

// Flags of an operation; bits 16..31 of word 1.
enum lockstep_flag {
    LOCKSTEP_F_INFERRED = 1 << 0,    // completed by a later one on its communicator and stream
    LOCKSTEP_F_GRAPH = 1 << 1,       // replayed from a CUDA graph
    LOCKSTEP_F_KERNEL = 1 << 2,      // kernel times are there
    LOCKSTEP_F_PROXY = 1 << 3,       // proxy times are there
    LOCKSTEP_F_WAITS = 1 << 4,       // waits are there
    LOCKSTEP_F_CE = 1 << 5,          // executed by the copy engine
    LOCKSTEP_F_SEND = 1 << 6,        // point-to-point, sending
    LOCKSTEP_F_RECV = 1 << 7,        // point-to-point, receiving
    LOCKSTEP_F_GROUP = 1 << 8,       // word 13 names a group launch
    LOCKSTEP_F_KERNEL_PART = 1 << 9, // some channel's times were missing or impossible
    LOCKSTEP_F_ENQUEUED_ONLY = 1 << 10, // no completion event was to be had: times end at enqueue
};

// Flags of a kernel.
enum lockstep_kernel_flag {
    LOCKSTEP_K_COPY = 1 << 0,   // a copy of memory
    LOCKSTEP_K_SET = 1 << 1,    // a set of memory
    LOCKSTEP_K_GRAPH = 1 << 2,  // of a CUDA graph
    LOCKSTEP_K_COMM = 1 << 3,   // a communication library's: an operation of its own tells of it
    LOCKSTEP_K_LAUNCH = 1 << 4, // word 4 is there
};

// Flags of a scope.
enum lockstep_scope_flag {
    LOCKSTEP_S_NVTX = 1 << 0,  // an NVTX range
    LOCKSTEP_S_ASYNC = 1 << 1, // begun and ended as it came, on whichever thread: it nests in nothing
};

// Words 1 to 15 of an operation, in a record and in its slot alike. Word 0 is
// the record's number plus one, or the slot's generation and state.
//  1  kind u8 | level u8 | flags u16 | comm u16 | func u8 | dtype u8
//  2  handle of the operation u48 | proxy steps sent u16
//  3  seq: NCCL's, or for a message its number per communicator, peer and direction
//  4  bytes u64
//  5  root or peer i32 | channels u8 | algo u8 | proto u8 | slowest channel u8
//  6  enqueue began, MONOTONIC_RAW ns
//  7  enqueue took, ns u32 | step u32
//  8  first kernel start, GPU clock
//  9  last kernel stop, GPU clock
// 10  slowest channel took, GPU clock units u32 | peer of the longest wire wait i32
// 11  completion was seen, MONOTONIC_RAW ns
// 12  first proxy start u32 | last proxy stop u32, since word 6, 100 ns
// 13  group u32 | stream u16 | kernel channels seen u8 | proxy operations seen u8
// 14  waits: gpu u32 | peer u32, 100 ns
// 15  waits: wire u32 | flush u32, 100 ns
// Values that do not fit saturate. Low bits come first.
#define LOCKSTEP_TICK_NS 100u // unit of u32 durations: 2^32 of them are 7 minutes

static inline uint64_t lockstep_head(unsigned kind, unsigned level, unsigned flags, unsigned comm, unsigned func, unsigned dtype)
{
    return (uint64_t)(kind & 0xff) | (uint64_t)(level & 0xff) << 8 | (uint64_t)(flags & 0xffff) << 16 |
           (uint64_t)(comm & 0xffff) << 32 | (uint64_t)(func & 0xff) << 48 | (uint64_t)(dtype & 0xff) << 56;
}

static inline uint64_t lockstep_pair(uint32_t low, uint32_t high) { return (uint64_t)low | (uint64_t)high << 32; }

// Why something was dropped or put right; counters in the header.
enum lockstep_drop {
    LOCKSTEP_D_SHARED_LANE = 0,  // records written to the shared lane, since all lanes were taken
    LOCKSTEP_D_SHARED_BUSY = 1,  // records dropped there: a writer stood still in the slot
    LOCKSTEP_D_SLOTS_FULL = 2,   // operations not followed: no slot free
    LOCKSTEP_D_COMMS_FULL = 3,   // communicators, or their GPUs, not named
    LOCKSTEP_D_FRONTIERS_FULL = 4,
    LOCKSTEP_D_STRINGS_FULL = 5,
    LOCKSTEP_D_FOREIGN_PID = 6,  // proxy operations of another process (PXN)
    LOCKSTEP_D_STALE_HANDLE = 7, // events on a handle whose operation is over, or never was
    LOCKSTEP_D_NULL_ARGS = 8,
    LOCKSTEP_D_FINALIZED = 9,    // events after their communicator's end
    LOCKSTEP_D_BAD_GPU_TIME = 10, // kernel stop before its start, or backwards
    LOCKSTEP_D_INFERRED = 11,    // operations completed by a later one
    LOCKSTEP_D_UNKNOWN_EVENT = 12,
    LOCKSTEP_D_RESERVED = 13,    // a forked child has no ring to count in
    LOCKSTEP_D_STEPS_FULL = 14,  // proxy operations and steps, kernel channels, network requests not followed: none free
    LOCKSTEP_D_CONTROL = 15,     // control words of no meaning
    LOCKSTEP_D_SCOPES_RATE = 16,       // scopes left out: their thread made too many
    LOCKSTEP_D_SCOPES_UNBALANCED = 17, // ends of scopes that no begin belongs to
    LOCKSTEP_D_SCOPES_GIVEN_UP = 18,   // scopes that did not end: their thread ended, or room was needed
    LOCKSTEP_D_NAMES = 19,             // names shortened or left out, since their source had used its share of the strings
    LOCKSTEP_D_CUPTI_LOST = 20,        // records that CUPTI says it dropped
    LOCKSTEP_D_CUPTI_GARBAGE = 21,     // records of CUPTI that are impossible
    LOCKSTEP_D_CUPTI_NO_TIME = 22,     // of those, without times
    LOCKSTEP_D_CUPTI_NO_BUFFER = 23,   // buffers that CUPTI asked for and did not get
    LOCKSTEP_D_CUPTI_NO_LAUNCH = 24,   // kernels whose launch was not seen
    LOCKSTEP_D_LINKS = 25,             // links to spans that say nothing
    LOCKSTEP_D_RESUMES = 26,           // resumes and fingerprints without a step, texts of them that are too long
    LOCKSTEP_DROPS = 32,
};

// What feeds the ring; bits of the header's word.
enum lockstep_witness {
    LOCKSTEP_W_NCCL = 1 << 0,    // NCCL's profiler interface
    LOCKSTEP_W_SCOPES = 1 << 1,  // the program's own scopes
    LOCKSTEP_W_NVTX = 1 << 2,    // NVTX ranges
    LOCKSTEP_W_CUPTI = 1 << 3,   // CUPTI, while it delivers
    LOCKSTEP_W_PROGRAM = 1 << 4, // collectives that the program tells of
};

// How far CUPTI came; low half of the header's word, CUPTI's own result in the high one.
enum lockstep_cupti_state {
    LOCKSTEP_CUPTI_UNASKED = 0,
    LOCKSTEP_CUPTI_ACTIVE = 1,
    LOCKSTEP_CUPTI_YIELDED = 2,    // another client was there, or came
    LOCKSTEP_CUPTI_NO_LIBRARY = 3, // libcupti was not to be had
    LOCKSTEP_CUPTI_REFUSED = 4,    // a call to it failed: no driver, no permission
    LOCKSTEP_CUPTI_PAUSED = 5,     // the program asked for it
};

enum lockstep_section_kind {
    LOCKSTEP_S_CONTROL = 1,
    LOCKSTEP_S_STRINGS = 2,
    LOCKSTEP_S_COMMS = 3,
    LOCKSTEP_S_GPUS = 4,
    LOCKSTEP_S_FRONTIERS = 5,
    LOCKSTEP_S_SLOTS = 6,
    LOCKSTEP_S_LANES = 7,
    LOCKSTEP_S_RECORDS = 8,
    LOCKSTEP_SECTIONS = 8,
};

struct lockstep_section {
    uint32_t kind, entry_size;
    uint64_t offset, count; // bytes from the start of the file; entries
    uint64_t reserved;
};

#define LOCKSTEP_CLOCK_PAIRS 32u

struct lockstep_clock_pair {
    lockstep_word raw;      // MONOTONIC_RAW ns, the middle of the reading
    lockstep_word realtime; // REALTIME ns
    lockstep_word width;    // ns between the readings of raw before and after
    lockstep_word number;   // 1 + its place in the sequence; 0 while written
};

enum lockstep_state { LOCKSTEP_STATE_INIT = 0, LOCKSTEP_STATE_LIVE = 1, LOCKSTEP_STATE_CLOSED = 2 };

struct lockstep_header {
    uint64_t magic;
    uint32_t version, header_size;
    uint64_t file_size;
    uint8_t boot_id[16];
    uint64_t pid;        // in its own pid namespace
    uint64_t start_time; // of the process: clock ticks since boot, /proc/self/stat field 22
    uint64_t created;    // MONOTONIC_RAW ns
    int32_t rank, local_rank, world_size, restart; // LOCKSTEP_NONE where unknown
    uint32_t retain_seconds;
    uint32_t reserved0;
    lockstep_word heartbeat; // MONOTONIC_RAW ns, once a second
    lockstep_word state;     // enum lockstep_state
    lockstep_word step;      // current step; UINT64_MAX: none marked
    lockstep_word clock_pairs; // pairs written so far
    lockstep_word level;     // in force now
    char job_id[128], job_name[128], host_name[64], host_id[64], run_id[128], producer[64];
    lockstep_word witnesses; // bits of enum lockstep_witness
    lockstep_word cupti;     // enum lockstep_cupti_state u32 | CUPTI's result u32
    uint8_t reserved1[1024 - 128 - 576 - 16];
    struct lockstep_section sections[LOCKSTEP_SECTIONS]; // @1024
    uint8_t reserved2[1536 - 1024 - 8 * 32];
    lockstep_word drops[LOCKSTEP_DROPS]; // @1536
    uint8_t reserved3[2048 - 1536 - 32 * 8];
    struct lockstep_clock_pair pairs[LOCKSTEP_CLOCK_PAIRS]; // @2048
    uint8_t reserved4[4096 - 2048 - 32 * 32];
};

// The control word has a page of its own, so that the agent maps nothing else
// for writing.
struct lockstep_control {
    lockstep_word level; // enum lockstep_level
    lockstep_word pid;   // of who wrote it, in its own namespace
    lockstep_word at;    // MONOTONIC_RAW ns
    uint8_t reserved[LOCKSTEP_PAGE - 24];
};

struct lockstep_string {
    lockstep_word state; // 0 free, 1 being written, 2 set
    char text[56];       // NUL-terminated
};

enum lockstep_entry { LOCKSTEP_E_FREE = 0, LOCKSTEP_E_WRITING = 1, LOCKSTEP_E_LIVE = 2, LOCKSTEP_E_ENDED = 3 };

// Entry 0 stands for all that found no room.
struct lockstep_comm {
    lockstep_word state; // enum lockstep_entry
    uint64_t hash;
    int32_t nranks, rank, nnodes; // LOCKSTEP_NONE where unknown (API before v4)
    uint32_t abi;                 // version of the profiler table in use
    uint32_t gpu;                 // index among the GPUs; 0: unknown
    uint32_t reserved;
    uint64_t created; // MONOTONIC_RAW ns
    char name[128];
    uint8_t reserved1[16];
};

struct lockstep_gpu {
    lockstep_word state;
    uint8_t uuid[16];
    int32_t device;
    uint32_t reserved;
    uint8_t reserved1[32];
};

// How far a communicator has come in one function. Sequence numbers are of the
// last one that was enqueued, started, completed; for messages they are counts.
struct lockstep_frontier {
    lockstep_word key; // 0 free; else 1 | comm << 16 | func << 32
    lockstep_word enqueued, enqueued_at;
    lockstep_word started, started_at;
    lockstep_word completed, completed_at; // seq + 1, so that 0 is none; times MONOTONIC_RAW ns
    lockstep_word open;                    // operations in flight
    lockstep_word total;                   // operations enqueued
    lockstep_word inferred;                // of them completed by a later one
    uint64_t reserved[6];
};

enum lockstep_slot_state {
    LOCKSTEP_SLOT_FREE = 0,
    LOCKSTEP_SLOT_CLAIMED = 1,  // being filled: to be passed over
    LOCKSTEP_SLOT_ENQUEUEING = 2,
    LOCKSTEP_SLOT_ENQUEUED = 3,
    LOCKSTEP_SLOT_STARTED = 4,
    LOCKSTEP_SLOT_ENDING = 5, // its record is being written
};

// One operation in flight. What a rank leaves open when it hangs or is killed is
// still here.
struct lockstep_slot {
    lockstep_word word[LOCKSTEP_WORDS]; // 0: generation << 8 | enum lockstep_slot_state; 1..15 as a record's
    lockstep_word order;    // n-th operation enqueued on this communicator, from 1
    lockstep_word children; // kernel channels open u32 | proxy operations open u32
    lockstep_word last;     // last event, MONOTONIC_RAW ns
    // What the proxy waits for, sending and receiving, on channels of even and of
    // odd number, and since when: one channel often goes on while another hangs. A
    // place is one channel's and peer's until that waits no more.
    struct lockstep_wait {
        lockstep_word what; // state of the oldest proxy step u8, 0: none | channel u8 | send u8 | - | peer i32
        lockstep_word since; // MONOTONIC_RAW ns
    } waits[4];
    lockstep_word spare[5];
};

struct lockstep_lane {
    lockstep_word owner;   // thread id of the producer; 0: free; lane 0 is shared
    lockstep_word head;    // records written since the file was made
    lockstep_word claims;  // times this lane was taken
    lockstep_word scope;   // innermost open scope of the owner: string's code u32 | depth u16 | phase u16; 0: none
    lockstep_word scope_at; // MONOTONIC_RAW ns at which that began
    uint64_t reserved[11];
};

_Static_assert(sizeof(struct lockstep_header) == LOCKSTEP_PAGE, "header is a page");
_Static_assert(offsetof(struct lockstep_header, heartbeat) == 88, "layout");
_Static_assert(offsetof(struct lockstep_header, job_id) == 128, "layout");
_Static_assert(offsetof(struct lockstep_header, sections) == 1024, "layout");
_Static_assert(offsetof(struct lockstep_header, drops) == 1536, "layout");
_Static_assert(offsetof(struct lockstep_header, pairs) == 2048, "layout");
_Static_assert(sizeof(struct lockstep_control) == LOCKSTEP_PAGE, "control is a page");
_Static_assert(sizeof(struct lockstep_string) == 64, "layout");
_Static_assert(sizeof(struct lockstep_comm) == 192, "layout");
_Static_assert(sizeof(struct lockstep_gpu) == 64, "layout");
_Static_assert(sizeof(struct lockstep_frontier) == 128, "layout");
_Static_assert(sizeof(struct lockstep_slot) == 256, "layout");
_Static_assert(sizeof(struct lockstep_lane) == 128, "layout");

// An open ring of this process.
struct lockstep_ring {
    struct lockstep_header *header;
    struct lockstep_control *control;
    struct lockstep_string *strings;
    struct lockstep_comm *comms;
    struct lockstep_gpu *gpus;
    struct lockstep_frontier *frontiers;
    struct lockstep_slot *slots;
    struct lockstep_lane *lanes;
    lockstep_word *records; // lane i's begin at i * capacity * LOCKSTEP_WORDS
    uint64_t nstrings, ncomms, ngpus, nfrontiers, nslots, nlanes;
    uint64_t capacity; // records per lane, a power of two
    uint32_t default_level;
    uint32_t id;       // unlike that of any ring this process opened before
    int fd;
};

// How to make one; zero means default.
struct lockstep_options {
    const char *directory; // LOCKSTEP_DIR, else /run/lockstep
    uint32_t lanes, capacity, slots;
    uint32_t retain_seconds;
    uint32_t level;
};

static inline uint64_t lockstep_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Makes a ring of its own, for tests and benches. Returns 0, or -1 with the
// reason in err: never an abort, never a half-made file left behind.
int lockstep_ring_create(const struct lockstep_options *opt, struct lockstep_ring **out, char *err, size_t errlen);
// Marks it closed, gives back the mapping and the lock; the file stays for its reader.
void lockstep_ring_close(struct lockstep_ring *r);

// The ring of this process, made on the first call from the environment; NULL
// where there is none (no directory, no room, LOCKSTEP_DISABLE=1, a forked
// child). Cheap after the first call. It lives as long as the process.
struct lockstep_ring *lockstep_ring_process(void);
// Has fn called once a second by the ring's own thread, on which no signal is
// delivered and whose stack is 256 KiB, in the order in which functions came. The
// same function again changes its argument; false where there are four others.
bool lockstep_ring_on_tick(struct lockstep_ring *r, void (*fn)(void *), void *arg);
// Why lockstep_ring_process returned NULL, or where the ring is. Never NULL.
const char *lockstep_ring_status(void);

// The calling thread's lane: claimed on its first call, given back when the
// thread ends; lane 0, the shared one, where none was free.
uint32_t lockstep_lane_claim(struct lockstep_ring *r);
void lockstep_emit_shared(struct lockstep_ring *r, const uint64_t word[LOCKSTEP_WORDS]);

extern _Thread_local uint32_t lockstep_lane_of_thread; // lane + 1; 0: none yet
extern _Thread_local uint32_t lockstep_ring_of_thread; // id of the ring it belongs to

// Writes a record to the calling thread's own lane; word[0] is ignored.
static inline void lockstep_emit_own(struct lockstep_ring *r, uint32_t lane, const uint64_t word[LOCKSTEP_WORDS])
{
    struct lockstep_lane *l = &r->lanes[lane];
    uint64_t n = atomic_load_explicit(&l->head, memory_order_relaxed);
    lockstep_word *slot = r->records + ((uint64_t)lane * r->capacity + (n & (r->capacity - 1))) * LOCKSTEP_WORDS;
    atomic_store_explicit(&slot[0], 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        atomic_store_explicit(&slot[i], word[i], memory_order_relaxed);
    }
    atomic_store_explicit(&slot[0], n + 1, memory_order_release);
    atomic_store_explicit(&l->head, n + 1, memory_order_release);
}

// Writes a record; word[0] is ignored. Wait-free on a lane of its own.
static inline void lockstep_emit(struct lockstep_ring *r, const uint64_t word[LOCKSTEP_WORDS])
{
    uint32_t lane = lockstep_ring_of_thread == r->id ? lockstep_lane_of_thread : 0;
    if (__builtin_expect(lane == 0, 0)) {
        lane = lockstep_lane_claim(r) + 1;
    }
    if (__builtin_expect(lane == 1, 0)) {
        lockstep_emit_shared(r, word);
        return;
    }
    lockstep_emit_own(r, lane - 1, word);
}

static inline void lockstep_drop(struct lockstep_ring *r, enum lockstep_drop why)
{
    atomic_fetch_add_explicit(&r->header->drops[why], 1, memory_order_relaxed);
}

// The level in force: the control word's, or the producer's own default.
static inline uint32_t lockstep_level(struct lockstep_ring *r)
{
    uint64_t l = atomic_load_explicit(&r->control->level, memory_order_relaxed);
    return l >= LOCKSTEP_LEVEL_SUMMARY && l <= LOCKSTEP_LEVEL_ALL ? (uint32_t)l : r->default_level;
}

// Code of a function, type or the like, the same for the same text; it fits 8 bits,
// and 0 is no room. NULL and "" are 0. Bounded search; not for the hot path unless
// cached by pointer.
uint16_t lockstep_intern(struct lockstep_ring *r, const char *text);

// Index of a communicator, 0 where there is no room.
uint16_t lockstep_comm_add(struct lockstep_ring *r, uint64_t hash, int32_t nranks, int32_t rank, int32_t nnodes,
                           uint32_t abi, uint32_t gpu, const char *name);
void lockstep_comm_end(struct lockstep_ring *r, uint16_t comm);
// Index of a GPU, the same for the same uuid; 0 where there is no room.
uint32_t lockstep_gpu_add(struct lockstep_ring *r, const uint8_t uuid[16], int32_t device);

// Frontier of a communicator and function; NULL where there is no room.
struct lockstep_frontier *lockstep_frontier_of(struct lockstep_ring *r, uint16_t comm, uint8_t func);
// Raises a frontier to seq (stored plus one) unless it is there already.
void lockstep_frontier_raise(lockstep_word *seq, lockstep_word *at, uint64_t to, uint64_t now);

// Slots. A handle is generation << 16 | slot + 1: never 0, never a pointer, and
// dead once its operation is over. The claimer fills words 1..15 and order, then
// sets the state; of several who end one, exactly one wins.
uint64_t lockstep_slot_claim(struct lockstep_ring *r, struct lockstep_slot **out); // 0: none free
struct lockstep_slot *lockstep_slot_of(struct lockstep_ring *r, uint64_t handle);  // NULL: stale
void lockstep_slot_state(struct lockstep_slot *s, uint64_t handle, enum lockstep_slot_state to);
bool lockstep_slot_ending(struct lockstep_slot *s, uint64_t handle); // true for the one who must emit and free
void lockstep_slot_free(struct lockstep_ring *r, struct lockstep_slot *s, uint64_t handle);

// Names of scopes and kernels vary without end: each source has a share of the
// strings whose codes are above 8 bits. Cut at what a string holds, between
// characters.
enum lockstep_namer { LOCKSTEP_N_SCOPE, LOCKSTEP_N_KERNEL, LOCKSTEP_NAMERS };
uint16_t lockstep_name_add(struct lockstep_ring *r, enum lockstep_namer who, const char *text, size_t length);

#endif
