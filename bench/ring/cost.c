// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// cost measures what one event costs its producer: the clock is read, an operation's
// record of 128 bytes is filled and handed over, by the ring and by what else there
// is. Every event is timed by itself with the processor's time-stamp counter, whose
// own cost is part of every number; nothing is subtracted.
#include "ring.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define RING_EVENTS 10000000u
#define OTHER_EVENTS 1000000u // sockets and files: enough for their 99th percentile
#define BUCKETS 100000u       // of one time-stamp count each; the last holds the rest
#define BATCH 1000u           // events whose mean is taken, below the counter's steps
#define FILE_RECORDS 16384u   // a file is overwritten as a lane is

struct path {
    const char *name;
    uint64_t events;
    void (*hand_over)(const uint64_t word[LOCKSTEP_WORDS]);
};

struct cost {
    double mean, batch, p50, p99, p999; // batch: the median of the means of batches
};

static struct lockstep_ring *ring;
static int out_fd;
static uint64_t file_turn;
static double ns_per_count;

static void give_ring(const uint64_t word[LOCKSTEP_WORDS]) { lockstep_emit(ring, word); }

static void give_write(const uint64_t word[LOCKSTEP_WORDS])
{
    if (write(out_fd, word, LOCKSTEP_RECORD_SIZE) != (ssize_t)LOCKSTEP_RECORD_SIZE) {
        perror("write");
        exit(1);
    }
}

static void give_file(const uint64_t word[LOCKSTEP_WORDS])
{
    if (file_turn++ % FILE_RECORDS == 0) {
        lseek(out_fd, 0, SEEK_SET);
    }
    give_write(word);
}

static void give_nothing(const uint64_t word[LOCKSTEP_WORDS]) { __asm__ volatile("" ::"r"(word) : "memory"); }

// The life of an operation as the plugin keeps it: a slot while it is open, its
// frontier, two readings of the clock, and the record.
static void give_operation(const uint64_t word[LOCKSTEP_WORDS])
{
    struct lockstep_slot *s;
    uint64_t handle = lockstep_slot_claim(ring, &s);
    struct lockstep_frontier *f = lockstep_frontier_of(ring, 1, 1);
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        atomic_store_explicit(&s->word[i], word[i], memory_order_relaxed);
    }
    lockstep_frontier_raise(&f->enqueued, &f->enqueued_at, word[3], word[6]);
    lockstep_slot_state(s, handle, LOCKSTEP_SLOT_ENQUEUED);
    uint64_t now = lockstep_now();
    uint64_t copy[LOCKSTEP_WORDS];
    for (unsigned i = 1; i < LOCKSTEP_WORDS; i++) {
        copy[i] = atomic_load_explicit(&s->word[i], memory_order_relaxed);
    }
    copy[11] = now;
    lockstep_slot_ending(s, handle);
    lockstep_emit(ring, copy);
    lockstep_frontier_raise(&f->completed, &f->completed_at, word[3], now);
    lockstep_slot_free(ring, s, handle);
}

static inline void one_event(const struct path *p, uint64_t number)
{
    uint64_t word[LOCKSTEP_WORDS];
    word[0] = 0;
    word[1] = lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, LOCKSTEP_F_KERNEL, 1, 1, 26);
    word[2] = number << 16 | 1;
    word[3] = number;
    word[4] = 4096;
    word[5] = lockstep_pair(0, 4);
    word[6] = lockstep_now();
    word[7] = lockstep_pair(1000, (uint32_t)number);
    for (unsigned i = 8; i < LOCKSTEP_WORDS; i++) {
        word[i] = number + i;
    }
    p->hand_over(word);
}

static double percentile(const uint32_t *bucket, uint64_t events, double share)
{
    uint64_t seen = 0, want = (uint64_t)((double)events * share);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += bucket[i];
        if (seen > want) {
            return i * ns_per_count;
        }
    }
    return BUCKETS * ns_per_count;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_batch(uint64_t *sum, uint64_t n)
{
    qsort(sum, n, sizeof *sum, by_size);
    return (double)sum[n / 2] * ns_per_count / BATCH;
}

static struct cost measure(const struct path *p)
{
    static uint32_t bucket[BUCKETS];
    static uint64_t batch[RING_EVENTS / BATCH];
    memset(bucket, 0, sizeof bucket);
    memset(batch, 0, sizeof batch);
    unsigned aux;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p->events; i++) {
        uint64_t begin = __rdtscp(&aux);
        one_event(p, i);
        uint64_t took = __rdtscp(&aux) - begin;
        sum += took;
        batch[i / BATCH] += took;
        bucket[took < BUCKETS ? took : BUCKETS - 1]++;
    }
    return (struct cost){
        .mean = (double)sum * ns_per_count / (double)p->events,
        .batch = median_batch(batch, p->events / BATCH),
        .p50 = percentile(bucket, p->events, 0.5),
        .p99 = percentile(bucket, p->events, 0.99),
        .p999 = percentile(bucket, p->events, 0.999),
    };
}

static void calibrate(void)
{
    uint64_t t = lockstep_now(), c = __rdtsc();
    struct timespec wait = {0, 200000000};
    nanosleep(&wait, NULL);
    ns_per_count = (double)(lockstep_now() - t) / (double)(__rdtsc() - c);
}

// The smallest difference that the counter shows: some count in steps of many ns.
static double counter_step(void)
{
    uint64_t least = UINT64_MAX;
    unsigned aux;
    for (int i = 0; i < 100000; i++) {
        uint64_t a = __rdtscp(&aux), d = __rdtscp(&aux) - a;
        least = d > 0 && d < least ? d : least;
    }
    return (double)least * ns_per_count;
}

static void pin(int nth)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &allowed) && nth-- == 0) {
            CPU_SET(i, &one);
        }
    }
    sched_setaffinity(0, sizeof one, &one);
}

// A process on another core that takes what comes, in pieces as large as a reader
// would take.
static pid_t start_taker(int type)
{
    int pair[2];
    if (socketpair(AF_UNIX, type, 0, pair) != 0) {
        perror("socketpair");
        exit(1);
    }
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        CPU_SET(i, &all);
    }
    pid_t pid = fork();
    if (pid == 0) {
        static char buf[65536];
        close(pair[0]);
        sched_setaffinity(0, sizeof all, &all);
        pin(1);
        while (read(pair[1], buf, sizeof buf) > 0) {
        }
        _exit(0);
    }
    close(pair[1]);
    out_fd = pair[0];
    return pid;
}

static void print(const char *name, uint64_t events, struct cost c, double ring_p50, double ring_p99)
{
    printf("%-34s %9llu %8.0f %8.1f %8.0f %8.0f %8.0f", name, (unsigned long long)events, c.mean, c.batch, c.p50, c.p99, c.p999);
    if (ring_p50 > 0) {
        printf(" %7.1f x %7.1f x", c.p50 / ring_p50, c.p99 / ring_p99);
    }
    putchar('\n');
}

static struct cost through_socket(int type, const struct path *p)
{
    pid_t taker = start_taker(type);
    struct cost c = measure(p);
    shutdown(out_fd, SHUT_WR);
    close(out_fd);
    if (type == SOCK_DGRAM) {
        kill(taker, SIGKILL);
    }
    waitpid(taker, NULL, 0);
    return c;
}

static struct cost through_file(const char *directory, const struct path *p)
{
    char path[600];
    snprintf(path, sizeof path, "%.500s/events", directory);
    out_fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (out_fd < 0) {
        perror(path);
        exit(1);
    }
    struct cost c = measure(p);
    close(out_fd);
    unlink(path);
    return c;
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : "/tmp";
    struct lockstep_options opt = {.directory = directory, .level = LOCKSTEP_LEVEL_SUMMARY};
    char err[1024];
    pin(0);
    calibrate();
    uint64_t begin = lockstep_now();
    if (lockstep_ring_create(&opt, &ring, err, sizeof err) != 0) {
        fprintf(stderr, "cost: %s\n", err);
        return 1;
    }
    printf("the ring of %.0f MiB, made once per process, took %.0f ms\n",
           (double)ring->header->file_size / (1 << 20), (double)(lockstep_now() - begin) / 1e6);
    static const struct path nothing = {"clock and record alone", RING_EVENTS, give_nothing};
    static const struct path to_ring = {"ring", RING_EVENTS, give_ring};
    static const struct path operation = {"ring, with slot and frontiers", RING_EVENTS, give_operation};
    static const struct path datagram = {"unix datagram socket", OTHER_EVENTS, give_write};
    static const struct path stream = {"unix stream socket", OTHER_EVENTS, give_write};
    static const struct path file = {"file, write(2)", OTHER_EVENTS, give_file};
    printf("%-34s %9s %8s %8s %8s %8s %8s %9s %9s\n", "one event of 128 bytes, ns", "events", "mean", "batch", "p50", "p99", "p99.9",
           "p50", "p99");
    print(nothing.name, nothing.events, measure(&nothing), 0, 0);
    struct cost c = measure(&to_ring);
    print(to_ring.name, to_ring.events, c, c.p50, c.p99);
    print(operation.name, operation.events, measure(&operation), c.p50, c.p99);
    print(datagram.name, datagram.events, through_socket(SOCK_DGRAM, &datagram), c.p50, c.p99);
    print(stream.name, stream.events, through_socket(SOCK_STREAM, &stream), c.p50, c.p99);
    print(file.name, file.events, through_file(directory, &file), c.p50, c.p99);
    lockstep_ring_close(ring);
    printf("batch: the median of the means of %u events; ", BATCH);
    printf("the counter shows steps of %.1f ns; its reading is part of every number\n", counter_step());
    bool met = c.p50 <= 100 && c.p99 <= 300;
    printf("ring: p50 %.0f ns (want at most 100), p99 %.0f ns (want at most 300): %s\n", c.p50, c.p99,
           met ? "met" : "not met");
    return met ? 0 : 1;
}
