// SPDX-License-Identifier: Apache-2.0

// A small harness: every case runs in a process of its own, with a folder of its
// own. `PROGRAM` runs all cases, `PROGRAM --list` names them, `PROGRAM NAME` runs
// one. A case that cannot run here calls SKIP.
#ifndef LOCKSTEP_TEST_H
#define LOCKSTEP_TEST_H

#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIPPED 77

struct test_case {
    const char *name;
    void (*run)(void);
};

#define CHECK(cond)                                                                \
    do {                                                                           \
        if (!(cond)) {                                                             \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond);     \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

#define CHECK_EQ(got, want)                                                                                      \
    do {                                                                                                         \
        uint64_t got_ = (uint64_t)(got), want_ = (uint64_t)(want);                                               \
        if (got_ != want_) {                                                                                     \
            fprintf(stderr, "%s:%d: %s: got %llu (%#llx); want %llu (%#llx)\n", __FILE__, __LINE__, #got,        \
                    (unsigned long long)got_, (unsigned long long)got_, (unsigned long long)want_,               \
                    (unsigned long long)want_);                                                                  \
            exit(1);                                                                                             \
        }                                                                                                        \
    } while (0)

#define CHECK_HAS(text, part)                                                                            \
    do {                                                                                                 \
        if (strstr((text), (part)) == NULL) {                                                            \
            fprintf(stderr, "%s:%d: got \"%s\"; want a text with \"%s\"\n", __FILE__, __LINE__, (text),  \
                    (part));                                                                             \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

#define SKIP(why)                               \
    do {                                        \
        printf("skipped: %s\n", why);           \
        exit(EXIT_SKIPPED);                     \
    } while (0)

static char test_dir[256];

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    return remove(path);
}

static inline void remove_tree(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

static inline void make_test_dir(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(test_dir, sizeof test_dir, "%.200s/ring-test-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(test_dir) == NULL) {
        perror("mkdtemp");
        exit(1);
    }
}

static inline const char *in_dir(const char *name)
{
    static char path[4][600];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", test_dir, name);
    return p;
}

static inline struct lockstep_ring *new_ring(uint32_t lanes, uint32_t capacity, uint32_t slots)
{
    struct lockstep_options opt = {.directory = test_dir, .lanes = lanes, .capacity = capacity, .slots = slots};
    struct lockstep_ring *r;
    char err[1024];
    if (lockstep_ring_create(&opt, &r, err, sizeof err) != 0) {
        fprintf(stderr, "create ring: %s\n", err);
        exit(1);
    }
    return r;
}

static inline uint64_t drops_of(const struct lockstep_ring *r, enum lockstep_drop why)
{
    return atomic_load(&r->header->drops[why]);
}

static inline lockstep_word *slot_at(struct lockstep_ring *r, uint64_t lane, uint64_t number)
{
    return r->records + (lane * r->capacity + (number & (r->capacity - 1))) * LOCKSTEP_WORDS;
}

// Runs fn in a forked child; its exit status, or 128 + the signal that ended it.
static inline int in_child(int (*fn)(void *), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(fn(arg));
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        exit(1);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run_one(const struct test_case *c)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        c->run();
        exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run_in_dir(const struct test_case *c)
{
    make_test_dir();
    int rc = run_one(c);
    remove_tree(test_dir);
    if (rc != 0) {
        printf("%s %s: %d\n", rc == EXIT_SKIPPED ? "SKIP" : "FAIL", c->name, rc);
    }
    return rc;
}

static inline int run_cases(const struct test_case *cases, size_t n, int argc, char **argv)
{
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) {
            puts(cases[i].name);
        } else if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            return run_in_dir(&cases[i]);
        } else if (argc == 1) {
            int rc = run_in_dir(&cases[i]);
            failed += rc != 0 && rc != EXIT_SKIPPED;
        }
    }
    return failed != 0;
}

#define TEST_MAIN(cases) \
    int main(int argc, char **argv) { return run_cases(cases, sizeof cases / sizeof cases[0], argc, argv); }

#endif
