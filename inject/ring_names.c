// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Names of scopes and kernels. They leave the codes of 8 bits to functions, which
// have no more in a record. The ring has 768 other strings, and names vary without
// end: "iteration 17" is followed by "iteration 18". So each source has a share; when
// most of it is used, runs of digits become one '#', and when all of it is, names
// become "(other)".
#include "ring_internal.h"

#include <string.h>

#define SHARE 380u // twice that, and some for threads that come at once
#define SHARE_PLAIN (SHARE * 3 / 4)
#define TEXT_MAX 55u // bytes of a string
#define OTHER "(other)"

// Fast and good enough for a table that is never more than half full.
static uint32_t hash_name(const char *text, size_t n)
{
    uint64_t h = n, w;
    for (; n >= sizeof w; text += sizeof w, n -= sizeof w) {
        memcpy(&w, text, sizeof w);
        h = (h ^ w) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    w = 0;
    memcpy(&w, text, n);
    h = (h ^ w) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(h >> 40);
}

static bool is_text(const struct lockstep_ring *r, uint16_t code, const char *text, size_t n)
{
    const struct lockstep_string *s = &r->strings[code];
    return memcmp(s->text, text, n) == 0 && s->text[n] == '\0';
}

// The code of a name that was entered before, else 0 and the place for it; NULL
// where the index is full.
static uint16_t find(struct lockstep_ring *r, const char *text, size_t n, _Atomic uint16_t **place)
{
    _Atomic uint16_t *index = private_of(r)->name_index;
    uint32_t at = hash_name(text, n);
    for (uint32_t i = 0; i < TEXT_INDEX; i++, at++) {
        *place = &index[at & (TEXT_INDEX - 1)];
        uint16_t code = atomic_load_explicit(*place, memory_order_acquire);
        if (code == 0 || is_text(r, code, text, n)) {
            return code;
        }
    }
    *place = NULL;
    return 0;
}

// Puts a name with its code into the index; true where it was not there yet.
static bool enter(struct lockstep_ring *r, const char *text, size_t n, uint16_t code)
{
    _Atomic uint16_t *place;
    while (code != 0 && find(r, text, n, &place) == 0 && place != NULL) {
        uint16_t none = 0;
        if (atomic_compare_exchange_strong_explicit(place, &none, code, memory_order_release,
                                                    memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void ring_seed_name(struct lockstep_ring *r, const char *text)
{
    enter(r, text, strlen(text), lockstep_intern(r, text));
}

// Bytes of the text that a string holds, not ending within a UTF-8 sequence.
static size_t cut(const char *text, size_t n)
{
    if (n <= TEXT_MAX) {
        return n;
    }
    for (n = TEXT_MAX; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--) {
    }
    return n;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The text with each run of digits as one '#'; its length, cut to what fits.
static size_t collapse(const char *text, size_t n, char out[TEXT_MAX + 1])
{
    size_t m = 0;
    for (size_t i = 0; i < n && m <= TEXT_MAX; i++) {
        if (!is_digit(text[i])) {
            out[m++] = text[i];
        } else if (i == 0 || !is_digit(text[i - 1])) {
            out[m++] = '#';
        }
    }
    return cut(out, m);
}

static uint16_t add(struct lockstep_ring *r, lockstep_word *used, const char *text, size_t n)
{
    uint16_t code = ring_add_name(r, text, n);
    if (enter(r, text, n, code)) {
        atomic_fetch_add_explicit(used, 1, memory_order_relaxed);
    }
    return code;
}

static uint16_t add_shortened(struct lockstep_ring *r, lockstep_word *used, const char *text, size_t length)
{
    char short_text[TEXT_MAX + 1];
    _Atomic uint16_t *place;
    size_t n = collapse(text, length, short_text);
    size_t m = cut(text, length);
    bool changed = n != m || memcmp(short_text, text, n) != 0;
    uint16_t code = changed ? find(r, short_text, n, &place) : 0;
    bool room = atomic_load_explicit(used, memory_order_relaxed) < SHARE;
    if (changed || !room) {
        lockstep_drop(r, LOCKSTEP_D_NAMES);
    }
    if (code != 0) {
        return code;
    }
    return room ? add(r, used, short_text, n) : find(r, OTHER, strlen(OTHER), &place);
}

uint16_t lockstep_name_add(struct lockstep_ring *r, enum lockstep_namer who, const char *text, size_t length)
{
    length = text != NULL ? strnlen(text, length) : 0;
    size_t n = cut(text, length);
    if (n == 0) {
        return 0;
    }
    _Atomic uint16_t *place;
    uint16_t code = find(r, text, n, &place);
    if (code != 0) {
        return code;
    }
    lockstep_word *used = &private_of(r)->names_used[who];
    if (atomic_load_explicit(used, memory_order_relaxed) < SHARE_PLAIN) {
        return add(r, used, text, n);
    }
    return add_shortened(r, used, text, length);
}
