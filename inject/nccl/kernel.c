// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Channels of kernels, and their phases: stamps of the GPU's own clock.
#include "plugin.h"

// A stamp that is ahead of the clock would make all that follow look late: after
// so many, it was the one that was wrong. NCCL's own buffer holds as many works.
#define BAD_IN_A_ROW 64
#define SLACK_NS 1000000ull

enum { GPU_START, HOST_START, GPU_STOP };

// what of a channel: channel u8 | context u16 << 8 | stamped << 32 | phase + 1 << 40.
#define STAMPED (1ull << 32)

uint64_t kernel_start(struct lockstep_ring *r, struct context *c, unsigned abi, const struct abi_event *e)
{
    uint64_t parent = (uintptr_t)e->parent, now = lockstep_now();
    struct lockstep_slot *slot;
    if (tag_of(parent) != TAG_OP || op_of(r, body_of(parent), &slot) == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return 0;
    }
    struct entry *k = pool_claim(r, &kernel_chs, body_of(parent));
    if (k == NULL) {
        return 0;
    }
    uint64_t timer = abi >= 4 ? e->kernel_ch.timer : 0;
    put(&k->begin, now);
    put(&k->at[GPU_START], timer);
    put(&k->at[HOST_START], now);
    put(&k->at[GPU_STOP], 0);
    put(&k->what, e->kernel_ch.channel | (uint64_t)context_index(c) << 8 | (abi >= 4 ? STAMPED : 0));
    uint64_t handle = pool_publish(&kernel_chs, TAG_KERNEL_CH, k);
    op_kernel_begin(r, body_of(parent), timer, now);
    return handle;
}

uint64_t phase_start(struct lockstep_ring *r, const struct abi_event *e)
{
    uint64_t parent = (uintptr_t)e->parent;
    struct entry *above = pool_of(&kernel_chs, TAG_KERNEL_CH, parent);
    uint64_t op = above != NULL ? get(&above->op) : tag_of(parent) == TAG_OP ? body_of(parent) : 0;
    if (lockstep_slot_of(r, op) == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return 0;
    }
    struct entry *k = pool_claim(r, &kernel_chs, op);
    if (k == NULL) {
        return 0;
    }
    put(&k->at[GPU_START], e->kernel_phase.timer);
    put(&k->at[HOST_START], lockstep_now());
    put(&k->at[GPU_STOP], 0);
    put(&k->what, e->kernel_phase.channel | STAMPED | (e->kernel_phase.phase + 1ull) << 40);
    return pool_publish(&kernel_chs, TAG_KERNEL_PHASE, k);
}

HOT void kernel_state(struct lockstep_ring *r, uint64_t handle, int state, const void *args)
{
    bool phase = tag_of(handle) == TAG_KERNEL_PHASE;
    struct entry *k = pool_of(&kernel_chs, phase ? TAG_KERNEL_PHASE : TAG_KERNEL_CH, handle);
    if (k == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
    } else if (!phase && state != S_KERNEL_CH_STOP) {
        lockstep_drop(r, LOCKSTEP_D_UNKNOWN_EVENT);
    } else if (args == NULL) {
        lockstep_drop(r, LOCKSTEP_D_NULL_ARGS);
    } else {
        put(&k->at[GPU_STOP], ((const union abi_args *)args)->timer);
    }
}

// Starts on a channel do not go back: one that does was overwritten on the way,
// as NCCL keeps the stamps of 64 works for each channel.
static bool in_order(struct context *c, unsigned channel, uint64_t start)
{
    lockstep_word *last = &c->channel_start[channel], *bad = &c->channel_bad[channel];
    if (start >= get(last)) {
        put(last, start);
        put(bad, 0);
        return true;
    }
    put(bad, get(bad) + 1);
    if (get(bad) > BAD_IN_A_ROW) {
        put(last, start);
        put(bad, 0);
    }
    return false;
}

// In nanoseconds no kernel takes longer than the time since it was enqueued; in
// ticks of a slower clock it seems to take less still.
static bool plausible(struct lockstep_ring *r, uint64_t op, uint64_t start, uint64_t stop, uint64_t now)
{
    struct lockstep_slot *s = lockstep_slot_of(r, op);
    uint64_t began = s != NULL ? get(&s->word[6]) : 0;
    if (start == 0 || stop < start) {
        return false;
    }
    uint64_t elapsed = now > began ? now - began : 0;
    return stop - start <= elapsed + elapsed / 1000 + SLACK_NS;
}

static void emit_channel(struct lockstep_ring *r, uint64_t op, uint64_t what, uint64_t start, uint64_t stop,
                         uint64_t host_start, uint64_t now)
{
    struct lockstep_slot *s = lockstep_slot_of(r, op);
    uint64_t head = s != NULL ? get(&s->word[1]) : 0;
    uint64_t word[LOCKSTEP_WORDS] = {
        [1] = lockstep_head(LOCKSTEP_KERNEL_CH, LOCKSTEP_LEVEL_ALL, 0, head >> 32 & 0xffff, head >> 48 & 0xff, 0),
        [2] = op,
        [3] = start,
        [4] = stop,
        [5] = host_start,
        [6] = now,
        [7] = lockstep_pair((uint32_t)((what & 0xff) | (what >> 40 & 0xff) << 8),
                            s != NULL ? (uint32_t)(get(&s->word[7]) >> 32) : LOCKSTEP_NO_STEP),
        [8] = s != NULL ? get(&s->word[3]) : 0,
    };
    lockstep_emit(r, word);
}

HOT void kernel_stop(struct lockstep_ring *r, uint64_t handle)
{
    bool phase = tag_of(handle) == TAG_KERNEL_PHASE;
    enum tag tag = phase ? TAG_KERNEL_PHASE : TAG_KERNEL_CH;
    struct entry *k = pool_of(&kernel_chs, tag, handle);
    uint64_t now = lockstep_now();
    if (k == NULL) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    uint64_t op = get(&k->op), what = get(&k->what), host_start = get(&k->at[HOST_START]);
    uint64_t start = get(&k->at[GPU_START]), stop = get(&k->at[GPU_STOP]);
    if (!pool_free(k, handle)) {
        lockstep_drop(r, LOCKSTEP_D_STALE_HANDLE);
        return;
    }
    if (level_all(r)) {
        emit_channel(r, op, what, start, stop, host_start, now);
    }
    if (phase) {
        return;
    }
    bool times = (what & STAMPED) != 0;
    if (times && (!in_order(context_at(what >> 8 & 0xffff), what & 0xff, start) || !plausible(r, op, start, stop, now))) {
        lockstep_drop(r, LOCKSTEP_D_BAD_GPU_TIME);
        times = false;
    }
    op_kernel_end(r, op, what & 0xff, start, stop, times, now);
}
