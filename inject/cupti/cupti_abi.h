// SPDX-License-Identifier: Apache-2.0

// What we need of CUPTI's interface, declared anew. Numbers and offsets were
// compared with the headers of CUPTI 11.8 (API version 18), 12.4 (22), 12.9 (28),
// 13.0 (130000) and 13.5 (130500); they are the same in all five.
#ifndef LOCKSTEP_CUPTI_ABI_H
#define LOCKSTEP_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t cupti_result;

enum {
    CUPTI_OK = 0,
    CUPTI_NO_MORE = 12, // MAX_LIMIT_REACHED
    CUPTI_TAKEN = 39,   // MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
};

enum cupti_kind {
    CUPTI_COPY = 1,
    CUPTI_SET = 2,
    CUPTI_DRIVER = 4,
    CUPTI_RUNTIME = 5,
    CUPTI_KERNEL = 10, // CONCURRENT_KERNEL; kind 3 would serialise them
};

#define CUPTI_FLUSH_FORCED 1u
#define CUPTI_THREADS_BY_SYSTEM 1u // gettid, not pthread_self
#define CUPTI_BUFFERS_APART 9u     // attribute, u8: threads have buffers of their own; 0 in 12.9, 1 from 13.0 on

// The first 160 bytes of a kernel, from CUpti_ActivityKernel5 to 13. Kernel4 ends
// at 144, with the launch type.
struct cupti_kernel {
    uint32_t kind;
    uint8_t unused4[2];
    uint16_t registers;
    uint8_t unused8[8];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint8_t unused84[8];
    uint32_t correlation;
    int64_t grid_id;
    uint64_t name; // char *, mangled
    uint8_t unused112[8];
    uint64_t queued, submitted;
    uint8_t launch_type, unused137[7];
    uint64_t graph_node;
    uint8_t unused152[4];
    uint32_t graph;
};
#define CUPTI_KERNEL4_SIZE 144u

// The first 80 bytes of a copy (CUpti_ActivityMemcpy4 to 7) or set (Memset3 to 5):
// what both have in one place. The oldest end at 64.
struct cupti_memory {
    uint32_t kind;
    uint8_t unused4[4];
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream, correlation;
    uint8_t unused48[16];
    uint64_t graph_node;
    uint32_t graph, unused76;
};
#define CUPTI_MEMORY_OLDEST_SIZE 64u

// A call of the runtime or the driver (CUpti_ActivityAPI).
struct cupti_call {
    uint32_t kind, cbid;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};

#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), "layout")
AT(cupti_kernel, registers, 6);
AT(cupti_kernel, start, 16);
AT(cupti_kernel, device, 40);
AT(cupti_kernel, grid, 52);
AT(cupti_kernel, block, 64);
AT(cupti_kernel, static_shared, 76);
AT(cupti_kernel, correlation, 92);
AT(cupti_kernel, name, 104);
AT(cupti_kernel, queued, 120);
AT(cupti_kernel, launch_type, 136);
AT(cupti_kernel, graph_node, 144);
AT(cupti_kernel, graph, 156);
_Static_assert(sizeof(struct cupti_kernel) == 160, "layout");
AT(cupti_memory, bytes, 8);
AT(cupti_memory, start, 16);
AT(cupti_memory, device, 32);
AT(cupti_memory, correlation, 44);
AT(cupti_memory, graph_node, 64);
AT(cupti_memory, graph, 72);
_Static_assert(sizeof(struct cupti_memory) == 80, "layout");
AT(cupti_call, start, 8);
AT(cupti_call, thread, 28);
AT(cupti_call, correlation, 32);
_Static_assert(sizeof(struct cupti_call) == 40, "layout");
#undef AT

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void (*cupti_callback_fn)(void *user, uint32_t domain, uint32_t cbid, const void *data);

// What libcupti offers; those after `register_callbacks` may be missing (NULL).
struct cupti_library {
    cupti_result (*version)(uint32_t *version);
    cupti_result (*subscribe)(void **subscriber, cupti_callback_fn fn, void *user);
    cupti_result (*unsubscribe)(void *subscriber);
    cupti_result (*timestamp)(uint64_t *ns);
    cupti_result (*enable)(uint32_t kind);
    cupti_result (*disable)(uint32_t kind);
    cupti_result (*next_record)(uint8_t *buffer, size_t valid, uint8_t **record);
    cupti_result (*flush)(uint32_t flag);
    cupti_result (*register_callbacks)(cupti_request_fn request, cupti_complete_fn complete);
    cupti_result (*dropped)(void *context, uint32_t stream, size_t *dropped);
    cupti_result (*flush_period)(uint32_t ms);
    cupti_result (*enable_runtime)(uint32_t cbid, uint8_t on); // from 12.9 on; 12.4 has it not
    cupti_result (*enable_driver)(uint32_t cbid, uint8_t on);
    cupti_result (*enable_hardware)(uint8_t on);
    cupti_result (*set_thread_ids)(uint32_t type);
    cupti_result (*get_thread_ids)(uint32_t *type);
    cupti_result (*set_clock)(uint64_t (*clock)(void)); // from 11.6 on
    cupti_result (*get_attribute)(uint32_t attribute, size_t *size, void *value);
    cupti_result (*set_attribute)(uint32_t attribute, size_t *size, void *value);
};

#endif
