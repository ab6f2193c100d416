// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Names of kernels: shortened to the nested name without arguments, as Kineto's are
// in internal/kineto, and remembered by pointer and text.
#include "cupti.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST 4096u  // bytes of a mangled name that are looked at; the rest is arguments
#define CHUNK 512u  // most names are shorter
#define SHOWN 256u  // bytes of a demangled one; the ring keeps less
#define NAMES 4096u // powers of two
#define POINTERS 1024u
#define COMMUNICATION (1u << 16)

static lockstep_word names[NAMES]; // tag u47 | communication u1 | code u16

// Names of the buffer that is being read, by pointer.
static struct known {
    uint64_t pointer, buffer;
    struct cupti_name name;
} pointers[POINTERS];
static uint64_t buffer_number;

void cupti_names_begin(void) { buffer_number++; }

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

// Where a filter of system calls refuses the other way. Opened for this one read,
// so that no descriptor is left for the program to close.
static ssize_t copy_from_file(uint64_t address, char *to, size_t n)
{
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t got = pread(fd, to, n, (off_t)address);
    close(fd);
    return got;
}

// The system copies, or says that nothing is there: a pointer of CUPTI's may be one
// of a module that was unloaded since, so it is never followed here.
static ssize_t copy(uint64_t address, char *to, size_t n)
{
    struct iovec into = {to, n}, from = {(void *)(uintptr_t)address, n};
    ssize_t got = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
    return got < 0 && errno != EFAULT ? copy_from_file(address, to, n) : got;
}

// Copies the text, cut at size; its length, 0 where there is none.
static size_t copy_text(uint64_t address, char *to, size_t size)
{
    size_t n = 0;
    while (n < size) {
        size_t room = CHUNK - (address + n) % CHUNK; // within a page
        room = room < size - n ? room : size - n;
        ssize_t got = copy(address + n, to + n, room);
        if (got <= 0) {
            return 0;
        }
        const char *end = memchr(to + n, '\0', (size_t)got);
        if (end != NULL) {
            return (size_t)(end - to);
        }
        n += (size_t)got;
    }
    return n;
}

static uint64_t hash_of(const char *text, size_t n, uint64_t h)
{
    for (; n >= 8; n -= 8, text += 8) {
        uint64_t w;
        memcpy(&w, text, sizeof w);
        h = (h ^ w) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    uint64_t rest = 0;
    memcpy(&rest, text, n);
    return mix(h ^ rest);
}

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

// Kernels of NCCL and of what is made from it: RCCL's have the same names or their
// own, and MSCCL's run within it.
static bool is_communication(const char *name)
{
    return strstr(name, "ncclDevKernel") != NULL || starts(name, "ncclKernel") || strstr(name, "::ncclKernel") != NULL ||
           starts(name, "rcclKernel") || starts(name, "mscclKernel");
}

static uint64_t make(struct lockstep_ring *r, const char *text, size_t n)
{
    char shown[SHOWN];
    size_t length = cupti_demangle(text, n, shown, sizeof shown);
    return lockstep_name_add(r, LOCKSTEP_N_KERNEL, shown, length) | (is_communication(shown) ? COMMUNICATION : 0);
}

static struct cupti_name read_name(struct lockstep_ring *r, uint64_t pointer)
{
    char text[MOST];
    int before = errno;
    size_t n = copy_text(pointer, text, sizeof text);
    errno = before;
    if (n == 0) {
        return (struct cupti_name){0};
    }
    uint64_t h = hash_of(text, n, pointer);
    lockstep_word *known = &names[h & (NAMES - 1)];
    uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
    if (word >> 17 != h >> 17) {
        word = (h >> 17) << 17 | make(r, text, n);
        atomic_store_explicit(known, word, memory_order_relaxed);
    }
    return (struct cupti_name){(uint16_t)word, (word & COMMUNICATION) != 0, true};
}

struct cupti_name cupti_name_of(struct lockstep_ring *r, uint64_t pointer)
{
    struct known *p = &pointers[mix(pointer) & (POINTERS - 1)];
    if (p->pointer != pointer || p->buffer != buffer_number) {
        p->name = read_name(r, pointer);
        p->pointer = pointer;
        p->buffer = buffer_number;
    }
    if (!p->name.read) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
    }
    return p->name;
}
