// SPDX-License-Identifier: Apache-2.0

// What the parts of the cold path share; no part of the ABI.
#ifndef LOCKSTEP_RING_INTERNAL_H
#define LOCKSTEP_RING_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "ring.h"

#include <pthread.h>
#include <sys/types.h>

// A word 0 with this bit set is claimed and not committed. Only lane 0 has such.
#define SHARED_CLAIMED (1ull << 63)

#define NOTES_SIZE 512u
#define SHORT_CODES 256u // of strings, from 0: those that fit 8 bits
#define TEXT_INDEX 2048u // entries of the intern cache, a power of two
#define RING_SUFFIX ".ring"
#define TMP_SUFFIX ".ring.tmp"
#define DEAD_AFTER_NS (600ull * 1000000000ull) // a dead ring is kept this long for its reader

#define RING_TICKS 4u // functions that the thread calls once a second

// Sizes after defaults, environment and limits.
struct config {
    char directory[512];
    uint32_t lanes, capacity, slots, retain_seconds, level;
    char notes[NOTES_SIZE]; // what was put right, for the status
};

// A stack of free indices: tag << 32 | index + 1. The tag makes a stale
// compare-and-swap fail.
struct free_stack {
    lockstep_word top;
    _Atomic uint32_t *next;
};

struct ring_layout {
    struct lockstep_section section[LOCKSTEP_SECTIONS];
    uint64_t size;
};

// A ring and what only its own process knows of it.
struct ring_private {
    struct lockstep_ring pub; // first, so that the one is cast to the other
    struct ring_private *next_open;
    void *base;
    size_t size;
    struct ring_layout layout;
    int dirfd;
    int lock_fd; // pub.fd, or what replaced it where the program closed that
    dev_t dev;
    ino_t ino;
    char name[96];
    struct config cfg;
    struct free_stack free_slots;
    _Atomic uint16_t text_index[TEXT_INDEX]; // code by hash of the text
    _Atomic uint16_t name_index[TEXT_INDEX]; // of names and seeds, none ever taken out
    lockstep_word names_used[LOCKSTEP_NAMERS];
    pthread_t heart;
    bool heart_runs;
    pthread_mutex_t heart_mutex;
    pthread_cond_t heart_cond;
    bool heart_stop;
    uint64_t bad_control; // the last control word that was counted
    struct ring_tick {
        _Atomic(void (*)(void *)) fn;
        _Atomic(void *) arg;
    } ticks[RING_TICKS];
};

static inline struct ring_private *private_of(struct lockstep_ring *r) { return (struct ring_private *)r; }

__attribute__((format(printf, 3, 4))) int ring_fail(char *err, size_t errlen, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ring_note(struct config *c, const char *format, ...);

// ring_env.c
int ring_configure(struct config *c, const struct lockstep_options *opt, char *err, size_t errlen);
void ring_identify(struct lockstep_header *h, struct config *c);
bool ring_env_true(const char *name);
uint64_t ring_start_time(void);
bool ring_boot_id(uint8_t id[16]);

// ring_open.c
void ring_point(struct ring_private *p); // the ring's pointers to where base is now

// ring_dir.c
int ring_open_directory(const char *path, char *err, size_t errlen);
mode_t ring_file_mode(int dirfd);
void ring_prune(int dirfd, const char *own_prefix);
// Moves a descriptor above those that programs take for their own input and
// output; -1 where it was -1, or cannot be moved.
int ring_above_stdio(int fd);
int ring_lock(int fd);

// ring_tables.c, ring_slot.c
void ring_seed_strings(struct lockstep_ring *r);
uint16_t ring_add_name(struct lockstep_ring *r, const char *text, size_t n); // its code does not fit 8 bits; 0: no room
int free_stack_init(struct free_stack *s, uint32_t count);
uint32_t free_stack_pop(struct free_stack *s); // index + 1; 0: empty
void free_stack_push(struct free_stack *s, uint32_t index);

// ring_names.c
void ring_seed_name(struct lockstep_ring *r, const char *text); // as intern, and it is nobody's share

// ring_thread.c
void ring_heart_start(struct ring_private *p);
void ring_heart_stop(struct ring_private *p);
void ring_heart_leave(struct ring_private *p); // as stop, but waits a second at most
void ring_beat(struct ring_private *p);

// ring_list.c
void ring_list_add(struct ring_private *p);
void ring_list_remove(struct ring_private *p);
void ring_release_lanes(uint64_t tid);
uint64_t ring_tid(void);
int ring_watch_thread(void);
void ring_on_thread_end(void (*fn)(void)); // called by each that has a lane, while it still has it
void ring_process_forked(void);

#endif
