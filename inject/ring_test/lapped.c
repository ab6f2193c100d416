// SPDX-License-Identifier: Apache-2.0

// lapped SECONDS: 8 writers on 2 cores, stopped at random in mid-record, on lanes
// of 64 records, against a reader that is lapped over and over: so long on lanes of
// their own, and again so long on the shared lane. Prints one line each, and fails
// where a torn record was accepted, a number went backwards, or records are not
// all accounted for.
#include "reader.h"
#include "writers.h"

#include <string.h>
#include <unistd.h>

#define WRITERS 8u
#define CAPACITY 64u
#define CLAIM_PATIENCE_NS 2000000u // how long the reader waits for a claimed record

struct tally {
    uint64_t read, lost, torn, backwards, snapshots;
    uint64_t cursor[WRITERS + 1];
    uint64_t waiting_since[WRITERS + 1];
    uint64_t last[WRITERS + 1][WRITERS]; // number + 1 of each writer in each lane
};

static void take_record(struct tally *t, uint64_t lane, const uint64_t word[LOCKSTEP_WORDS])
{
    t->read++;
    if (!pattern_holds(word) || word[2] >= WRITERS) {
        t->torn++;
        return;
    }
    uint64_t *last = &t->last[lane][word[2]];
    t->backwards += word[3] + 1 <= *last;
    *last = word[3] + 1;
}

static bool patient(struct tally *t, uint64_t lane, bool final)
{
    uint64_t now = lockstep_now();
    if (t->waiting_since[lane] == 0) {
        t->waiting_since[lane] = now;
    }
    return !final && now - t->waiting_since[lane] < CLAIM_PATIENCE_NS;
}

static void drain_lane(struct lockstep_ring *r, struct tally *t, uint64_t lane, bool final)
{
    uint64_t word[LOCKSTEP_WORDS];
    uint64_t head = atomic_load_explicit(&r->lanes[lane].head, memory_order_acquire);
    uint64_t *cursor = &t->cursor[lane];
    if (head - *cursor > r->capacity) {
        t->lost += head - r->capacity - *cursor;
        *cursor = head - r->capacity;
    }
    for (; *cursor < head; ++*cursor, t->waiting_since[lane] = 0) {
        enum read_result got = read_record(r, lane, *cursor, word);
        if (got == READ_NOT_YET && patient(t, lane, final)) {
            return;
        }
        if (got == READ_OK) {
            take_record(t, lane, word);
        } else {
            t->lost++;
        }
    }
}

// Reads what is there, newest first, as a reader after the fact does.
static void snapshot(const struct lockstep_ring *r, struct tally *t, uint64_t lane)
{
    uint64_t word[LOCKSTEP_WORDS];
    uint64_t head = atomic_load_explicit(&r->lanes[lane].head, memory_order_acquire);
    for (uint64_t i = 0; i < r->capacity && i < head; i++) {
        if (read_record(r, lane, head - 1 - i, word) == READ_OK) {
            t->snapshots++;
            t->torn += !pattern_holds(word);
        }
    }
}

struct reading {
    struct lockstep_ring *ring;
    struct tally tally;
    _Atomic bool stop;
};

static void *reader_main(void *arg)
{
    struct reading *g = arg;
    uint64_t seed = 7;
    while (!atomic_load(&g->stop)) {
        for (uint64_t lane = 0; lane < g->ring->nlanes; lane++) {
            drain_lane(g->ring, &g->tally, lane, false);
        }
        uint64_t x = random_next(&seed);
        if (x % 8 < 6) {
            snapshot(g->ring, &g->tally, x / 8 % g->ring->nlanes);
        } else if (x % 8 == 6) {
            struct timespec t = {0, (long)(x / 8 % 1000000)};
            nanosleep(&t, NULL);
        }
    }
    for (uint64_t lane = 0; lane < g->ring->nlanes; lane++) {
        drain_lane(g->ring, &g->tally, lane, true);
    }
    return NULL;
}

static uint64_t sum_of_heads(const struct lockstep_ring *r)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < r->nlanes; i++) {
        sum += atomic_load(&r->lanes[i].head);
    }
    return sum;
}

static bool judge(const char *what, const struct lockstep_ring *r, const struct tally *t, uint64_t emitted)
{
    uint64_t produced = sum_of_heads(r);
    uint64_t busy = atomic_load(&r->header->drops[LOCKSTEP_D_SHARED_BUSY]);
    uint64_t shared = atomic_load(&r->header->drops[LOCKSTEP_D_SHARED_LANE]);
    bool all = produced == t->read + t->lost && (r->nlanes == 1 ? emitted == shared + busy : emitted == produced);
    printf("%-12s emitted %llu, produced %llu = read %llu + lost %llu, dropped as busy %llu, read again %llu: "
           "torn %llu, backwards %llu%s\n",
           what, (unsigned long long)emitted, (unsigned long long)produced, (unsigned long long)t->read,
           (unsigned long long)t->lost, (unsigned long long)busy, (unsigned long long)t->snapshots,
           (unsigned long long)t->torn, (unsigned long long)t->backwards, all ? "" : ", not all accounted for");
    return all && t->torn == 0 && t->backwards == 0 && t->read > 0;
}

static bool lap(const char *directory, const char *what, bool shared, double seconds)
{
    struct lockstep_options opt = {
        .directory = directory, .lanes = shared ? 1 : WRITERS + 1, .capacity = CAPACITY, .slots = 1};
    struct reading g = {.ring = NULL};
    char err[1024];
    if (lockstep_ring_create(&opt, &g.ring, err, sizeof err) != 0) {
        fprintf(stderr, "lapped: %s\n", err);
        return false;
    }
    static struct writers w;
    memset(&w, 0, sizeof w);
    w.ring = g.ring;
    w.count = WRITERS;
    pthread_t reader;
    if (pthread_create(&reader, NULL, reader_main, &g) != 0) {
        return false;
    }
    writers_start(&w);
    writers_disturb(&w, lockstep_now() + (uint64_t)(seconds * 1e9));
    atomic_store(&w.stop, true);
    uint64_t emitted = writers_join(&w);
    atomic_store(&g.stop, true);
    pthread_join(reader, NULL);
    bool ok = judge(what, g.ring, &g.tally, emitted);
    lockstep_ring_close(g.ring);
    return ok;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1.5;
    char directory[] = "/tmp/ring-lapped-XXXXXX";
    if (mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    two_cores();
    bool own = lap(directory, "own lanes", false, seconds);
    bool shared = lap(directory, "shared lane", true, seconds);
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command) == 0 && own && shared ? 0 : 1;
}
