// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Codes of strings, cached by where they lie. NCCL's are literals, so an address
// stands for its text as long as NCCL is loaded, which it is while a communicator
// lives. When the first is made after all were gone, the cache's generation goes
// up, and every address is read anew.
#include "plugin.h"

#include <string.h>

#define CACHE 256u
#define ADDRESS_BITS 48

// address 48 | code 8 | generation 8; addresses that do not fit are looked up each
// time.
static lockstep_word cache[CACHE];
static _Atomic uint32_t generation = 1;

void codes_forget(void)
{
    uint32_t g = atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed) + 1;
    if ((g & 0xff) == 0) { // they come round: none of the old may stay
        for (unsigned i = 0; i < CACHE; i++) {
            put(&cache[i], 0);
        }
    }
}

HOT uint8_t code_of(struct lockstep_ring *r, const char *text)
{
    uint64_t address = (uintptr_t)text;
    if (text == NULL) {
        return 0;
    }
    uint64_t g = atomic_load_explicit(&generation, memory_order_relaxed) & 0xff;
    lockstep_word *w = &cache[(address ^ address >> 8) % CACHE];
    uint64_t v = get(w);
    if (v << (64 - ADDRESS_BITS) == address << (64 - ADDRESS_BITS) && v >> 56 == g && address >> ADDRESS_BITS == 0 &&
        v != 0) {
        return v >> ADDRESS_BITS & 0xff;
    }
    uint8_t code = (uint8_t)lockstep_intern(r, text);
    if (address >> ADDRESS_BITS == 0) {
        put(w, address | (uint64_t)code << ADDRESS_BITS | g << 56);
    }
    return code;
}

// Bytes of an element; 0 where the type is unknown.
unsigned size_of_datatype(const char *t)
{
    if (t == NULL || strncmp(t, "nccl", 4) != 0) {
        return 0;
    }
    static const struct {
        const char *name;
        unsigned size;
    } sizes[] = {{"Float32", 4}, {"Bfloat16", 2}, {"Float16", 2}, {"Int8", 1}, {"Uint8", 1}, {"Float8e4m3", 1},
                 {"Float8e5m2", 1}, {"Int32", 4}, {"Uint32", 4}, {"Int64", 8}, {"Uint64", 8}, {"Float64", 8},
                 {"Char", 1}, {"Int", 4}, {"Half", 2}, {"Float", 4}, {"Double", 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strcmp(t + 4, sizes[i].name) == 0) {
            return sizes[i].size;
        }
    }
    return 0;
}
