// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Nested names out of Itanium-mangled ones: what stands in a name, without the
// arguments of its templates and of the function. Whatever is not understood ends
// the name at what was.
#include "cupti.h"

#include <string.h>

struct reader {
    const char *at, *end;
    char *out;
    size_t size, length;
    unsigned depth;
};

// Deeper than any compiler's own limit for what is in use.
#define DEEPEST 64u

static char peek(const struct reader *d) { return d->at < d->end ? *d->at : '\0'; }

static bool accept(struct reader *d, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(d->end - d->at) < n || memcmp(d->at, text, n) != 0) {
        return false;
    }
    d->at += n;
    return true;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

// A name of a source: its length, then its bytes.
static bool source_name(struct reader *d, const char **text, size_t *n)
{
    size_t v = 0;
    while (digit(peek(d)) && v < 100000) {
        v = v * 10 + (size_t)(*d->at++ - '0');
    }
    if (v == 0 || v > (size_t)(d->end - d->at)) {
        return false;
    }
    *text = d->at;
    *n = v;
    d->at += v;
    return true;
}

static void put(struct reader *d, const char *text, size_t n)
{
    size_t room = d->size - 1 - d->length;
    n = n < room ? n : room;
    memcpy(d->out + d->length, text, n);
    d->length += n;
}

static void put_part(struct reader *d, const char *text, size_t n)
{
    if (d->length > 0) {
        put(d, "::", 2);
    }
    put(d, text, n);
}

static bool skip_arguments(struct reader *d);

// S_, S0_, St and their like.
static bool skip_substitution(struct reader *d)
{
    d->at++;
    char c = peek(d);
    if (c >= 'a' && c <= 'z') {
        d->at++;
        return true;
    }
    while (digit(peek(d)) || (peek(d) >= 'A' && peek(d) <= 'Z')) {
        d->at++;
    }
    return accept(d, "_");
}

// A value: its type, then characters up to E, or a mangled name.
static bool skip_literal(struct reader *d)
{
    const char *text;
    size_t n;
    if (accept(d, "_Z")) {
        return skip_arguments(d); // up to its own E
    }
    if (digit(peek(d))) {
        if (!source_name(d, &text, &n)) {
            return false;
        }
    } else if (peek(d) == 'N') {
        d->at++;
        if (!skip_arguments(d)) {
            return false;
        }
    } else if (peek(d) == 'S') {
        if (!skip_substitution(d)) {
            return false;
        }
    }
    while (d->at < d->end && *d->at != 'E') {
        d->at++;
    }
    return accept(d, "E");
}

// From behind an opening letter to behind its E.
static bool skip_arguments(struct reader *d)
{
    const char *text;
    size_t n;
    bool ok = ++d->depth < DEEPEST;
    while (ok && !accept(d, "E")) {
        char c = peek(d);
        if (c == '\0') {
            ok = false;
        } else if (digit(c)) {
            ok = source_name(d, &text, &n);
        } else if (c == 'S') {
            ok = skip_substitution(d);
        } else if (c == 'L') {
            d->at++;
            ok = skip_literal(d);
        } else if (accept(d, "Dp") || accept(d, "Do") || accept(d, "cl")) {
            ok = true; // of two letters, the second of which opens nothing
        } else {
            d->at++;
            ok = strchr("INXJF", c) == NULL || skip_arguments(d);
        }
    }
    d->depth--;
    return ok;
}

static bool unnamed_part(struct reader *d)
{
    if (accept(d, "Ul")) { // a closure: its parameters, E, its number
        put_part(d, "{lambda}", 8);
        if (!skip_arguments(d)) {
            return false;
        }
    } else if (accept(d, "Ut")) {
        put_part(d, "{unnamed}", 9);
    } else {
        return false;
    }
    while (digit(peek(d))) {
        d->at++;
    }
    return accept(d, "_");
}

// One part of a name; false where it is not understood, and at its end.
static bool part(struct reader *d)
{
    const char *text;
    size_t n;
    char c = peek(d);
    if (accept(d, "St")) {
        put_part(d, "std", 3);
        return true;
    }
    if (c == 'I') {
        d->at++;
        return skip_arguments(d);
    }
    if (c == 'L') { // of internal linkage
        d->at++;
        return true;
    }
    if (c == 'B') { // a tag of the ABI
        d->at++;
        return source_name(d, &text, &n);
    }
    if (accept(d, "cl")) {
        put_part(d, "operator()", 10);
        return true;
    }
    if (c == 'S') {
        return skip_substitution(d);
    }
    if (c == 'U') {
        return unnamed_part(d);
    }
    if (!source_name(d, &text, &n)) {
        return false;
    }
    if (n < 10 || memcmp(text, "_GLOBAL__N", 10) != 0) { // the namespace without a name
        put_part(d, text, n);
    }
    return true;
}

static void mangled(struct reader *d)
{
    while (accept(d, "Z")) { // within a function: that first
    }
    if (!accept(d, "N")) {
        accept(d, "L");
        if (accept(d, "St")) {
            put_part(d, "std", 3);
        }
        part(d);
        return;
    }
    while (strchr("rVKRO", peek(d)) != NULL && peek(d) != '\0') {
        d->at++;
    }
    while (peek(d) != 'E' && part(d)) {
    }
}

// A name in clear, which some tools give: up to what stands in brackets, behind the
// type that it returns.
static void clear(struct reader *d)
{
    accept(d, "void ");
    const char *from = d->at;
    while (d->at < d->end && *d->at != '<' && *d->at != '(') {
        d->at++;
    }
    put(d, from, (size_t)(d->at - from));
}

size_t cupti_demangle(const char *name, size_t length, char *out, size_t size)
{
    struct reader d = {.at = name, .end = name + length, .out = out, .size = size};
    if (accept(&d, "_Z")) {
        mangled(&d);
    } else {
        clear(&d);
    }
    if (d.length == 0) {
        d.at = name;
        put(&d, name, length);
    }
    out[d.length] = '\0';
    return d.length;
}
