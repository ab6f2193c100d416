// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Collectives that the program tells of: begun and ended by it, so that nothing
// has to be inferred. They stand in slots and records as those of NCCL do, without
// the times of kernels and proxies. A program that forgets to end them, or opens
// group after group, must leave room for NCCL's: it has a share of both tables.
#include "scope.h"

#include <stdlib.h>

#define GROUPS 512u       // as many as the ring names
#define GROUPS_SHARE 128u // of them, since none is used twice

enum group_state { GROUP_UNUSED, GROUP_OPEN, GROUP_CLOSED };

struct group {
    lockstep_word state;
    lockstep_word orders;
};

static struct group groups[GROUPS]; // by index among the communicators, which is not used twice
static lockstep_word opened;        // groups, ever
static lockstep_word running;       // operations
static lockstep_word *handles;      // by slot: the program's operation in it, or 0
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lockstep_ring *ring_of_handles;

static void make_handles(void)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r != NULL) {
        handles = calloc(r->nslots, sizeof *handles);
        ring_of_handles = handles != NULL ? r : NULL;
    }
}

static uint64_t get(const lockstep_word *w) { return atomic_load_explicit(w, memory_order_relaxed); }
static void put(lockstep_word *w, uint64_t v) { atomic_store_explicit(w, v, memory_order_relaxed); }

// The ring, where there is room for operations beside it.
static struct lockstep_ring *ready(void)
{
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        return NULL;
    }
    pthread_once(&once, make_handles);
    return ring_of_handles == r ? r : NULL;
}

// One more, unless there are as many as there may be.
static bool take(lockstep_word *used, uint64_t share)
{
    uint64_t n = get(used);
    do {
        if (n >= share) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(used, &n, n + 1, memory_order_relaxed, memory_order_relaxed));
    return true;
}

uint32_t lockstep_group_open(uint64_t hash, int32_t size, int32_t rank, const char *name)
{
    struct lockstep_ring *r = ready();
    if (r == NULL) {
        return 0;
    }
    if (!take(&opened, GROUPS_SHARE)) {
        lockstep_drop(r, LOCKSTEP_D_COMMS_FULL);
        return 0;
    }
    bool known = size > 0 && rank >= 0 && rank < size;
    uint16_t comm = lockstep_comm_add(r, hash, size > 0 ? size : LOCKSTEP_NONE, known ? rank : LOCKSTEP_NONE,
                                      LOCKSTEP_NONE, 0, 0, name);
    if (comm == 0 || comm >= GROUPS) {
        return 0;
    }
    scope_witness(r, LOCKSTEP_W_PROGRAM);
    atomic_store(&groups[comm].state, GROUP_OPEN);
    return comm;
}

static bool is_open(struct lockstep_ring *r, uint32_t group)
{
    uint64_t state = group < GROUPS ? atomic_load(&groups[group].state) : GROUP_UNUSED;
    if (state != GROUP_OPEN && group != 0) {
        lockstep_drop(r, state == GROUP_CLOSED ? LOCKSTEP_D_FINALIZED : LOCKSTEP_D_STALE_HANDLE);
    }
    return state == GROUP_OPEN;
}

static void fill(struct lockstep_slot *s, uint64_t head, uint64_t handle, uint64_t number, uint64_t bytes,
                 int32_t root, uint64_t step, uint64_t order, uint64_t now)
{
    put(&s->word[1], head);
    put(&s->word[2], handle);
    put(&s->word[3], number);
    put(&s->word[4], bytes);
    put(&s->word[5], (uint32_t)root);
    put(&s->word[6], now);
    put(&s->word[7], lockstep_pair(0, (uint32_t)step));
    put(&s->word[10], lockstep_pair(0, (uint32_t)LOCKSTEP_NONE));
    put(&s->order, order);
    put(&s->last, now);
}

static struct lockstep_frontier *frontier_of(struct lockstep_ring *r, uint64_t head)
{
    return lockstep_frontier_of(r, (uint16_t)(head >> 32), (uint8_t)(head >> 48));
}

// Takes an operation out of its slot, once. now 0: it was not seen to complete.
static bool end_operation(struct lockstep_ring *r, uint64_t handle, uint64_t now)
{
    uint64_t index = handle & 0xffff, expected = handle;
    if (handle == 0 || index == 0 || index > r->nslots ||
        !atomic_compare_exchange_strong(&handles[index - 1], &expected, 0)) {
        return false;
    }
    struct lockstep_slot *s = &r->slots[index - 1];
    lockstep_slot_ending(s, handle);
    uint64_t word[LOCKSTEP_WORDS] = {0};
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        word[i] = get(&s->word[i]);
    }
    word[11] = now;
    struct lockstep_frontier *f = frontier_of(r, word[1]);
    lockstep_emit(r, word);
    if (f != NULL) {
        atomic_fetch_sub_explicit(&f->open, 1, memory_order_relaxed);
        if (now != 0) {
            lockstep_frontier_raise(&f->completed, &f->completed_at, word[3], now);
        }
    }
    lockstep_slot_free(r, s, handle);
    atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
    return true;
}

static uint64_t claim(struct lockstep_ring *r, struct lockstep_slot **s)
{
    if (!take(&running, (r->nslots + 1) / 2)) {
        lockstep_drop(r, LOCKSTEP_D_SLOTS_FULL);
        return 0;
    }
    uint64_t handle = lockstep_slot_claim(r, s);
    if (handle == 0) {
        atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
    }
    return handle;
}

// Numbered although it may find no slot, since the other ranks go on counting.
static uint64_t begin_operation(struct lockstep_ring *r, struct lockstep_frontier *f, uint64_t head, uint64_t bytes,
                                int32_t root)
{
    struct lockstep_slot *s;
    uint64_t now = lockstep_now();
    uint64_t group = head >> 32 & 0xffff;
    uint64_t number = atomic_fetch_add_explicit(&f->total, 1, memory_order_relaxed);
    uint64_t order = 1 + atomic_fetch_add_explicit(&groups[group].orders, 1, memory_order_relaxed);
    lockstep_frontier_raise(&f->enqueued, &f->enqueued_at, number, now);
    lockstep_frontier_raise(&f->started, &f->started_at, number, now);
    uint64_t handle = claim(r, &s);
    if (handle == 0) {
        return 0;
    }
    atomic_fetch_add_explicit(&f->open, 1, memory_order_relaxed);
    fill(s, head, handle, number, bytes, root, scope_step(r), order, now);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_STARTED);
    atomic_store(&handles[(handle & 0xffff) - 1], handle);
    return handle;
}

uint64_t lockstep_collective_begin(uint32_t group, const char *func, uint64_t bytes, int32_t root, const char *dtype)
{
    struct lockstep_ring *r = ready();
    if (r == NULL || !is_open(r, group)) {
        return 0;
    }
    if (func == NULL || func[0] == '\0') {
        lockstep_drop(r, LOCKSTEP_D_NULL_ARGS);
        return 0;
    }
    // The function tells operations apart, the type does not.
    uint16_t code = lockstep_intern(r, func);
    if (code == 0) {
        return 0;
    }
    uint64_t head = lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, 0, group, code, lockstep_intern(r, dtype));
    struct lockstep_frontier *f = frontier_of(r, head);
    uint64_t handle = f != NULL ? begin_operation(r, f, head, bytes, root) : 0;
    // Who closes a group looks for its operations after having said so, who begins
    // one looks after having shown it: one sees the other.
    if (handle != 0 && !is_open(r, group)) {
        end_operation(r, handle, 0);
        return 0;
    }
    return handle;
}

void lockstep_collective_end(uint64_t handle)
{
    struct lockstep_ring *r = ready();
    if (r != NULL && handle != 0 && !end_operation(r, handle, lockstep_now())) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
    }
}

void lockstep_group_close(uint32_t group)
{
    struct lockstep_ring *r = ready();
    if (r == NULL || !is_open(r, group)) {
        return;
    }
    atomic_store(&groups[group].state, GROUP_CLOSED);
    for (uint64_t i = 0; i < r->nslots; i++) {
        uint64_t handle = atomic_load(&handles[i]);
        if (handle != 0 && (get(&r->slots[i].word[1]) >> 32 & 0xffff) == group) {
            end_operation(r, handle, 0);
        }
    }
    lockstep_comm_end(r, (uint16_t)group);
}
