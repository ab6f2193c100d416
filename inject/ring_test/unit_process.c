// SPDX-License-Identifier: Apache-2.0

// Tests of the ring of a process: environment, fork, exit, heartbeat, and what a
// program says of itself.
#include "lockstep.h"
#include "test.h"

#include <dirent.h>
#include <sys/mman.h>

static struct lockstep_ring *process_ring(void)
{
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_LANES", "4", 1);
    setenv("LOCKSTEP_RING_RECORDS", "64", 1);
    setenv("LOCKSTEP_RING_SLOTS", "16", 1);
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        fprintf(stderr, "%s\n", lockstep_ring_status());
        exit(1);
    }
    return r;
}

// The only ring in the folder of the test.
static void find_ring(char *path, size_t size)
{
    DIR *d = opendir(test_dir);
    CHECK(d != NULL);
    path[0] = '\0';
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            CHECK(path[0] == '\0');
            snprintf(path, size, "%s/%s", test_dir, e->d_name);
        }
    }
    closedir(d);
    CHECK(path[0] != '\0');
}

static void read_header(struct lockstep_header *h)
{
    char path[600];
    find_ring(path, sizeof path);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, h, sizeof *h) == sizeof *h && close(fd) == 0);
}

// 1 where another process holds the lock of the ring, 0 where none does.
static int is_locked(void *unused)
{
    (void)unused;
    char path[600];
    find_ring(path, sizeof path);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fcntl(fd, F_GETLK, &l) == 0 && close(fd) == 0);
    return l.l_type != F_UNLCK;
}

static void there_is_one(void)
{
    CHECK_HAS(lockstep_ring_status(), "not asked for yet");
    struct lockstep_ring *r = process_ring();
    CHECK(lockstep_ring_process() == r);
    CHECK_HAS(lockstep_ring_status(), "ring: ");
    CHECK_HAS(lockstep_ring_status(), test_dir);
    CHECK_EQ(r->nlanes, 4);
    CHECK_EQ(in_child(is_locked, NULL), 1);
}

static void *ask(void *unused)
{
    (void)unused;
    return lockstep_ring_process();
}

static void there_is_one_for_all_threads(void)
{
    setenv("LOCKSTEP_DIR", test_dir, 1);
    pthread_t t[8];
    void *got[8];
    for (int i = 0; i < 8; i++) {
        CHECK(pthread_create(&t[i], NULL, ask, NULL) == 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], &got[i]);
        CHECK(got[i] != NULL && got[i] == got[0]);
    }
}

static void disabled(void)
{
    setenv("LOCKSTEP_DISABLE", "1", 1);
    setenv("LOCKSTEP_DIR", test_dir, 1);
    CHECK(lockstep_ring_process() == NULL);
    CHECK_HAS(lockstep_ring_status(), "LOCKSTEP_DISABLE");
    lockstep_step_begin(1);
    CHECK_EQ(lockstep_scope_begin("x", 0), 0);
    lockstep_scope_end(0);
    lockstep_scope_end(12345);
}

static void no_directory(void)
{
    setenv("LOCKSTEP_DIR", in_dir("nothing"), 1);
    CHECK(lockstep_ring_process() == NULL);
    CHECK_HAS(lockstep_ring_status(), "no ring: open directory");
    lockstep_step_begin(1);
}

// What a process of its own writes to stderr.
static void debug_speaks_once(void)
{
    int p[2], saved = dup(2);
    char text[2048];
    CHECK(pipe(p) == 0 && dup2(p[1], 2) == 2);
    setenv("LOCKSTEP_DEBUG", "1", 1);
    process_ring();
    lockstep_ring_process();
    CHECK(dup2(saved, 2) == 2 && close(p[1]) == 0);
    ssize_t n = read(p[0], text, sizeof text - 1);
    CHECK(n > 0);
    text[n] = '\0';
    CHECK_HAS(text, "lockstep: ring: ");
    CHECK(strchr(text, '\n') == text + n - 1);
}

static void emit_step(struct lockstep_ring *r)
{
    uint64_t word[LOCKSTEP_WORDS] = {[1] = lockstep_head(LOCKSTEP_STEP, 1, 0, 0, 0, 0)};
    lockstep_emit(r, word);
}

static int child_has_none(void *parents)
{
    struct lockstep_ring *r = parents;
    CHECK(lockstep_ring_process() == NULL);
    CHECK_HAS(lockstep_ring_status(), "forked child");
    lockstep_step_begin(77);
    CHECK_EQ(lockstep_scope_begin("x", 0), 0);
    // Whoever kept the pointer harms nobody.
    for (int i = 0; i < 1000; i++) {
        emit_step(r);
    }
    struct lockstep_slot *s;
    CHECK(lockstep_slot_claim(r, &s) != 0);
    lockstep_comm_add(r, 1, 1, 1, 1, 1, 1, "child");
    lockstep_intern(r, "child");
    lockstep_drop(r, LOCKSTEP_D_CONTROL);
    CHECK_EQ(is_locked(NULL), 1); // the parent's
    exit(0);                      // with its handlers, as a worker ends
}

static void forked_child_is_silent(void)
{
    struct lockstep_ring *r = process_ring();
    emit_step(r);
    emit_step(r);
    static struct lockstep_lane before[4];
    memcpy(before, r->lanes, sizeof before);
    CHECK_EQ(in_child(child_has_none, r), 0);
    CHECK(memcmp(before, r->lanes, sizeof before) == 0);
    CHECK_EQ(atomic_load(&r->header->state), LOCKSTEP_STATE_LIVE);
    CHECK_EQ(atomic_load(&r->header->step), UINT64_MAX);
    CHECK_EQ(atomic_load(&r->comms[1].state), LOCKSTEP_E_FREE);
    CHECK_EQ(atomic_load(&r->slots[0].word[0]), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CONTROL), 0);
    CHECK_EQ(in_child(is_locked, NULL), 1);
    emit_step(r);
    CHECK_EQ(atomic_load(&r->lanes[1].head), 3);
}

// A handler of a fork that was there before ours maps what the child needs: the
// kernel gives it the hole that the ring left, in whose pieces there is room
// whatever is mapped beside it.
#define PIECES 64
static char *piece[PIECES];
static size_t piece_size;

static void map_in_child(void)
{
    for (int i = 0; i < PIECES && piece_size != 0; i++) {
        piece[i] = mmap(NULL, piece_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece[i] != MAP_FAILED) {
            memset(piece[i], 7, piece_size);
        }
    }
}

static int child_keeps_its_memory(void *parents)
{
    struct lockstep_ring *r = parents;
    for (int i = 0; i < 1000; i++) {
        emit_step(r); // to zeroes, not to what was mapped
    }
    lockstep_ring_close(r); // nor is that unmapped
    for (int i = 0; i < PIECES; i++) {
        for (size_t at = 0; at < piece_size; at += 64) {
            CHECK_EQ(piece[i][at], 7);
        }
    }
    return 0;
}

static void forked_child_keeps_what_others_mapped(void)
{
    CHECK(pthread_atfork(NULL, NULL, map_in_child) == 0);
    struct lockstep_ring *r = new_ring(4, 64, 16);
    const char *base = (const char *)r->header;
    piece_size = r->header->file_size / 8 / 4096 * 4096;
    pid_t pid = fork();
    if (pid == 0) {
        bool hit = false;
        for (int i = 0; i < PIECES; i++) {
            hit = hit || (piece[i] >= base && piece[i] < base + 8 * piece_size);
        }
        int rc = child_keeps_its_memory(r);
        _exit(hit ? rc : EXIT_SKIPPED);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    piece_size = 0;
    if (WEXITSTATUS(status) == EXIT_SKIPPED) {
        SKIP("nothing was mapped where the ring had been");
    }
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static int child_makes_its_own(void *unused)
{
    (void)unused;
    return process_ring() == NULL;
}

static void child_of_a_process_without_a_ring_has_one(void)
{
    CHECK_EQ(in_child(child_makes_its_own, NULL), 0);
    struct lockstep_header h;
    read_header(&h);
    CHECK(h.pid != (uint64_t)getpid());
}

static int live_and_exit(void *unused)
{
    (void)unused;
    emit_step(process_ring());
    exit(0);
}

static int live_and_quit(void *unused)
{
    (void)unused;
    emit_step(process_ring());
    _exit(0);
}

static int live_and_die(void *unused)
{
    (void)unused;
    emit_step(process_ring());
    raise(SIGKILL);
    return 0;
}

static void ends_in(int (*end)(void *), int status, enum lockstep_state state)
{
    struct lockstep_header h;
    CHECK_EQ(in_child(end, NULL), status);
    read_header(&h);
    CHECK_EQ(h.state, state);
    CHECK_EQ(in_child(is_locked, NULL), 0);
}

static void exit_closes(void) { ends_in(live_and_exit, 0, LOCKSTEP_STATE_CLOSED); }
static void tick_forever(void *unused)
{
    (void)unused;
    for (;;) {
        pause();
    }
}

static int exit_in_a_tick(void *unused)
{
    (void)unused;
    lockstep_ring_on_tick(process_ring(), tick_forever, NULL);
    usleep(1200000);
    exit(0);
}

static void exit_does_not_wait_for_a_tick(void) { ends_in(exit_in_a_tick, 0, LOCKSTEP_STATE_CLOSED); }
static void quit_leaves_it_live(void) { ends_in(live_and_quit, 0, LOCKSTEP_STATE_LIVE); }
static void kill_leaves_it_live(void) { ends_in(live_and_die, 128 + SIGKILL, LOCKSTEP_STATE_LIVE); }

static _Atomic unsigned ticks;

static void count_tick(void *arg)
{
    CHECK(arg == &ticks);
    sigset_t blocked;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
    CHECK(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR1));
    atomic_fetch_add(&ticks, 1);
}

static _Atomic unsigned order;
static _Atomic bool all_there, whole_round;

// Each of four follows the one before it, in every round that began with all there.
static void in_order(unsigned place)
{
    if (atomic_load(&whole_round)) {
        CHECK_EQ(atomic_load(&order) % 4, place);
        atomic_fetch_add(&order, 1);
    }
}

static void first_tick(void *arg)
{
    CHECK(arg == &order);
    atomic_store(&whole_round, atomic_load(&all_there));
    in_order(0);
}

static void second_tick(void *unused) { (void)unused, in_order(1); }
static void third_tick(void *unused) { (void)unused, in_order(2); }
static void fourth_tick(void *unused) { (void)unused, in_order(3); }

static void four_share_the_tick(void)
{
    struct lockstep_ring *r = process_ring();
    CHECK(lockstep_ring_on_tick(r, first_tick, &order) && lockstep_ring_on_tick(r, second_tick, NULL));
    CHECK(lockstep_ring_on_tick(r, third_tick, NULL) && lockstep_ring_on_tick(r, fourth_tick, NULL));
    CHECK(!lockstep_ring_on_tick(r, count_tick, &ticks)); // a fifth is not taken
    CHECK(lockstep_ring_on_tick(r, first_tick, &order));  // and one that is there takes no second place
    atomic_store(&all_there, true);
    for (int i = 0; i < 10000 && atomic_load(&order) < 8; i++) {
        usleep(1000);
    }
    CHECK(atomic_load(&order) >= 8);
    CHECK_EQ(atomic_load(&ticks), 0);
}

static void wait_for_ticks(unsigned more)
{
    unsigned want = atomic_load(&ticks) + more;
    for (int i = 0; i < 10000 && atomic_load(&ticks) < want; i++) {
        usleep(1000);
    }
    CHECK(atomic_load(&ticks) >= want);
}

static void heart_beats(void)
{
    struct lockstep_ring *r = process_ring();
    const struct lockstep_header *h = r->header;
    uint64_t first = atomic_load(&h->heartbeat);
    lockstep_ring_on_tick(r, count_tick, &ticks);
    atomic_store(&r->control->level, LOCKSTEP_LEVEL_ALL);
    CHECK_EQ(lockstep_level(r), LOCKSTEP_LEVEL_ALL); // at once where it is asked
    CHECK(close(r->fd) == 0);                        // a program that closes what it does not know
    CHECK_EQ(in_child(is_locked, NULL), 0);
    wait_for_ticks(1);
    CHECK_EQ(in_child(is_locked, NULL), 1); // and the lock is back
    CHECK(atomic_load(&h->heartbeat) > first);
    CHECK_EQ(atomic_load(&h->level), LOCKSTEP_LEVEL_ALL);
    atomic_store(&r->control->level, 1234);
    CHECK_EQ(lockstep_level(r), LOCKSTEP_LEVEL_COLLECTIVES);
    wait_for_ticks(2);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_CONTROL), 1); // once, however long it stays
    CHECK_EQ(atomic_load(&h->level), LOCKSTEP_LEVEL_COLLECTIVES);
    uint64_t pairs = atomic_load(&h->clock_pairs);
    CHECK(pairs >= 3 && pairs < 12);
    for (uint64_t i = 0; i < pairs; i++) {
        CHECK_EQ(atomic_load(&h->pairs[i].number), i + 1);
        CHECK(atomic_load(&h->pairs[i].width) < 1000000);
        CHECK(i == 0 || atomic_load(&h->pairs[i].raw) > atomic_load(&h->pairs[i - 1].raw));
        CHECK(atomic_load(&h->pairs[i].realtime) > 1600000000ull * 1000000000);
    }
}

static const lockstep_word *last_record(struct lockstep_ring *r)
{
    uint64_t lane = lockstep_lane_of_thread - 1, head = atomic_load(&r->lanes[lane].head);
    CHECK(head > 0);
    return r->records + (lane * r->capacity + ((head - 1) & (r->capacity - 1))) * LOCKSTEP_WORDS;
}

static void steps_are_marked(void)
{
    struct lockstep_ring *r = process_ring();
    uint64_t before = lockstep_now();
    lockstep_step_begin(41);
    const lockstep_word *w = last_record(r);
    CHECK_EQ(w[1], LOCKSTEP_STEP | LOCKSTEP_LEVEL_SUMMARY << 8);
    CHECK_EQ(w[2], 41);
    CHECK(w[3] >= before && w[3] <= lockstep_now());
    CHECK_EQ(w[4], gettid());
    CHECK_EQ(atomic_load(&r->header->step), 41);
}

static bool soon_locked(void)
{
    for (int i = 0; i < 50 && in_child(is_locked, NULL) != 1; i++) {
        usleep(100 * 1000);
    }
    return in_child(is_locked, NULL) == 1;
}

// Closing any descriptor of a file gives up all locks of the process on it.
static void lock_is_taken_again(void)
{
    process_ring();
    char path[600];
    find_ring(path, sizeof path);
    CHECK_EQ(in_child(is_locked, NULL), 1);
    close(open(path, O_RDONLY));
    CHECK(soon_locked());
}

// A program may close everything, its own input and output, too. What it opens
// next must not be the ring.
static void lock_stays_above_stdio(void)
{
    process_ring();
    int report = fcntl(2, F_DUPFD_CLOEXEC, 900);
    for (int fd = 0; fd < 900; fd++) {
        close(fd);
    }
    bool again = soon_locked();
    bool free = fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
    dup2(report, 2);
    CHECK(again);
    CHECK(free);
}

static const struct test_case cases[] = {
    {"there_is_one", there_is_one},
    {"there_is_one_for_all_threads", there_is_one_for_all_threads},
    {"disabled", disabled},
    {"no_directory", no_directory},
    {"debug_speaks_once", debug_speaks_once},
    {"forked_child_is_silent", forked_child_is_silent},
    {"forked_child_keeps_what_others_mapped", forked_child_keeps_what_others_mapped},
    {"child_of_a_process_without_a_ring_has_one", child_of_a_process_without_a_ring_has_one},
    {"exit_closes", exit_closes},
    {"exit_does_not_wait_for_a_tick", exit_does_not_wait_for_a_tick},
    {"quit_leaves_it_live", quit_leaves_it_live},
    {"kill_leaves_it_live", kill_leaves_it_live},
    {"heart_beats", heart_beats},
    {"four_share_the_tick", four_share_the_tick},
    {"lock_is_taken_again", lock_is_taken_again},
    {"lock_stays_above_stdio", lock_stays_above_stdio},
    {"steps_are_marked", steps_are_marked},
};

TEST_MAIN(cases)
