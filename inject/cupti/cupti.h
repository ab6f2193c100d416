// SPDX-License-Identifier: Apache-2.0

// What the parts of the CUPTI client share.
#ifndef LOCKSTEP_CUPTI_H
#define LOCKSTEP_CUPTI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "cupti_abi.h"
#include "ring.h"

#define CUPTI_BUFFER_SIZE (1u << 20) // as NVIDIA's documents advise, 1 to 10 MiB

extern struct cupti_library cupti; // filled before the first callback

// load.c: the library of the process, or one of its own; NULL, or why there is none.
const char *cupti_load(const char *asked);

// client.c
void cupti_tick(void *ring); // once a second, on CUPTI's thread
void cupti_delivered(struct lockstep_ring *r);
// FOLLOW: pause where the program has paused and not resumed, else resume.
enum cupti_command { CUPTI_FOLLOW, CUPTI_LEAVE };
cupti_result cupti_obey(struct lockstep_ring *r, enum cupti_command what);

// worker.c: the threads that call CUPTI. What is asked of them is waited for until a
// time of lockstep_now; CUPTI_LATE: it is done as soon as CUPTI lets go.
#define CUPTI_LATE UINT32_MAX
bool cupti_threads_start(struct lockstep_ring *r);
cupti_result cupti_ask(enum cupti_command what, uint64_t until);

// buffers.c
void cupti_buffers_init(unsigned count);
void cupti_request(uint8_t **buffer, size_t *size, size_t *max_records);
void cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
uint64_t cupti_signs(void); // calls of the two so far
// Waits for a full buffer, and has it read.
typedef void (*cupti_read_fn)(struct lockstep_ring *r, uint8_t *buffer, size_t valid);
void cupti_read_next(struct lockstep_ring *r, cupti_read_fn read);
extern _Atomic bool cupti_hurry;      // no pace: the process ends
bool cupti_wait_read(uint64_t until); // until no full one is left; false: too late

// read.c
void *cupti_reader(void *ring);
// Walks the records of a buffer; each gets its size. False where CUPTI pointed
// elsewhere, or came to one that is not complete.
typedef void (*cupti_record_fn)(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now);
bool cupti_walk(struct lockstep_ring *r, uint8_t *buffer, size_t valid, uint64_t now, cupti_record_fn fn);

// record.c: kinds 4 and 5, then the others; whether a record was written.
void cupti_take_call(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now);
bool cupti_take_work(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now);

// launch.c: who launched what, by correlation.
struct cupti_launch {
    uint64_t start;
    uint32_t thread;
};
extern _Atomic bool cupti_launches; // calls are recorded
void cupti_launch_add(uint32_t correlation, uint64_t start, uint32_t thread);
bool cupti_launch_of(uint32_t correlation, struct cupti_launch *out);

// clock.c: reads CUPTI's clock between two readings of ours, and writes the record.
cupti_result cupti_clock(struct lockstep_ring *r, uint64_t *now);
// Has CUPTI follow REALTIME where it does not; always: whatever its clock shows.
cupti_result cupti_clock_restore(bool always);
bool cupti_clock_replaced(void); // by another client: it does not show REALTIME

// name.c
struct cupti_name {
    uint16_t code;
    bool communication;
    bool read; // false: there was no text
};
void cupti_names_begin(void); // of a buffer: a pointer's text is read once in it. One thread at a time.
struct cupti_name cupti_name_of(struct lockstep_ring *r, uint64_t pointer);
// Text of a mangled or plain name without arguments of templates and functions;
// its length, at most size - 1.
size_t cupti_demangle(const char *mangled, size_t length, char *out, size_t size);

// device.c: finds the driver; the index among the ring's GPUs, 0: unknown.
void cupti_find_driver(void);
uint32_t cupti_gpu_of(struct lockstep_ring *r, uint32_t device);

static inline uint32_t cupti_saturate(uint64_t v, uint32_t most) { return v > most ? most : (uint32_t)v; }

#endif
