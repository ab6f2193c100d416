//go:build ignore

// Names of kernels: shortened to the nested name without arguments, as Kineto's are
// in internal/kineto, and remembered by pointer and text.
#include "cupti.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 4096u  // bytes of a mangled name that are looked at
#define SHOWN 256u  // bytes of a demangled one; the ring keeps less
#define NAMES 4096u // powers of two
#define PAGES 256u
#define COMMUNICATION (1u << 16)

static lockstep_word names[NAMES]; // tag u47 | communication u1 | code u16
static lockstep_word pages[PAGES]; // that can be read, by number

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    return x ^ x >> 32;
}

// The kernel looks at the set before it finds that the call has no meaning, and so
// tells whether there is memory, without harm and without rights.
static bool readable(uint64_t address)
{
    uint64_t page = address / LOCKSTEP_PAGE;
    lockstep_word *known = &pages[mix(page) & (PAGES - 1)];
    if (atomic_load_explicit(known, memory_order_relaxed) == page && page != 0) {
        return true;
    }
    int before = errno;
    bool ok = page != 0 && syscall(SYS_rt_sigprocmask, -1, address & ~7ull, NULL, 8) != 0 && errno != EFAULT;
    errno = before;
    if (ok) {
        atomic_store_explicit(known, page, memory_order_relaxed);
    }
    return ok;
}

// Bytes of the text; 0 where it is empty, too long, or not to be read.
static size_t length_of(uint64_t address)
{
    size_t n = 0;
    while (n < MOST && readable(address + n)) {
        size_t room = LOCKSTEP_PAGE - (address + n) % LOCKSTEP_PAGE;
        const char *from = (const char *)(uintptr_t)(address + n);
        const char *end = memchr(from, '\0', room);
        if (end != NULL) {
            return n + (size_t)(end - from);
        }
        n += room;
    }
    return 0;
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

struct cupti_name cupti_name_of(struct lockstep_ring *r, uint64_t pointer)
{
    size_t n = length_of(pointer);
    if (n == 0) {
        lockstep_drop(r, LOCKSTEP_D_CUPTI_GARBAGE);
        return (struct cupti_name){0, false};
    }
    const char *text = (const char *)(uintptr_t)pointer;
    uint64_t h = hash_of(text, n, pointer);
    lockstep_word *known = &names[h & (NAMES - 1)];
    uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
    if (word >> 17 != h >> 17) {
        word = (h >> 17) << 17 | make(r, text, n);
        atomic_store_explicit(known, word, memory_order_relaxed);
    }
    return (struct cupti_name){(uint16_t)word, (word & COMMUNICATION) != 0};
}
