// SPDX-License-Identifier: Apache-2.0

// Tests of making a ring: the file, the environment, and bad circumstances.
#include "test.h"

#include <dirent.h>
#include <grp.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/resource.h>

static unsigned files_in(const char *path)
{
    DIR *d = opendir(path);
    CHECK(d != NULL);
    unsigned n = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(d);
    return n;
}

static void path_of(const struct lockstep_ring *r, char *path, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", r->fd);
    ssize_t n = readlink(link, path, size - 1);
    CHECK(n > 0);
    path[n] = '\0';
}

// The reason why no ring can be made here; there must be one.
static const char *refusal(const char *directory)
{
    static char err[1024];
    struct lockstep_options opt = {.directory = directory, .lanes = 2, .capacity = 8, .slots = 8};
    struct lockstep_ring *r;
    CHECK(lockstep_ring_create(&opt, &r, err, sizeof err) == -1);
    CHECK(r == NULL);
    return err;
}

static void header_says_what_is_there(void)
{
    uint64_t before = lockstep_now();
    struct lockstep_ring *r = new_ring(5, 64, 100);
    const struct lockstep_header *h = r->header;
    struct stat st;
    CHECK(fstat(r->fd, &st) == 0);
    CHECK(memcmp(&h->magic, "LKSTRING", 8) == 0);
    CHECK_EQ(h->version, 1);
    CHECK_EQ(h->header_size, 4096);
    CHECK_EQ(h->file_size, st.st_size);
    CHECK_EQ(st.st_blocks * 512 >= st.st_size, 1); // allocated, not a hole
    CHECK_EQ(h->pid, getpid());
    CHECK(h->created >= before && h->created <= lockstep_now());
    CHECK_EQ(atomic_load(&h->state), LOCKSTEP_STATE_LIVE);
    CHECK_EQ(atomic_load(&h->step), UINT64_MAX);
    CHECK_EQ(atomic_load(&h->level), LOCKSTEP_LEVEL_COLLECTIVES);
    CHECK_EQ(h->retain_seconds, 60);
    CHECK(atomic_load(&h->heartbeat) >= h->created);
    CHECK_EQ(atomic_load(&h->clock_pairs), 1);
    CHECK(h->boot_id[0] != 0 || h->boot_id[1] != 0 || h->boot_id[2] != 0);
    CHECK_EQ(h->sections[LOCKSTEP_S_LANES - 1].count, 5);
    CHECK_EQ(h->sections[LOCKSTEP_S_SLOTS - 1].count, 100);
    CHECK_EQ(h->sections[LOCKSTEP_S_RECORDS - 1].count, 5 * 64);
    uint64_t end = LOCKSTEP_PAGE;
    for (unsigned i = 0; i < LOCKSTEP_SECTIONS; i++) {
        const struct lockstep_section *s = &h->sections[i];
        CHECK_EQ(s->kind, i + 1);
        CHECK_EQ(s->offset % LOCKSTEP_PAGE, 0);
        CHECK(s->offset >= end);
        end = s->offset + s->entry_size * s->count;
    }
    CHECK(end <= h->file_size);
    lockstep_ring_close(r);
}

static void file_name_and_mode(void)
{
    umask(077);
    char path[1024], want[128];
    struct stat st;
    struct lockstep_ring *r = new_ring(2, 8, 8);
    path_of(r, path, sizeof path);
    snprintf(want, sizeof want, "/%llu-%llu-", (unsigned long long)r->header->pid,
             (unsigned long long)r->header->start_time);
    CHECK_HAS(path, want);
    CHECK(strcmp(path + strlen(path) - 5, ".ring") == 0);
    CHECK_EQ(strlen(strrchr(path, '/')), strlen(want) + 8 + 5);
    CHECK_EQ(files_in(test_dir), 1); // no temporary name is left
    CHECK(stat(path, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    lockstep_ring_close(r);
    CHECK(stat(path, &st) == 0); // it stays for its reader
    CHECK(chmod(test_dir, 02770) == 0);
    r = new_ring(2, 8, 8);
    CHECK(fstat(r->fd, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0660);
    lockstep_ring_close(r);
}

static void group_of_others(void)
{
    if (geteuid() != 0) {
        SKIP("giving a folder to another group needs root");
    }
    CHECK(chown(test_dir, 12345, 23456) == 0 && chmod(test_dir, 02777) == 0);
    CHECK(setgroups(0, NULL) == 0 && setgid(12345) == 0 && setuid(12345) == 0);
    struct lockstep_ring *r = new_ring(2, 8, 8);
    struct stat st;
    CHECK(fstat(r->fd, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    lockstep_ring_close(r);
}

static void closed_is_marked(void)
{
    struct lockstep_ring *r = new_ring(2, 8, 8);
    char path[1024];
    path_of(r, path, sizeof path);
    lockstep_ring_close(r);
    lockstep_ring_close(NULL);
    struct lockstep_header h;
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, &h, sizeof h) == sizeof h);
    CHECK_EQ(h.state, LOCKSTEP_STATE_CLOSED);
}

struct env_case {
    const char *name, *value;
    uint64_t lanes, capacity, slots, retain, level;
    const char *note;
};

static void odd_settings_are_put_right(void)
{
    static const struct env_case table[] = {
        {"LOCKSTEP_RING_LANES", "0", 32, 64, 16, 60, 2, "LOCKSTEP_RING_LANES: got 0; want 1 to 1024: 32 is used"},
        {"LOCKSTEP_RING_LANES", "99999", 1024, 64, 16, 60, 2, "1024 is used"},
        {"LOCKSTEP_RING_LANES", "-3", 32, 64, 16, 60, 2, "got -3"},
        {"LOCKSTEP_RING_LANES", "", 32, 64, 16, 60, 2, NULL},
        {"LOCKSTEP_RING_RECORDS", "1000", 4, 512, 16, 60, 2, "want a power of two: 512 is used"},
        {"LOCKSTEP_RING_RECORDS", "0", 4, 16384, 16, 60, 2, "16384 is used"},
        {"LOCKSTEP_RING_RECORDS", "3", 4, 8, 16, 60, 2, "8 is used"},
        {"LOCKSTEP_RING_RECORDS", "many", 4, 16384, 16, 60, 2, "got \"many\"; want a number: 16384 is used"},
        {"LOCKSTEP_RING_RECORDS", "12k", 4, 16384, 16, 60, 2, "want a number"},
        {"LOCKSTEP_RING_SLOTS", "-5", 4, 64, 4096, 60, 2, "got -5; want 1 to 65535: 4096 is used"},
        {"LOCKSTEP_RING_SLOTS", "70000", 4, 64, 65535, 60, 2, "65535 is used"},
        {"LOCKSTEP_RING_SLOTS", "99999999999999999999", 4, 64, 4096, 60, 2, "want a number"},
        {"LOCKSTEP_RETAIN_SECONDS", "0", 4, 64, 16, 60, 2, "60 is used"},
        {"LOCKSTEP_LEVEL", "all", 4, 64, 16, 60, 3, NULL},
        {"LOCKSTEP_LEVEL", "Summary", 4, 64, 16, 60, 1, NULL},
        {"LOCKSTEP_LEVEL", "everything", 4, 64, 16, 60, 2, "collectives is used"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct env_case *c = &table[i];
        char err[1024];
        struct lockstep_options opt = {.directory = test_dir};
        struct lockstep_ring *r;
        setenv("LOCKSTEP_RING_LANES", "4", 1);
        setenv("LOCKSTEP_RING_RECORDS", "64", 1);
        setenv("LOCKSTEP_RING_SLOTS", "16", 1);
        unsetenv("LOCKSTEP_LEVEL");
        unsetenv("LOCKSTEP_RETAIN_SECONDS");
        setenv(c->name, c->value, 1);
        CHECK_EQ(lockstep_ring_create(&opt, &r, err, sizeof err), 0);
        CHECK_EQ(r->nlanes, c->lanes);
        CHECK_EQ(r->capacity, c->capacity);
        CHECK_EQ(r->nslots, c->slots);
        CHECK_EQ(r->header->retain_seconds, c->retain);
        CHECK_EQ(lockstep_level(r), c->level);
        if (c->note != NULL) {
            CHECK_HAS(err, c->note);
        } else {
            CHECK(err[0] == '\0');
        }
        lockstep_ring_close(r);
    }
}

// What is too long for its field is cut, and said to be.
static void a_long_name_is_cut(void)
{
    char id[301], err[1024];
    memset(id, 'j', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    setenv("LOCKSTEP_JOB_ID", id, 1);
    setenv("LOCKSTEP_JOB_NAME", id + sizeof id - 1 - 127, 1);
    struct lockstep_options opt = {.directory = test_dir};
    struct lockstep_ring *r;
    CHECK_EQ(lockstep_ring_create(&opt, &r, err, sizeof err), 0);
    CHECK_EQ(strlen(r->header->job_id), 127);
    CHECK_EQ(strlen(r->header->job_name), 127);
    CHECK_HAS(err, "LOCKSTEP_JOB_ID: got 300 bytes; want at most 127: it is cut");
    CHECK(strstr(err, "LOCKSTEP_JOB_NAME") == NULL);
    lockstep_ring_close(r);
}

// More than 512 MiB are asked for: fewer are tried, and as the limit of file sizes
// forbids those too, the refusal tells the size.
static void huge_sizes_are_cut(void)
{
    struct rlimit lim = {1 << 20, 1 << 20};
    CHECK(setrlimit(RLIMIT_FSIZE, &lim) == 0);
    struct lockstep_options opt = {.directory = test_dir, .lanes = 1024, .capacity = 1u << 22};
    struct lockstep_ring *r;
    char err[1024];
    CHECK(lockstep_ring_create(&opt, &r, err, sizeof err) == -1);
    unsigned long long size = 0;
    CHECK(sscanf(err, "allocate ring: got %llu bytes; want at most 1048576 (RLIMIT_FSIZE)", &size) == 1);
    CHECK(size >= 512ull << 20 && size < (512ull << 20) + (8u << 20));
    CHECK_EQ(files_in(test_dir), 0);
}

static void ranks_of_launchers(void)
{
    static const struct {
        const char *rank, *local, *world, *restart;
    } table[] = {
        {"LOCKSTEP_RANK", "LOCKSTEP_LOCAL_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_RESTART"},
        {"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"},
        {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_RESTART_COUNT"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
        {"PMI_RANK", NULL, "PMI_SIZE", NULL},
    };
    // From the weakest to the strongest: each must win over those before.
    clearenv();
    for (int i = 4; i >= 0; i--) {
        char text[16];
        const char *names[] = {table[i].rank, table[i].local, table[i].world, table[i].restart};
        for (int k = 0; k < 4; k++) {
            snprintf(text, sizeof text, "%d", i * 10 + k);
            if (names[k] != NULL) {
                setenv(names[k], text, 1);
            }
        }
        struct lockstep_ring *r = new_ring(2, 8, 8);
        CHECK_EQ(r->header->rank, i * 10);
        CHECK_EQ(r->header->local_rank, table[i].local != NULL ? i * 10 + 1 : LOCKSTEP_NONE);
        CHECK_EQ(r->header->world_size, i * 10 + 2);
        CHECK_EQ(r->header->restart, table[i].restart != NULL ? i * 10 + 3 : LOCKSTEP_NONE);
        lockstep_ring_close(r);
    }
    setenv("LOCKSTEP_WORLD_SIZE", "0", 1);
    struct lockstep_ring *none = new_ring(2, 8, 8);
    CHECK_EQ(none->header->world_size, LOCKSTEP_NONE);
    lockstep_ring_close(none);
    setenv("LOCKSTEP_RANK", "-7", 1);
    setenv("RANK", "nine", 1);
    setenv("LOCKSTEP_JOB_NAME", "resnet", 1);
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("TORCHELASTIC_RUN_ID", "run-1", 1);
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = '\0';
    setenv("LOCKSTEP_HOST_ID", longest, 1);
    struct lockstep_ring *r = new_ring(2, 8, 8);
    CHECK_EQ(r->header->rank, 20); // Slurm's: the others are no ranks
    CHECK(strcmp(r->header->job_id, "4711") == 0);
    CHECK(strcmp(r->header->job_name, "resnet") == 0);
    CHECK(strcmp(r->header->run_id, "run-1") == 0);
    CHECK_EQ(strlen(r->header->host_id), 63);
    lockstep_ring_close(r);
}

static void what_is_no_rank_is_told_of(void)
{
    char err[1024];
    struct lockstep_options opt = {.directory = test_dir, .lanes = 2, .capacity = 8, .slots = 8};
    struct lockstep_ring *r;
    clearenv();
    setenv("LOCKSTEP_RANK", "-7", 1);
    setenv("RANK", "3", 1);
    setenv("LOCAL_RANK", "", 1);
    setenv("WORLD_SIZE", "99999999999", 1);
    CHECK_EQ(lockstep_ring_create(&opt, &r, err, sizeof err), 0);
    CHECK_EQ(r->header->rank, 3);
    CHECK_EQ(r->header->local_rank, LOCKSTEP_NONE);
    CHECK_EQ(r->header->world_size, LOCKSTEP_NONE);
    CHECK(strcmp(err, "LOCKSTEP_RANK: got \"-7\"; want a number from 0 to 2147483647: it is left out; "
                      "WORLD_SIZE: got \"99999999999\"; want a number from 0 to 2147483647: it is left out") == 0);
    lockstep_ring_close(r);
}

static void directory_is_refused(void)
{
    char link[600], long_path[2000];
    CHECK_HAS(refusal(in_dir("nothing")), "it does not exist");
    CHECK(symlink(test_dir, in_dir("link")) == 0);
    CHECK_HAS(refusal(in_dir("link")), "symbolic link");
    snprintf(link, sizeof link, "%.500s///", in_dir("link"));
    CHECK_HAS(refusal(link), "symbolic link"); // nor with slashes behind it
    CHECK(close(open(in_dir("file"), O_CREAT | O_WRONLY, 0600)) == 0);
    CHECK_HAS(refusal(in_dir("file")), "it is no directory");
    memset(long_path, 'a', sizeof long_path);
    long_path[0] = '/';
    long_path[1999] = '\0';
    CHECK_HAS(refusal(long_path), "want at most");
    CHECK_EQ(files_in(test_dir), 2);
}

static void directory_without_permission(void)
{
    if (geteuid() == 0) {
        CHECK(setgroups(0, NULL) == 0 && setgid(12345) == 0 && setuid(12345) == 0);
    } else {
        CHECK(chmod(test_dir, 0) == 0);
    }
    CHECK_HAS(refusal(test_dir), "is the job in the directory's group?");
}

static void directory_that_cannot_be_listed(void)
{
    if (geteuid() == 0) {
        CHECK(chown(test_dir, 12345, 12345) == 0);
        CHECK(setgroups(0, NULL) == 0 && setgid(12345) == 0 && setuid(12345) == 0);
    }
    CHECK(chmod(test_dir, 0300) == 0);
    struct lockstep_ring *r = new_ring(2, 8, 8);
    lockstep_ring_close(r);
    CHECK(chmod(test_dir, 0700) == 0);
    CHECK_EQ(files_in(test_dir), 1);
}

static void full_filesystem(void)
{
    if (geteuid() != 0 || mkdir(in_dir("small"), 0700) != 0 ||
        mount("none", in_dir("small"), "tmpfs", 0, "size=256k") != 0) {
        SKIP("mounting a small file system needs root with CAP_SYS_ADMIN");
    }
    const char *why = refusal(in_dir("small"));
    unsigned left = files_in(in_dir("small"));
    umount(in_dir("small"));
    CHECK_HAS(why, "No space left on device");
    CHECK_EQ(left, 0);
}

static void file_size_limit(void)
{
    struct rlimit lim = {64 << 10, 64 << 10};
    CHECK(setrlimit(RLIMIT_FSIZE, &lim) == 0);
    CHECK_HAS(refusal(test_dir), "RLIMIT_FSIZE");
    CHECK_EQ(files_in(test_dir), 0);
}

static uint8_t boot_id[16];

// Before any dead ring is made, since making a ring clears them away.
static void learn_boot_id(void)
{
    char path[1024];
    struct lockstep_ring *r = new_ring(1, 8, 1);
    memcpy(boot_id, r->header->boot_id, sizeof boot_id);
    path_of(r, path, sizeof path);
    lockstep_ring_close(r);
    CHECK(unlink(path) == 0);
}

static void make_dead(const char *name, uint64_t silent_ns, bool valid)
{
    struct lockstep_header h = {.magic = LOCKSTEP_RING_MAGIC, .version = 1};
    memcpy(h.boot_id, boot_id, sizeof h.boot_id);
    h.heartbeat = lockstep_now() - silent_ns;
    int fd = open(in_dir(name), O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHECK(fd >= 0 && write(fd, &h, valid ? sizeof h : 100) > 0 && close(fd) == 0);
}

static void make_old(const char *name)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    CHECK(utimensat(AT_FDCWD, in_dir(name), times, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool exists(const char *name)
{
    struct stat st;
    return lstat(in_dir(name), &st) == 0;
}

// Making a ring clears away what is dead.
static int make_and_close(void *unused)
{
    (void)unused;
    lockstep_ring_close(new_ring(1, 8, 1));
    return 0;
}

static void dead_rings_are_cleared_away(void)
{
    const uint64_t minute = 60ull * 1000000000;
    if (lockstep_now() < 12 * minute) {
        SKIP("the machine started less than 12 minutes ago");
    }
    learn_boot_id();
    make_dead("1-1-young.ring", 5 * minute, true);
    make_dead("1-1-old.ring", 11 * minute, true);
    make_dead(".1-1-old.ring.tmp", 11 * minute, true);
    make_dead("1-1-old.txt", 11 * minute, true);
    make_dead(".hidden.ring", 11 * minute, true);
    make_dead("1-1-short.ring", 0, false);
    make_dead("1-1-shortold.ring", 0, false);
    make_old("1-1-shortold.ring");
    make_dead("1-1-foreign.ring", 11 * minute, true);
    CHECK(geteuid() != 0 || chown(in_dir("1-1-foreign.ring"), 12345, 12345) == 0);
    make_dead("1-1-held.ring", 11 * minute, true);
    CHECK(symlink(in_dir("1-1-old.txt"), in_dir("1-1-link.ring")) == 0);
    make_old("1-1-link.ring");
    CHECK(mkfifo(in_dir("1-1-fifo.ring"), 0600) == 0);
    make_old("1-1-fifo.ring");
    CHECK(mkdir(in_dir("1-1-dir.ring"), 0700) == 0);
    // A lock is seen by other processes only: a child makes the ring.
    int fd = open(in_dir("1-1-held.ring"), O_RDWR);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    CHECK(fcntl(fd, F_SETLK, &l) == 0);
    CHECK(exists("1-1-old.ring"));
    CHECK_EQ(in_child(make_and_close, NULL), 0);
    CHECK(!exists("1-1-old.ring"));
    CHECK(!exists(".1-1-old.ring.tmp"));
    CHECK(!exists("1-1-shortold.ring"));
    static const char *const kept[] = {"1-1-young.ring", "1-1-old.txt",   ".hidden.ring",  "1-1-short.ring",
                                       "1-1-held.ring",  "1-1-link.ring", "1-1-fifo.ring", "1-1-dir.ring"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (!exists(kept[i])) {
            fprintf(stderr, "%s is gone\n", kept[i]);
            exit(1);
        }
    }
    CHECK_EQ(exists("1-1-foreign.ring"), geteuid() == 0);
}

static void no_message_wanted(void)
{
    struct lockstep_options opt = {.directory = in_dir("nothing")};
    struct lockstep_ring *r;
    CHECK(lockstep_ring_create(&opt, &r, NULL, 0) == -1);
    char tiny[8];
    CHECK(lockstep_ring_create(&opt, &r, tiny, sizeof tiny) == -1);
    CHECK_EQ(strlen(tiny), 7);
}

// Stands in for the C library's, so that signals come when the test wants.
static int interruptions;
static bool signals_waited;

int posix_fallocate(int fd, off_t offset, off_t length)
{
    sigset_t blocked;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
    signals_waited = sigismember(&blocked, SIGALRM) && sigismember(&blocked, SIGPROF);
    if (interruptions > 0) {
        interruptions--;
        return EINTR;
    }
    return fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
}

static void interrupted_allocation_ends(void)
{
    struct lockstep_options opt = {.directory = test_dir, .lanes = 2, .capacity = 8, .slots = 1};
    struct lockstep_ring *r;
    char err[1024];
    sigset_t blocked;
    interruptions = 3;
    lockstep_ring_close(new_ring(2, 8, 1));
    CHECK(signals_waited);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGALRM));
    alarm(20);
    interruptions = INT_MAX;
    CHECK(lockstep_ring_create(&opt, &r, err, sizeof err) == -1);
    CHECK_HAS(err, strerror(EINTR));
    CHECK_EQ(files_in(test_dir), 1);
}

static const struct test_case cases[] = {
    {"interrupted_allocation_ends", interrupted_allocation_ends},
    {"header_says_what_is_there", header_says_what_is_there},
    {"file_name_and_mode", file_name_and_mode},
    {"group_of_others", group_of_others},
    {"closed_is_marked", closed_is_marked},
    {"odd_settings_are_put_right", odd_settings_are_put_right},
    {"a_long_name_is_cut", a_long_name_is_cut},
    {"huge_sizes_are_cut", huge_sizes_are_cut},
    {"ranks_of_launchers", ranks_of_launchers},
    {"what_is_no_rank_is_told_of", what_is_no_rank_is_told_of},
    {"directory_is_refused", directory_is_refused},
    {"directory_without_permission", directory_without_permission},
    {"directory_that_cannot_be_listed", directory_that_cannot_be_listed},
    {"full_filesystem", full_filesystem},
    {"file_size_limit", file_size_limit},
    {"dead_rings_are_cleared_away", dead_rings_are_cleared_away},
    {"no_message_wanted", no_message_wanted},
};

TEST_MAIN(cases)
