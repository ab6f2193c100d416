// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What a ring is told by its environment, and who its process is.
#include "ring_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/run/lockstep"

// A number of the environment with its limits.
struct setting {
    const char *name;
    uint32_t fallback, min, max;
};

static const struct setting lanes_setting = {"LOCKSTEP_RING_LANES", 32, 1, 1024};
static const struct setting records_setting = {"LOCKSTEP_RING_RECORDS", 16384, 8, 1u << 22};
// A handle has 16 bits for the slot.
static const struct setting slots_setting = {"LOCKSTEP_RING_SLOTS", 4096, 1, 65535};
static const struct setting retain_setting = {"LOCKSTEP_RETAIN_SECONDS", 60, 1, 86400};

// All records of a ring together: half of the largest file that a reader takes.
#define MAX_RECORD_BYTES (512ull << 20)

int ring_fail(char *err, size_t errlen, const char *format, ...)
{
    if (err != NULL && errlen > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(err, errlen, format, args);
        va_end(args);
    }
    return -1;
}

void ring_note(struct config *c, const char *format, ...)
{
    size_t used = strlen(c->notes);
    if (used + 3 >= sizeof c->notes) {
        return;
    }
    if (used > 0) {
        memcpy(c->notes + used, "; ", 3);
        used += 2;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(c->notes + used, sizeof c->notes - used, format, args);
    va_end(args);
}

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v != NULL && v[0] != '\0' ? v : NULL;
}

bool ring_env_true(const char *name)
{
    const char *v = env(name);
    return v != NULL && strcmp(v, "0") != 0 && strcasecmp(v, "false") != 0 && strcasecmp(v, "no") != 0;
}

// Whole decimal number, else false.
static bool parse_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        return false;
    }
    *out = v;
    return true;
}

static uint32_t clamp(struct config *c, const struct setting *s, int64_t v)
{
    if (v >= s->min && v <= s->max) {
        return (uint32_t)v;
    }
    // Below 1 nobody means the least.
    uint32_t used = v < 1 ? s->fallback : v < s->min ? s->min : s->max;
    ring_note(c, "%s: got %lld; want %u to %u: %u is used", s->name, (long long)v, s->min, s->max, used);
    return used;
}

static uint32_t setting(struct config *c, const struct setting *s, uint32_t given)
{
    if (given != 0) {
        return clamp(c, s, given);
    }
    const char *text = env(s->name);
    if (text == NULL) {
        return s->fallback;
    }
    int64_t v;
    if (!parse_number(text, &v)) {
        ring_note(c, "%s: got \"%.32s\"; want a number: %u is used", s->name, text, s->fallback);
        return s->fallback;
    }
    return clamp(c, s, v);
}

static uint32_t power_of_two(struct config *c, uint32_t v)
{
    uint32_t p = 1u << (31 - __builtin_clz(v));
    if (p != v) {
        ring_note(c, "%s: got %u; want a power of two: %u is used", records_setting.name, v, p);
    }
    return p;
}

static uint32_t level_setting(struct config *c, uint32_t given)
{
    if (given >= LOCKSTEP_LEVEL_SUMMARY && given <= LOCKSTEP_LEVEL_ALL) {
        return given;
    }
    static const char *const names[] = {"summary", "collectives", "all"};
    const char *text = env("LOCKSTEP_LEVEL");
    for (uint32_t i = 0; text != NULL && i < 3; i++) {
        if (strcasecmp(text, names[i]) == 0) {
            return LOCKSTEP_LEVEL_SUMMARY + i;
        }
    }
    if (text != NULL) {
        ring_note(c, "LOCKSTEP_LEVEL: got \"%.32s\"; want summary, collectives or all: collectives is used", text);
    }
    return LOCKSTEP_LEVEL_COLLECTIVES;
}

static int directory_setting(struct config *c, const char *given, char *err, size_t errlen)
{
    const char *d = given != NULL && given[0] != '\0' ? given : env("LOCKSTEP_DIR");
    if (d == NULL) {
        d = DEFAULT_DIRECTORY;
    }
    size_t n = strlen(d);
    if (n >= sizeof c->directory) {
        return ring_fail(err, errlen, "open directory: got a path of %zu bytes; want at most %zu", n,
                         sizeof c->directory - 1);
    }
    memcpy(c->directory, d, n + 1);
    // A trailing slash would make O_NOFOLLOW follow.
    while (n > 1 && c->directory[n - 1] == '/') {
        c->directory[--n] = '\0';
    }
    return 0;
}

int ring_configure(struct config *c, const struct lockstep_options *opt, char *err, size_t errlen)
{
    static const struct lockstep_options none;
    if (opt == NULL) {
        opt = &none;
    }
    memset(c, 0, sizeof *c);
    if (directory_setting(c, opt->directory, err, errlen) != 0) {
        return -1;
    }
    c->lanes = setting(c, &lanes_setting, opt->lanes);
    c->capacity = power_of_two(c, setting(c, &records_setting, opt->capacity));
    c->slots = setting(c, &slots_setting, opt->slots);
    c->retain_seconds = setting(c, &retain_setting, opt->retain_seconds);
    c->level = level_setting(c, opt->level);
    uint32_t asked = c->capacity;
    while ((uint64_t)c->lanes * c->capacity * LOCKSTEP_RECORD_SIZE > MAX_RECORD_BYTES) {
        c->capacity /= 2;
    }
    if (c->capacity != asked) {
        ring_note(c, "%s: got %u records in each of %u lanes; want at most %llu bytes in all: %u is used",
                  records_setting.name, asked, c->lanes, MAX_RECORD_BYTES, c->capacity);
    }
    return 0;
}

static ssize_t read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ring_boot_id(uint8_t id[16])
{
    char text[64];
    memset(id, 0, 16);
    if (read_file("/proc/sys/kernel/random/boot_id", text, sizeof text) < 0) {
        return false;
    }
    unsigned n = 0;
    for (const char *p = text; *p != '\0' && n < 32; p++) {
        int d = hex_digit(*p);
        if (d >= 0) {
            id[n / 2] = (uint8_t)(id[n / 2] << 4 | d);
            n++;
        }
    }
    return n == 32;
}

// Field 22 of /proc/self/stat; the name, field 2, may hold blanks and brackets.
uint64_t ring_start_time(void)
{
    char text[1024];
    if (read_file("/proc/self/stat", text, sizeof text) < 0) {
        return 0;
    }
    char *p = strrchr(text, ')');
    for (int field = 2; p != NULL && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }
    return p != NULL ? strtoull(p + 1, NULL, 10) : 0;
}

// The first of the names that holds a number from 0 to 2^31 - 1.
static int32_t first_number(struct config *c, const char *const names[])
{
    for (; *names != NULL; names++) {
        const char *text = env(*names);
        int64_t v;
        if (text == NULL) {
            continue;
        }
        if (parse_number(text, &v) && v >= 0 && v <= INT32_MAX) {
            return (int32_t)v;
        }
        ring_note(c, "%s: got \"%.32s\"; want a number from 0 to %d: it is left out", *names, text, INT32_MAX);
    }
    return LOCKSTEP_NONE;
}

static void first_text(struct config *c, char *out, size_t size, const char *const names[])
{
    for (; *names != NULL; names++) {
        const char *text = env(*names);
        if (text != NULL) {
            int n = snprintf(out, size, "%s", text);
            if (n < 0 || (size_t)n >= size) {
                ring_note(c, "%s: got %zu bytes; want at most %zu: it is cut", *names, strlen(text), size - 1);
            }
            return;
        }
    }
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void identify_host(struct lockstep_header *h, struct config *c)
{
    gethostname(h->host_name, sizeof h->host_name - 1);
    first_text(c, h->host_id, sizeof h->host_id, NAMES("LOCKSTEP_HOST_ID"));
    if (h->host_id[0] == '\0' && read_file("/etc/machine-id", h->host_id, sizeof h->host_id) >= 0) {
        h->host_id[strcspn(h->host_id, "\n")] = '\0';
    }
}

void ring_identify(struct lockstep_header *h, struct config *c)
{
    h->pid = (uint64_t)getpid();
    h->start_time = ring_start_time();
    ring_boot_id(h->boot_id);
    h->rank = first_number(c, NAMES("LOCKSTEP_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"));
    h->local_rank = first_number(
        c, NAMES("LOCKSTEP_LOCAL_RANK", "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"));
    h->world_size = first_number(
        c, NAMES("LOCKSTEP_WORLD_SIZE", "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"));
    if (h->world_size == 0) {
        h->world_size = LOCKSTEP_NONE; // a job of no ranks is one whose launcher does not know
    }
    h->restart = first_number(c, NAMES("LOCKSTEP_RESTART", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"));
    first_text(c, h->job_id, sizeof h->job_id, NAMES("LOCKSTEP_JOB_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"));
    first_text(c, h->job_name, sizeof h->job_name, NAMES("LOCKSTEP_JOB_NAME", "SLURM_JOB_NAME"));
    first_text(c, h->run_id, sizeof h->run_id, NAMES("LOCKSTEP_RUN_ID", "TORCHELASTIC_RUN_ID"));
    snprintf(h->producer, sizeof h->producer, "%s", program_invocation_short_name);
    identify_host(h, c);
}
