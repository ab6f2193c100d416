// SPDX-License-Identifier: Apache-2.0

// doors ATTACK TRIES [PATH] does to the ring's library what a program, its user or a
// neighbour may do, prints what came of it on one line, and ends well where nothing broke.
// bench/doors runs it; see docs/security.md.
#include "test.h"

#include <dlfcn.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

extern char **environ;

static unsigned tries;
static const char *argument;

static void emit_one(struct lockstep_ring *r, uint64_t n)
{
    uint64_t word[LOCKSTEP_WORDS] = {[1] = lockstep_head(LOCKSTEP_STEP, 1, 0, 0, 0, 0), [2] = n};
    lockstep_emit(r, word);
}

// The records in own lanes plus the counted drops of the shared lane: all records that were ever emitted.
static uint64_t accounted(struct lockstep_ring *r)
{
    uint64_t n = drops_of(r, LOCKSTEP_D_SHARED_LANE) + drops_of(r, LOCKSTEP_D_SHARED_BUSY);
    for (uint64_t i = 1; i < r->nlanes; i++) {
        n += atomic_load(&r->lanes[i].head);
    }
    return n;
}

static struct {
    struct lockstep_ring *ring;
    _Atomic bool over;
    _Atomic uint64_t emitted;
    pthread_t thread[8];
    int threads;
} job;

static void *emit_until_over(void *unused)
{
    (void)unused;
    uint64_t n = 0;
    do {
        emit_one(job.ring, n++);
    } while (!atomic_load(&job.over));
    atomic_fetch_add(&job.emitted, n);
    return NULL;
}

static void start_job(int threads)
{
    job.ring = new_ring(4, 1024, 64);
    job.threads = threads;
    for (int i = 0; i < threads; i++) {
        CHECK(pthread_create(&job.thread[i], NULL, emit_until_over, NULL) == 0);
    }
}

static void end_job(void)
{
    atomic_store(&job.over, true);
    for (int i = 0; i < job.threads; i++) {
        pthread_join(job.thread[i], NULL);
    }
    CHECK_EQ(accounted(job.ring), atomic_load(&job.emitted));
}

// 0, or what the status of a child says; a child that hangs is ended by its alarm.
static int ended(pid_t pid)
{
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void attack_fork(void)
{
    start_job(8);
    for (unsigned i = 0; i < tries; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            for (uint64_t n = 0; n < 1000; n++) {
                emit_one(job.ring, n);
            }
            struct lockstep_slot *s;
            lockstep_slot_claim(job.ring, &s);
            lockstep_intern(job.ring, "child");
            lockstep_drop(job.ring, LOCKSTEP_D_CONTROL);
            _exit(0);
        }
        CHECK_EQ(ended(pid), 0);
    }
    end_job();
    CHECK_EQ(drops_of(job.ring, LOCKSTEP_D_CONTROL), 0);
    CHECK_EQ(atomic_load(&job.ring->slots[0].word[0]), 0);
    printf("%llu records of the parent, each accounted for; none of %u records of children in its ring\n",
           (unsigned long long)atomic_load(&job.emitted), 1000 * tries);
}

// Of the program that is run, whether it was handed a descriptor of a ring.
static int has_ring_descriptor(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        char link[64], path[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n > 0) {
            path[n] = '\0';
            if (strstr(path, ".ring") != NULL) {
                return 1;
            }
        }
    }
    return 0;
}

static void attack_exec(void)
{
    start_job(4);
    char *const argv[] = {"doors", "descriptors", NULL};
    for (unsigned i = 0; i < tries; i++) {
        pid_t pid = -1;
        switch (i % 3) {
        case 0:
            if ((pid = fork()) == 0) {
                execv("/proc/self/exe", argv);
                _exit(99);
            }
            break;
        case 1:
            if ((pid = vfork()) == 0) {
                execv("/proc/self/exe", argv);
                _exit(99);
            }
            break;
        default:
            CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0);
        }
        CHECK_EQ(ended(pid), 0);
    }
    end_job();
    printf("a third each fork, vfork and posix_spawn; no program got a descriptor of the ring\n");
}

#define WAVE 500

static pthread_barrier_t all_there;

// All of a wave live at once, so that there are not lanes for all.
static void *emit_a_hundred(void *unused)
{
    (void)unused;
    emit_one(job.ring, 0);
    pthread_barrier_wait(&all_there);
    for (uint64_t n = 1; n < 100; n++) {
        emit_one(job.ring, n);
    }
    return NULL;
}

static void attack_threads(void)
{
    job.ring = new_ring(32, 1024, 1);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128u * 1024u);
    pthread_barrier_init(&all_there, NULL, WAVE);
    for (unsigned done = 0; done < tries; done += WAVE) {
        static pthread_t t[WAVE];
        for (int i = 0; i < WAVE; i++) {
            CHECK(pthread_create(&t[i], &attr, emit_a_hundred, NULL) == 0);
        }
        for (int i = 0; i < WAVE; i++) {
            pthread_join(t[i], NULL);
        }
    }
    unsigned rounds = (tries + WAVE - 1) / WAVE;
    CHECK_EQ(accounted(job.ring), 100ull * rounds * WAVE);
    uint64_t claims = 0;
    for (uint64_t i = 1; i < job.ring->nlanes; i++) {
        CHECK_EQ(atomic_load(&job.ring->lanes[i].owner), 0);
        claims += atomic_load(&job.ring->lanes[i].claims);
    }
    printf("%llu records accounted for, %llu of them on the shared lane, %llu dropped there; 31 lanes were claimed %llu times and are free\n",
           (unsigned long long)accounted(job.ring), (unsigned long long)drops_of(job.ring, LOCKSTEP_D_SHARED_LANE),
           (unsigned long long)drops_of(job.ring, LOCKSTEP_D_SHARED_BUSY), (unsigned long long)claims);
}

static _Atomic uint64_t signals;
static void count_signal(int unused) { (void)unused, atomic_fetch_add(&signals, 1); }

static void storm(int which, int number)
{
    struct sigaction a = {.sa_handler = count_signal}; // system calls are interrupted
    struct itimerval each = {{0, 1000}, {0, 1000}};
    CHECK(sigaction(number, &a, NULL) == 0 && setitimer(which, &each, NULL) == 0);
}

static void attack_signals(void)
{
    storm(ITIMER_REAL, SIGALRM);
    storm(ITIMER_PROF, SIGPROF);
    start_job(4);
    for (unsigned i = 0; i < tries; i++) {
        lockstep_ring_close(new_ring(8, 8192, 64));
    }
    end_job();
    CHECK(atomic_load(&signals) > tries / 100);
    printf("%llu signals; %u rings of 8 MiB made and closed meanwhile, %llu records accounted for\n",
           (unsigned long long)atomic_load(&signals), tries, (unsigned long long)atomic_load(&job.emitted));
}

static _Atomic(void (*)(int64_t)) step_begin;

static void *step_for_a_while(void *unused)
{
    (void)unused;
    for (int64_t n = 0; n < 1000; n++) {
        atomic_load(&step_begin)(n);
    }
    return NULL;
}

// The threads end after the library was closed, and their destructors with them.
static void attack_dlclose(void)
{
    CHECK(argument != NULL);
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_RECORDS", "1024", 1);
    for (unsigned i = 0; i < tries; i++) {
        void *lib = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
        CHECK(lib != NULL);
        void (*fn)(int64_t);
        *(void **)&fn = dlsym(lib, "lockstep_step_begin");
        CHECK(fn != NULL);
        atomic_store(&step_begin, fn);
        pthread_t t[2];
        for (int k = 0; k < 2; k++) {
            CHECK(pthread_create(&t[k], NULL, step_for_a_while, NULL) == 0);
        }
        CHECK(dlclose(lib) == 0);
        for (int k = 0; k < 2; k++) {
            pthread_join(t[k], NULL);
        }
    }
    printf("opened and closed under two threads that record 1,000 steps each; the library stays\n");
}

// A child that makes a ring and uses it: 0 where it was made, 1 where it was refused.
static int make_and_use(void)
{
    struct lockstep_options opt = {.directory = test_dir, .lanes = 2, .capacity = 64, .slots = 8};
    struct lockstep_ring *r;
    char err[1024];
    if (lockstep_ring_create(&opt, &r, err, sizeof err) != 0) {
        return 1;
    }
    for (uint64_t n = 0; n < 200; n++) {
        emit_one(r, n);
    }
    lockstep_intern(r, "name");
    lockstep_ring_close(r);
    return 0;
}

static struct {
    unsigned made, refused, hung, crashed;
} tally;

static void count_end(int rc, const char *what, long number)
{
    if (rc == 0) {
        tally.made++;
    } else if (rc == 1) {
        tally.refused++;
    } else if (rc == 128 + SIGALRM) {
        tally.hung++;
        fprintf(stderr, "%s %ld: hangs\n", what, number);
    } else {
        tally.crashed++;
        fprintf(stderr, "%s %ld: ended with %d\n", what, number, rc);
    }
}

static void print_tally(void)
{
    printf("%u rings made, %u refused, %u hangs, %u crashes\n", tally.made, tally.refused, tally.hung, tally.crashed);
    CHECK(tally.hung == 0 && tally.crashed == 0);
}

static void under_limit(int resource, const char *name, rlim_t limit)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        struct rlimit l = {limit, limit};
        if (setrlimit(resource, &l) != 0) {
            _exit(1);
        }
        _exit(make_and_use());
    }
    count_end(ended(pid), name, (long)limit);
}

static void attack_limits(void)
{
    for (unsigned i = 0; i < tries / 4; i++) {
        under_limit(RLIMIT_NOFILE, "RLIMIT_NOFILE", i % 32);
        under_limit(RLIMIT_FSIZE, "RLIMIT_FSIZE", (rlim_t)i << 14);
        under_limit(RLIMIT_AS, "RLIMIT_AS", (rlim_t)(i + 1) << 18);
        under_limit(RLIMIT_STACK, "RLIMIT_STACK", (rlim_t)(i + 8) << 12);
    }
    print_tally();
}

static int refuse_call(unsigned number, unsigned error)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the number of the call
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) != 0;
}

#define CALLS 470u

// Without the first three the child cannot end, and without the others the C library ends
// every program that has threads.
static bool refusable(unsigned number)
{
    return number != SYS_exit && number != SYS_exit_group && number != SYS_rt_sigreturn && number != SYS_futex &&
           number != SYS_rseq;
}

// Every system call in turn fails, in each of four ways. Ending is left to the child.
static void attack_seccomp(void)
{
    static const unsigned errors[] = {EPERM, ENOSYS, EINTR, EAGAIN};
    for (unsigned i = 0; i < tries && i < 4 * CALLS; i++) {
        unsigned number = i / 4;
        if (!refusable(number)) {
            continue;
        }
        pid_t pid = fork();
        if (pid == 0) {
            alarm(5);
            _exit(refuse_call(number, errors[i % 4]) ? 99 : make_and_use());
        }
        count_end(ended(pid), "system call", number * 1000L + errors[i % 4]);
    }
    print_tally();
}

static void attack_environment(void)
{
    static const char *const names[] = {
        "LOCKSTEP_DIR", "LOCKSTEP_RING_LANES", "LOCKSTEP_RING_RECORDS", "LOCKSTEP_RING_SLOTS", "LOCKSTEP_RETAIN_SECONDS",
        "LOCKSTEP_LEVEL", "LOCKSTEP_RANK", "LOCKSTEP_LOCAL_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_RESTART", "LOCKSTEP_JOB_ID",
        "LOCKSTEP_JOB_NAME", "LOCKSTEP_RUN_ID", "LOCKSTEP_HOST_ID", "LOCKSTEP_DEBUG", "LOCKSTEP_DISABLE", "SLURM_PROCID",
    };
    char *huge = malloc((1 << 20) + 1);
    memset(huge, 'A', 1 << 20);
    huge[1 << 20] = '\0';
    const char *values[] = {"", "-1", "18446744073709551616", "%s%n%s%n%s%n", "a\nb\tc", "\xff\xfe\x80", "../../../../etc", "0x7fffffff", huge};
    unsigned nnames = sizeof names / sizeof *names, nvalues = sizeof values / sizeof *values, done = 0;
    for (unsigned i = 0; i < nnames; i++) {
        for (unsigned k = 0; k < nvalues && done < tries; k++, done++) {
            pid_t pid = fork();
            if (pid == 0) {
                alarm(20);
                struct lockstep_ring *r;
                char err[1024] = "";
                setenv("LOCKSTEP_DIR", test_dir, 1);
                setenv("LOCKSTEP_RING_LANES", "2", 1);
                setenv("LOCKSTEP_RING_RECORDS", "64", 1);
                setenv(names[i], values[k], 1);
                int rc = lockstep_ring_create(NULL, &r, err, sizeof err) != 0;
                if (rc == 0) {
                    emit_one(r, 1);
                    lockstep_ring_close(r);
                }
                _exit(rc);
            }
            count_end(ended(pid), names[i], k);
        }
    }
    print_tally();
}

static void become(uid_t id)
{
    CHECK(setgroups(0, NULL) == 0 && setgid(id) == 0 && setuid(id) == 0);
}

// A directory that everybody may write to, full of what another user put there: pipes, links
// to what must not be touched, and files named as rings.
static void attack_neighbour(void)
{
    if (geteuid() != 0) {
        SKIP("two users need root");
    }
    CHECK(chmod(test_dir, 01777) == 0);
    const char *precious = in_dir("precious");
    int fd = open(precious, O_CREAT | O_WRONLY, 0666);
    CHECK(fd >= 0 && write(fd, "precious", 8) == 8 && close(fd) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        become(12345);
        for (unsigned i = 0; i < tries; i++) {
            char path[600];
            snprintf(path, sizeof path, "%s/%s%u-%u-%08x.ring%s", test_dir, i % 2 ? "." : "", i, i, i, i % 2 ? ".tmp" : "");
            CHECK(i % 3 == 0 ? mkfifo(path, 0666) == 0 : i % 3 == 1 ? symlink(precious, path) == 0
                                                                     : close(open(path, O_CREAT | O_WRONLY, 0666)) == 0);
        }
        _exit(0);
    }
    CHECK_EQ(ended(pid), 0);
    uint64_t longest = 0;
    for (unsigned i = 0; i < 20; i++) {
        uint64_t before = lockstep_now();
        if ((pid = fork()) == 0) {
            alarm(20);
            become(23456);
            _exit(make_and_use());
        }
        CHECK_EQ(ended(pid), 0);
        uint64_t took = lockstep_now() - before;
        longest = took > longest ? took : longest;
    }
    char text[9] = "";
    fd = open(precious, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, 8) == 8 && close(fd) == 0 && strcmp(text, "precious") == 0);
    printf("20 rings made beside %u entries of another user, in %.0f ms at most; nothing of theirs was touched\n", tries,
           (double)longest * 1e-6);
}

// The file system is full after the ring was made: its pages are there already.
static void attack_full(void)
{
    if (mount("tmpfs", test_dir, "tmpfs", 0, "size=4m") != 0) {
        SKIP("mounting needs root");
    }
    struct lockstep_ring *r = new_ring(2, 4096, 64);
    int fd = open(in_dir("filler"), O_CREAT | O_WRONLY, 0600);
    static char block[4096];
    memset(block, 1, sizeof block);
    while (write(fd, block, sizeof block) > 0) {
    }
    CHECK(errno == ENOSPC);
    for (unsigned i = 0; i < tries; i++) {
        emit_one(r, i);
    }
    CHECK_EQ(accounted(r), tries);
    lockstep_ring_close(r);
    printf("%u records into a ring of %u on a file system with no byte left\n", tries, 2 * 4096);
    umount2(test_dir, MNT_DETACH);
}

// Whoever may write the file can cut it under the program: the program dies. There is no
// defence but the file's mode; see docs/format/ring.md.
static void attack_truncate(void)
{
    unsigned died = 0;
    for (unsigned i = 0; i < tries; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            struct lockstep_ring *r = new_ring(2, 64, 1);
            CHECK(ftruncate(r->fd, 0) == 0); // as another process may with a descriptor of its own
            emit_one(r, 1);
            _exit(0);
        }
        died += ended(pid) == 128 + SIGBUS;
    }
    CHECK_EQ(died, tries);
    printf("all %u programs whose ring was cut by who may write it died of SIGBUS: open, the file's mode is the defence\n", died);
}

// What a record costs, of records that lap the ring: one line, in ns.
static void attack_rate(void)
{
    const char *directory = argument != NULL ? argument : test_dir;
    struct lockstep_options opt = {.directory = directory, .lanes = 2, .capacity = 16384, .slots = 1};
    struct lockstep_ring *r;
    char err[1024];
    CHECK_EQ(lockstep_ring_create(&opt, &r, err, sizeof err), 0);
    uint64_t begin = lockstep_now();
    for (uint64_t n = 0; n < tries; n++) {
        emit_one(r, n);
    }
    printf("%.1f\n", (double)(lockstep_now() - begin) / tries);
    lockstep_ring_close(r);
}

static const struct test_case attacks[] = {
    {"fork", attack_fork},
    {"exec", attack_exec},
    {"threads", attack_threads},
    {"signals", attack_signals},
    {"dlclose", attack_dlclose},
    {"limits", attack_limits},
    {"seccomp", attack_seccomp},
    {"environment", attack_environment},
    {"neighbour", attack_neighbour},
    {"full", attack_full},
    {"truncate", attack_truncate},
    {"rate", attack_rate},
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "descriptors") == 0) {
        return has_ring_descriptor();
    }
    if (argc < 3) {
        fprintf(stderr, "usage: doors ATTACK TRIES [PATH]\n");
        return 2;
    }
    tries = (unsigned)strtoul(argv[2], NULL, 10);
    argument = argc > 3 ? argv[3] : NULL;
    return run_cases(attacks, sizeof attacks / sizeof *attacks, 2, argv);
}
