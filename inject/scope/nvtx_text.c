// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Names of NVTX ranges: "message", or "domain: message".
#include "nvtx.h"

#include <string.h>
#include <strings.h>

#define DOMAINS 256u   // of different names; 0 is the default one
#define PREFIX_MAX 24u // bytes of a domain's name, so that messages keep most of a string
#define DOMAIN_MARK 0x4c53444f00000000ull
#define STRING_MARK 0x4c53535400000000ull
#define MARK_MASK 0xffffffff00000000ull

struct domain {
    uint64_t hash;  // of the whole name: that many begin alike
    uint8_t length; // of the prefix
    char prefix[PREFIX_MAX + 3];
};

// None is ever taken out: libraries create theirs by the same name again.
static struct domain domains[DOMAINS];
static _Atomic uint32_t ndomains = 1;
static pthread_mutex_t domains_mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t cut(const char *text, size_t room)
{
    size_t n = strnlen(text, room + 1);
    if (n <= room) {
        return n;
    }
    for (n = room; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--) {
    }
    return n;
}

// "NVTX" is what the Python package calls the default domain.
static bool is_default(const char *name)
{
    return name == NULL || name[0] == '\0' || strcasecmp(name, "default") == 0 || strcasecmp(name, "nvtx") == 0;
}

static uint64_t hash_whole(const char *name)
{
    uint64_t h = 14695981039346656037u; // FNV-1a
    for (; *name != '\0'; name++) {
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    }
    return h;
}

static uint32_t find_domain(const struct domain *d, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (domains[i].hash == d->hash && memcmp(domains[i].prefix, d->prefix, sizeof d->prefix) == 0) {
            return i;
        }
    }
    return 0;
}

uint64_t nvtx_domain_create(struct lockstep_ring *r, const char *name)
{
    struct domain d = {0};
    if (is_default(name)) {
        return DOMAIN_MARK;
    }
    d.hash = hash_whole(name);
    size_t n = cut(name, PREFIX_MAX);
    memcpy(d.prefix, name, n);
    memcpy(d.prefix + n, ": ", 2);
    d.length = (uint8_t)(n + 2);
    pthread_mutex_lock(&domains_mutex);
    uint32_t used = atomic_load_explicit(&ndomains, memory_order_relaxed), at = find_domain(&d, used);
    if (at == 0 && used < DOMAINS) {
        at = used;
        domains[at] = d;
        atomic_store_explicit(&ndomains, used + 1, memory_order_release);
    } else if (at == 0) {
        lockstep_drop(r, LOCKSTEP_D_SLOTS_FULL);
    }
    pthread_mutex_unlock(&domains_mutex);
    return DOMAIN_MARK | at;
}

uint32_t nvtx_domain_of(uint64_t handle)
{
    uint32_t i = (uint32_t)handle;
    bool known = (handle & MARK_MASK) == DOMAIN_MARK && i < atomic_load_explicit(&ndomains, memory_order_acquire);
    return known ? i : 0;
}

uint16_t nvtx_name(struct lockstep_ring *r, uint32_t domain, const char *text)
{
    if (text == NULL) {
        return 0;
    }
    if (domain == 0) {
        return lockstep_name_add(r, LOCKSTEP_N_SCOPE, text, NVTX_TEXT);
    }
    const struct domain *d = &domains[domain];
    char whole[sizeof d->prefix + NVTX_TEXT];
    size_t n = strnlen(text, NVTX_TEXT);
    memcpy(whole, d->prefix, d->length);
    memcpy(whole + d->length, text, n);
    return lockstep_name_add(r, LOCKSTEP_N_SCOPE, whole, d->length + n);
}

// A registered string is known by the code of its name.
uint64_t nvtx_string_register(struct lockstep_ring *r, uint32_t domain, const char *text)
{
    return STRING_MARK | nvtx_name(r, domain, text);
}

static uint16_t registered(const struct lockstep_ring *r, uint64_t handle)
{
    uint64_t code = handle & ~MARK_MASK;
    return (handle & MARK_MASK) == STRING_MARK && code < r->nstrings ? (uint16_t)code : 0;
}

// UTF-8 of one character; what is none becomes U+FFFD.
static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        c = 0xfffd;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

const char *nvtx_narrow(const wchar_t *text, char out[NVTX_TEXT])
{
    if (text == NULL) {
        return NULL;
    }
    size_t n = 0;
    for (; *text != L'\0'; text++) {
        char c[4];
        size_t size = encode((uint32_t)*text, c);
        if (n + size >= NVTX_TEXT) {
            break;
        }
        memcpy(out + n, c, size);
        n += size;
    }
    out[n] = '\0';
    return out;
}

uint16_t nvtx_name_of_event(struct lockstep_ring *r, uint32_t domain, const struct nvtx_event *e)
{
    char narrow[NVTX_TEXT];
    if (e == NULL || e->size < sizeof *e) {
        return 0;
    }
    switch (e->message_type) {
    case NVTX_MESSAGE_ASCII:
        return nvtx_name(r, domain, e->message.ascii);
    case NVTX_MESSAGE_UNICODE:
        return nvtx_name(r, domain, nvtx_narrow(e->message.unicode, narrow));
    case NVTX_MESSAGE_REGISTERED:
        return registered(r, e->message.registered);
    default:
        return 0;
    }
}
