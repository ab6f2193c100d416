// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

struct options opt = {
    .ranks = 1,
    .channels = 2,
    .steps = 200,
    .pace = true,
    .markers = true,
    .callback_times = true,
    .chunk = 16 << 10,
    .link_rate = 5 << 20,
    .poll_ns = 200000,
};

enum { O_RANK = 1, O_RANKS, O_CHANNELS, O_STEPS, O_FAULT, O_FROM, O_EVERY, O_NO_PACE, O_NO_MARKERS, O_NO_CALLBACKS, O_PROGRESS, O_CHUNK, O_LINK, O_POLL, O_ABI, O_MEET, O_CLEANUP, O_TIMES, O_PATIENT, O_PAUSE, O_HELP };

static const struct option longs[] = {
    {"rank", 1, 0, O_RANK},          {"ranks", 1, 0, O_RANKS},           {"channels", 1, 0, O_CHANNELS},
    {"steps", 1, 0, O_STEPS},        {"fault", 1, 0, O_FAULT},           {"fault-from", 1, 0, O_FROM},
    {"no-pace", 0, 0, O_NO_PACE},    {"no-markers", 0, 0, O_NO_MARKERS}, {"no-callback-times", 0, 0, O_NO_CALLBACKS},
    {"progress", 0, 0, O_PROGRESS},  {"chunk", 1, 0, O_CHUNK},           {"link-rate", 1, 0, O_LINK},
    {"poll-us", 1, 0, O_POLL},       {"abi", 1, 0, O_ABI},               {"meet", 1, 0, O_MEET},
    {"cleanup", 1, 0, O_CLEANUP},    {"times", 1, 0, O_TIMES},           {"help", 0, 0, O_HELP},
    {"checkpoint-every", 1, 0, O_EVERY}, {"patient", 0, 0, O_PATIENT},    {"pause", 1, 0, O_PAUSE},
    {0},
};

#define FAULTS "none, compute, host, link, compile, dataloader, gc, checkpoint, hang, exit or mismatch"

static const char usage[] =
    "usage: lockstep-demo-worker --meet DIR [--rank R --ranks N] [options]\n"
    "One rank of a small data-parallel training job; `lockstep demo` starts them.\n"
    "  --meet DIR           where the ranks find each other; empty at the start\n"
    "  --steps N            200; 0: until SIGINT or SIGTERM\n"
    "  --fault F            " FAULTS "\n"
    "  --fault-from STEP    first step with the fault (0)\n"
    "  --checkpoint-every N write weights to DIR every N steps (0: never; with\n"
    "                       fault `checkpoint` 1)\n"
    "  --pause RANK:SCOPE:FIRST:EVERY:MS\n"
    "                       the rank spends MS in the scope before step FIRST, and\n"
    "                       every EVERY steps (0: once); up to 8\n"
    "  --patient            wait for a rank that is gone, until SIGINT or SIGTERM\n"
    "  --no-pace            no padding to nominal device time\n"
    "  --no-markers         do not tell the profiler of steps and scopes\n"
    "  --channels N         2 (1 to 4)\n"
    "  --chunk BYTES        16384, of one step of the proxy\n"
    "  --link-rate BYTES    5242880 per second, of the link of fault `link`\n"
    "  --poll-us N          200, pause of the profiler thread between looks\n"
    "  --abi N              version of the profiler table, 4 to 7 (newest)\n"
    "  --no-callback-times  do not measure the time spent in the profiler\n"
    "  --progress           a line on stdout now and then\n"
    "  --times FILE         start, duration, time in callbacks (ns) of every step\n"
    "  --cleanup DIR        remove DIR where the parent died first\n"
    "Environment: NCCL_PROFILER_PLUGIN, path of the plugin; unset: none.\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 the ranks' weights differ.\n";

static bool number(const char *name, const char *text, long min, long max, long *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < min || v > max) {
        fprintf(stderr, "parse --%s: got %s; want %ld to %ld\n", name, text, min, max);
        return false;
    }
    *out = v;
    return true;
}

static bool fault_of(const char *text)
{
    static const char *const names[] = {"none", "compute", "host", "link", "compile", "dataloader", "gc", "checkpoint", "hang", "exit", "mismatch"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            opt.fault = (enum fault)i;
            return true;
        }
    }
    fprintf(stderr, "parse --fault: got %s; want " FAULTS "\n", text);
    return false;
}

static bool take_number(int o, const char *name, const char *text)
{
    static const struct { long min, max; } range[] = {
        [O_RANK] = {0, MAX_RANKS - 1}, [O_RANKS] = {1, MAX_RANKS},   [O_CHANNELS] = {1, MAX_CHANNELS},
        [O_STEPS] = {0, INT_MAX},      [O_FROM] = {0, INT_MAX},      [O_EVERY] = {0, INT_MAX},
        [O_CHUNK] = {64, 1 << 20},
        [O_LINK] = {1 << 10, INT_MAX}, [O_POLL] = {1, 1000000},      [O_ABI] = {4, 7},
    };
    long v;
    if (!number(name, text, range[o].min, range[o].max, &v)) {
        return false;
    }
    switch (o) {
    case O_RANK: opt.rank = (int)v; break;
    case O_RANKS: opt.ranks = (int)v; break;
    case O_CHANNELS: opt.channels = (int)v; break;
    case O_STEPS: opt.steps = v; break;
    case O_FROM: opt.fault_from = v; break;
    case O_EVERY: opt.checkpoint_every = v; break;
    case O_CHUNK: opt.chunk = (uint32_t)v & ~3u; break;
    case O_LINK: opt.link_rate = (uint64_t)v; break;
    case O_POLL: opt.poll_ns = (uint64_t)v * 1000; break;
    default: opt.abi = (int)v; break;
    }
    return true;
}

// All ranks are told of all pauses.
static bool take_pause(const char *text)
{
    struct pause p = {0};
    int end = 0;
    if (sscanf(text, "%d:%31[a-z_]:%ld:%ld:%ld%n", &p.rank, p.scope, &p.first, &p.every, &p.ms, &end) != 5 || text[end] != '\0' ||
        p.first < 0 || p.every < 0 || p.ms < 0 || opt.pause_count == MAX_PAUSES) {
        fprintf(stderr, "parse --pause: got %s; want RANK:SCOPE:FIRST:EVERY:MS, at most %d\n", text, MAX_PAUSES);
        return false;
    }
    opt.pauses[opt.pause_count++] = p;
    return true;
}

// Returns 0 to go on, -1 for --help, 2 for wrong usage.
static int take(int o, const char *name)
{
    switch (o) {
    case O_FAULT: return fault_of(optarg) ? 0 : 2;
    case O_NO_PACE: opt.pace = false; return 0;
    case O_NO_MARKERS: opt.markers = false; return 0;
    case O_NO_CALLBACKS: opt.callback_times = false; return 0;
    case O_PATIENT: opt.patient = true; return 0;
    case O_PAUSE: return take_pause(optarg) ? 0 : 2;
    case O_PROGRESS: opt.progress = true; return 0;
    case O_MEET: opt.meet = optarg; return 0;
    case O_CLEANUP: opt.cleanup = optarg; return 0;
    case O_TIMES: opt.times = optarg; return 0;
    case O_HELP: fputs(usage, stdout); return -1;
    case '?': fputs(usage, stderr); return 2;
    default: return take_number(o, name, optarg) ? 0 : 2;
    }
}

int options_parse(int argc, char **argv)
{
    int o, at = 0;
    while ((o = getopt_long(argc, argv, "", longs, &at)) != -1) {
        int status = take(o, longs[at].name);
        if (status != 0) {
            return status;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "parse arguments: got %s; want options only\n", argv[optind]);
        return 2;
    }
    if (opt.rank >= opt.ranks) {
        fprintf(stderr, "parse --rank: got %d; want less than --ranks %d\n", opt.rank, opt.ranks);
        return 2;
    }
    if (opt.fault == FAULT_CHECKPOINT && opt.checkpoint_every == 0) {
        opt.checkpoint_every = 1;
    }
    if ((opt.ranks > 1 || opt.checkpoint_every > 0) && opt.meet == NULL) {
        fprintf(stderr, "parse --meet: got none; want a directory for %s\n", opt.ranks > 1 ? "the ranks" : "checkpoints");
        return 2;
    }
    return 0;
}
