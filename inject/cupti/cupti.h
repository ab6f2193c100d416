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

// client.c: once a second, with the ring.
void cupti_tick(void *ring);

// buffers.c
void cupti_buffers_init(unsigned count);
void cupti_request(uint8_t **buffer, size_t *size, size_t *max_records);
void cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
uint64_t cupti_signs(void); // calls of the two so far
// Walks the records of a buffer; each gets its size. False where CUPTI pointed elsewhere.
typedef void (*cupti_record_fn)(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now);
bool cupti_walk(struct lockstep_ring *r, uint8_t *buffer, size_t valid, uint64_t now, cupti_record_fn fn);

// record.c: kinds 4 and 5, then the others.
void cupti_take_call(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now);
void cupti_take_work(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now);

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

// name.c
struct cupti_name {
    uint16_t code;
    bool communication;
};
struct cupti_name cupti_name_of(struct lockstep_ring *r, uint64_t pointer);
// Text of a mangled or plain name without arguments of templates and functions;
// its length, at most size - 1.
size_t cupti_demangle(const char *mangled, size_t length, char *out, size_t size);

// device.c: the index among the ring's GPUs; 0: unknown.
uint32_t cupti_gpu_of(struct lockstep_ring *r, uint32_t device);

static inline uint32_t cupti_saturate(uint64_t v, uint32_t most) { return v > most ? most : (uint32_t)v; }

#endif
