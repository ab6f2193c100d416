// SPDX-License-Identifier: Apache-2.0

// Loads the plugin as NCCL does and replays every event of every version of the
// interface, from the kinds of threads NCCL has, with each trap of their lifetime
// as a case by name. Every case runs in a process of its own.
//
//   conformance PLUGIN DIRECTORY [CASE]
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const defaults[] = {"LOCKSTEP_RING_LANES=16", "LOCKSTEP_RING_RECORDS=2048"};

// Cases mostly wait, so that some run at once; each has a directory and a log of
// its own.
#define JOBS 6

struct job {
    pid_t pid; // 0: none
    const struct test *test;
    unsigned v;
    int log;
    char dir[512];
};
static struct job jobs[JOBS];
static int failed;

static void clean(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        if (strstr(e->d_name, ".ring") != NULL) {
            unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    closedir(d);
    rmdir(dir);
}

// What a case wants of the libraries that lie beside this program.
static void beside(const char *wanted, const char *name, bool load)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (getenv(wanted) == NULL || n < 0) {
        return;
    }
    path[n] = '\0';
    strcpy(strrchr(path, '/') + 1, name);
    if (load && dlopen(path, RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("    %s\n", dlerror());
        exit(1);
    }
    setenv("LOCKSTEP_CHAIN", load ? "" : path, 1);
}

static void child(const struct test *t, unsigned v)
{
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        putenv((char *)defaults[i]);
    }
    setenv("LOCKSTEP_DIR", driver_dir, 1);
    for (size_t i = 0; i < 4 && t->env[i] != NULL; i++) {
        putenv((char *)t->env[i]);
    }
    beside("DRIVER_CUDA", "libcuda.so.1", true);
    beside("LOCKSTEP_CHAIN_TEST", "other.so", false);
    beside("LOCKSTEP_CHAIN_OLD", "other_old.so", false);
    beside("LOCKSTEP_CHAIN_NO_PLUGIN", "libcuda.so.1", false);
    if (getenv("LOCKSTEP_CHAIN_SELF") != NULL) {
        setenv("LOCKSTEP_CHAIN", driver_plugin, 1);
    }
    nccl_load(v);
    t->run();
    fflush(stdout);
    exit(driver_failed); // with destructors, as a program that ends
}

static void report(struct job *j, int status)
{
    char text[4096];
    ssize_t n;
    lseek(j->log, 0, SEEK_SET);
    while ((n = read(j->log, text, sizeof text)) > 0) {
        fwrite(text, 1, (size_t)n, stdout);
    }
    close(j->log);
    clean(j->dir);
    printf("%s v%u %s", status == 0 ? "ok  " : "FAIL", j->v, j->test->name);
    if (WIFSIGNALED(status)) {
        printf(" (signal %d)", WTERMSIG(status));
    }
    printf("\n");
    failed += status != 0;
    j->pid = 0;
}

// Waits for one to end, if any runs.
static bool reap(void)
{
    int status = 0;
    pid_t pid = wait(&status);
    for (int i = 0; pid > 0 && i < JOBS; i++) {
        if (jobs[i].pid == pid) {
            report(&jobs[i], status);
        }
    }
    return pid > 0;
}

static struct job *free_job(void)
{
    for (;;) {
        for (int i = 0; i < JOBS; i++) {
            if (jobs[i].pid == 0) {
                return &jobs[i];
            }
        }
        reap();
    }
}

static void run(const struct test *t, unsigned v)
{
    struct job *j = free_job();
    j->test = t;
    j->v = v;
    j->log = memfd_create("log", MFD_CLOEXEC);
    snprintf(j->dir, sizeof j->dir, "%s/%d", driver_dir, (int)(j - jobs));
    fflush(stdout);
    if (mkdir(j->dir, 0700) != 0) {
        perror(j->dir);
        exit(1);
    }
    j->pid = fork();
    if (j->pid == 0) {
        dup2(j->log, STDOUT_FILENO);
        dup2(j->log, STDERR_FILENO);
        driver_dir = j->dir;
        child(t, v);
    }
}

static void run_all(const struct test *tests, const char *only)
{
    for (const struct test *t = tests; t->name != NULL; t++) {
        for (unsigned v = t->from; v <= t->to && (only == NULL || strcmp(only, t->name) == 0); v++) {
            run(t, v);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: conformance PLUGIN DIRECTORY [CASE]\n");
        return 2;
    }
    driver_plugin = argv[1];
    driver_dir = argv[2];
    const char *only = argc > 3 ? argv[3] : NULL;
    run_all(life_tests, only);
    run_all(trap_tests, only);
    run_all(level_tests, only);
    while (reap()) {
    }
    printf("%d failed\n", failed);
    return failed != 0;
}
