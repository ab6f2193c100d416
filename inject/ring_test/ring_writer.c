// SPDX-License-Identifier: Apache-2.0

// ring_writer writes records of pattern.h into a ring of its own, for tests of
// readers. It prints "ready PATH", and at its end one line of JSON: the path, the
// records emitted per thread, the heads of the lanes, and what was dropped.
#include "writers.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "ring_writer [options]\n"
    "  --dir DIR       folder of the ring (LOCKSTEP_DIR, else /run/lockstep)\n"
    "  --threads N     writing threads (8)\n"
    "  --records N     records per thread; 0: until --seconds are over (100000)\n"
    "  --seconds S     end after so long; 0: never (0)\n"
    "  --lanes N       lanes, with the shared one (32)\n"
    "  --capacity N    records per lane (16384)\n"
    "  --slots N       slots (4096)\n"
    "  --shared        everybody writes to the shared lane\n"
    "  --levels        records of levels 1, 2 and 3 in turn; else 1\n"
    "  --operations    claim a slot before each record, free it after\n"
    "  --stop-random   stop writers at random, also in mid-record\n"
    "  --open N        leave N operations open, on communicator \"test\", before \"ready\"\n"
    "  --hold          when all is written print \"written\", and end when stdin does\n";

struct arguments {
    struct lockstep_options ring;
    struct writers writers;
    double seconds;
    unsigned open;
    bool disturb, hold;
};

static struct arguments args = {.writers = {.count = 8, .records = 100000}};

enum { DIR_ = 1, THREADS, RECORDS, SECONDS, LANES, CAPACITY, SLOTS, SHARED, LEVELS, OPERATIONS, STOP, OPEN, HOLD };

static const struct option options[] = {
    {"dir", 1, NULL, DIR_},         {"threads", 1, NULL, THREADS},       {"records", 1, NULL, RECORDS},
    {"seconds", 1, NULL, SECONDS},  {"lanes", 1, NULL, LANES},           {"capacity", 1, NULL, CAPACITY},
    {"slots", 1, NULL, SLOTS},      {"shared", 0, NULL, SHARED},         {"levels", 0, NULL, LEVELS},
    {"stop-random", 0, NULL, STOP}, {"operations", 0, NULL, OPERATIONS}, {"open", 1, NULL, OPEN},
    {"hold", 0, NULL, HOLD},        {NULL, 0, NULL, 0},
};

static void take(int option)
{
    uint64_t n = optarg != NULL ? strtoull(optarg, NULL, 10) : 0;
    switch (option) {
    case DIR_: args.ring.directory = optarg; break;
    case THREADS: args.writers.count = n > MAX_WRITERS ? MAX_WRITERS : (unsigned)n; break;
    case RECORDS: args.writers.records = n; break;
    case SECONDS: args.seconds = strtod(optarg, NULL); break;
    case LANES: args.ring.lanes = (uint32_t)n; break;
    case CAPACITY: args.ring.capacity = (uint32_t)n; break;
    case SLOTS: args.ring.slots = (uint32_t)n; break;
    case SHARED: args.writers.shared = true; break;
    case LEVELS: args.writers.levels = true; break;
    case OPERATIONS: args.writers.operations = true; break;
    case STOP: args.disturb = true; break;
    case OPEN: args.open = (unsigned)n; break;
    case HOLD: args.hold = true; break;
    default: fputs(usage, stderr); exit(2);
    }
}

// The name of an open descriptor.
static const char *path_of(int fd)
{
    static char path[1024];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return path;
}

static void leave_open(struct lockstep_ring *r, unsigned n)
{
    uint16_t comm = lockstep_comm_add(r, 0x1234, 2, 0, 1, 4, 0, "test");
    uint8_t func = (uint8_t)lockstep_intern(r, "AllReduce");
    for (unsigned i = 0; i < n; i++) {
        struct lockstep_slot *s;
        uint64_t now = lockstep_now(), handle = lockstep_slot_claim(r, &s);
        struct lockstep_frontier *f = lockstep_frontier_of(r, comm, func);
        if (handle == 0 || f == NULL) {
            return;
        }
        atomic_store(&s->word[1], lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, 0, comm, func, 0));
        atomic_store(&s->word[2], handle);
        atomic_store(&s->word[3], i);
        atomic_store(&s->word[6], now);
        atomic_store(&s->word[7], lockstep_pair(0, LOCKSTEP_NO_STEP));
        atomic_store(&s->order, i + 1);
        atomic_store(&s->last, now);
        lockstep_frontier_raise(&f->enqueued, &f->enqueued_at, i, now);
        atomic_fetch_add(&f->open, 1);
        atomic_fetch_add(&f->total, 1);
        lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUED);
    }
}

static void wait_for_writers(struct writers *w)
{
    uint64_t until = args.seconds > 0 ? lockstep_now() + (uint64_t)(args.seconds * 1e9) : UINT64_MAX;
    if (args.disturb) {
        writers_disturb(w, until);
    }
    while (lockstep_now() < until && atomic_load(&w->running) > 0) {
        usleep(1000);
    }
    atomic_store(&w->stop, true);
    writers_join(w);
}

static void report(struct lockstep_ring *r, const struct writers *w)
{
    printf("{\"path\":\"%s\",\"emitted\":[", path_of(r->fd));
    for (unsigned i = 0; i < w->count; i++) {
        printf("%s%llu", i > 0 ? "," : "", (unsigned long long)w->writer[i].emitted);
    }
    printf("],\"produced\":[");
    for (uint64_t i = 0; i < r->nlanes; i++) {
        printf("%s%llu", i > 0 ? "," : "", (unsigned long long)atomic_load(&r->lanes[i].head));
    }
    printf("],\"dropped\":{\"shared_lane\":%llu,\"shared_busy\":%llu,\"slots_full\":%llu}}\n",
           (unsigned long long)atomic_load(&r->header->drops[LOCKSTEP_D_SHARED_LANE]),
           (unsigned long long)atomic_load(&r->header->drops[LOCKSTEP_D_SHARED_BUSY]),
           (unsigned long long)atomic_load(&r->header->drops[LOCKSTEP_D_SLOTS_FULL]));
    fflush(stdout);
}

static void hold(void)
{
    char c;
    puts("written");
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
}

int main(int argc, char **argv)
{
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        take(o);
    }
    struct lockstep_ring *r;
    char err[1024];
    if (args.writers.count == 0 || lockstep_ring_create(&args.ring, &r, err, sizeof err) != 0) {
        fprintf(stderr, "ring_writer: %s\n", args.writers.count == 0 ? "no threads" : err);
        return 1;
    }
    args.writers.ring = r;
    leave_open(r, args.open);
    printf("ready %s\n", path_of(r->fd));
    fflush(stdout);
    writers_start(&args.writers);
    wait_for_writers(&args.writers);
    if (args.hold) {
        hold();
    }
    report(r, &args.writers);
    lockstep_ring_close(r);
    return 0;
}
