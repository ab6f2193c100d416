// SPDX-License-Identifier: Apache-2.0

// What NVTX 3 and a tool that it loads have in common, declared here by what its
// public header says of names, order and sizes; and what the files of NVTX share.
#ifndef LOCKSTEP_SCOPE_NVTX_H
#define LOCKSTEP_SCOPE_NVTX_H

#include "scope.h"

#include <wchar.h>

typedef void (*nvtx_function)(void);

// Asks the library in the program for one of its tables.
typedef const void *(*nvtx_get_export_table)(uint32_t id);
#define NVTX_TABLE_CALLBACKS 1u

struct nvtx_callbacks {
    size_t size;
    // The places of a module's functions, by number; 1: there is such a module.
    int (*module)(uint32_t module, nvtx_function ***places, unsigned *count);
};

enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

enum nvtx_core {
    NVTX_RANGE_START_EX = 4, NVTX_RANGE_START_A, NVTX_RANGE_START_W, NVTX_RANGE_END,
    NVTX_RANGE_PUSH_EX, NVTX_RANGE_PUSH_A, NVTX_RANGE_PUSH_W, NVTX_RANGE_POP,
};

enum nvtx_core2 {
    NVTX_DOMAIN_RANGE_START_EX = 2, NVTX_DOMAIN_RANGE_END, NVTX_DOMAIN_RANGE_PUSH_EX, NVTX_DOMAIN_RANGE_POP,
    NVTX_DOMAIN_REGISTER_STRING_A = 10, NVTX_DOMAIN_REGISTER_STRING_W, NVTX_DOMAIN_CREATE_A, NVTX_DOMAIN_CREATE_W,
};

enum nvtx_message_type { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

// Of a range, as the program fills it; newer ones are longer.
struct nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        uint64_t registered;
    } message;
};

_Static_assert(sizeof(struct nvtx_event) == 48, "layout");
_Static_assert(offsetof(struct nvtx_event, message_type) == 32, "layout");
_Static_assert(offsetof(struct nvtx_event, message) == 40, "layout");

#define NVTX_NOT_TRACKED (-2) // what a push and a pop return where no tool looks

// nvtx_text.c. Handles of domains and strings are numbers with a mark, never
// addresses; whatever else comes as one is the default domain, or no name.
uint64_t nvtx_domain_create(struct lockstep_ring *r, const char *name);
uint32_t nvtx_domain_of(uint64_t handle);
uint64_t nvtx_string_register(struct lockstep_ring *r, uint32_t domain, const char *text);
uint16_t nvtx_name(struct lockstep_ring *r, uint32_t domain, const char *text);
uint16_t nvtx_name_of_event(struct lockstep_ring *r, uint32_t domain, const struct nvtx_event *e);
#define NVTX_TEXT 256u // bytes of a message that are looked at
const char *nvtx_narrow(const wchar_t *text, char out[NVTX_TEXT]);

// What NVTX calls, by its name, in the library that NVTX_INJECTION64_PATH names.
LOCKSTEP_EXPORT int InitializeInjectionNvtx2(nvtx_get_export_table get);

#endif
