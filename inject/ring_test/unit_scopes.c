// SPDX-License-Identifier: Apache-2.0

// Tests of what a program says of itself: scopes, links, names and collectives.
#include "lockstep.h"
#include "ring_internal.h"
#include "test.h"

// Lanes so large that the rate of scopes is no limit, unless a case sets others.
static struct lockstep_ring *ring_of(const char *lanes, const char *records)
{
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_LANES", lanes, 1);
    setenv("LOCKSTEP_RING_RECORDS", records, 1);
    setenv("LOCKSTEP_RING_SLOTS", "16", 0); // unless the case has set others
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL) {
        fprintf(stderr, "%s\n", lockstep_ring_status());
        exit(1);
    }
    return r;
}

static struct lockstep_ring *process_ring(void) { return ring_of("6", "65536"); }

static uint64_t lane_of_mine(void) { return lockstep_lane_of_thread - 1; }
static uint64_t head_of_mine(struct lockstep_ring *r) { return atomic_load(&r->lanes[lane_of_mine()].head); }

static const lockstep_word *last_record(struct lockstep_ring *r)
{
    uint64_t head = head_of_mine(r);
    CHECK(head > 0);
    return slot_at(r, lane_of_mine(), head - 1);
}

static uint64_t shown(struct lockstep_ring *r) { return atomic_load(&r->lanes[lane_of_mine()].scope); }

static const char *name_of(struct lockstep_ring *r, uint64_t code) { return r->strings[code].text; }

static uint16_t named(struct lockstep_ring *r, const char *text)
{
    return lockstep_name_add(r, LOCKSTEP_N_SCOPE, text, strlen(text));
}

static void a_scope_has_a_record(void)
{
    struct lockstep_ring *r = process_ring();
    uint64_t before = lockstep_now();
    uint64_t outside = lockstep_scope_begin("train", LOCKSTEP_PHASE_TRAIN);
    lockstep_step_begin(7);
    uint64_t inside = lockstep_scope_begin("forward", 99); // no such phase
    CHECK(outside != 0 && inside != 0 && inside != outside);
    lockstep_scope_end(inside);
    const lockstep_word *w = last_record(r);
    uint16_t forward = lockstep_intern(r, "forward");
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_SCOPE, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0)); // its name is in word 5
    CHECK(w[2] >= before && w[3] >= w[2] && w[3] <= lockstep_now());
    CHECK_EQ(w[4], lockstep_pair(7, (uint32_t)gettid()));
    CHECK_EQ(w[5], lockstep_pair(forward, 1));
    lockstep_scope_end(outside);
    w = last_record(r);
    CHECK_EQ(w[4], lockstep_pair(LOCKSTEP_NO_STEP, (uint32_t)gettid()));
    CHECK_EQ(w[5], lockstep_pair(named(r, "train"), LOCKSTEP_PHASE_TRAIN << 16));
    CHECK_EQ(atomic_load(&r->header->witnesses), LOCKSTEP_W_SCOPES);
    CHECK(lockstep_scope_begin(NULL, 0) != 0);
}


static uint64_t records_in(struct lockstep_ring *r)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < r->nlanes; i++) {
        n += atomic_load(&r->lanes[i].head);
    }
    return n;
}

static void ends_of_nothing_are_counted(void)
{
    struct lockstep_ring *r = process_ring();
    uint64_t s = lockstep_scope_begin("x", 0);
    lockstep_scope_end(s);
    uint64_t head = head_of_mine(r);
    lockstep_scope_end(s);             // twice
    lockstep_scope_end(UINT64_MAX);    // garbage
    lockstep_scope_end(1 << 16 | 900); // never begun
    lockstep_scope_end(2 << 16 | 1);   // a generation that is not open
    lockstep_scope_pop(lockstep_scope_name("y"));
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 5);
    lockstep_scope_end(0); // what begin returns for a scope that is not recorded
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 5);
    CHECK_EQ(head_of_mine(r), head);
}

static void check_scope(struct lockstep_ring *r, const lockstep_word *w, const char *name, uint32_t depth, uint32_t phase)
{
    CHECK_EQ(w[1] & 0xffff, LOCKSTEP_SCOPE | LOCKSTEP_LEVEL_SUMMARY << 8);
    CHECK(strcmp(name_of(r, (uint32_t)w[5]), name) == 0);
    CHECK_EQ(w[5] >> 32, depth | phase << 16);
}

static void check_shown(struct lockstep_ring *r, const char *name, uint32_t depth, uint32_t phase)
{
    CHECK_EQ(shown(r), lockstep_pair(named(r, name), depth | phase << 16));
    CHECK(atomic_load(&r->lanes[lane_of_mine()].scope_at) != 0);
}

static void pushes_nest(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t forward = lockstep_scope_name("forward"), layer = lockstep_scope_name("layer");
    CHECK(forward != 0 && layer != 0 && forward != layer);
    lockstep_scope_push(forward | LOCKSTEP_PHASE_TRAIN << 16);
    check_shown(r, "forward", 0, LOCKSTEP_PHASE_TRAIN);
    lockstep_scope_push(layer | 77u << 16); // no such phase
    check_shown(r, "layer", 1, 0);
    uint64_t began = atomic_load(&r->lanes[lane_of_mine()].scope_at);
    lockstep_scope_pop(layer);
    check_scope(r, last_record(r), "layer", 1, 0);
    CHECK_EQ(last_record(r)[2], began);
    check_shown(r, "forward", 0, LOCKSTEP_PHASE_TRAIN);
    lockstep_scope_pop(forward); // the phase is no part of the name
    check_scope(r, last_record(r), "forward", 0, LOCKSTEP_PHASE_TRAIN);
    CHECK_EQ(shown(r), 0);
    CHECK_EQ(head_of_mine(r), 2);
}

// A push belongs to the step in which it began, whatever began meanwhile.
static void a_push_keeps_its_step(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t name = lockstep_scope_name("forward");
    lockstep_scope_push(name);
    lockstep_step_begin(7);
    lockstep_scope_push(name);
    lockstep_step_begin(8);
    lockstep_scope_pop(name);
    CHECK_EQ(last_record(r)[4], lockstep_pair(7, (uint32_t)gettid()));
    lockstep_scope_pop(name);
    CHECK_EQ(last_record(r)[4], lockstep_pair(LOCKSTEP_NO_STEP, (uint32_t)gettid()));
}

// Two generators take turns: each ends its own.
static void pops_find_their_name(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t a = lockstep_scope_name("a"), b = lockstep_scope_name("b");
    lockstep_scope_push(a);
    uint64_t first = atomic_load(&r->lanes[lane_of_mine()].scope_at);
    lockstep_scope_push(b);
    lockstep_scope_push(a);
    lockstep_scope_pop(a); // the inner one
    check_scope(r, last_record(r), "a", 2, 0);
    lockstep_scope_pop(a); // the outer one, from under b
    check_scope(r, last_record(r), "a", 0, 0);
    CHECK_EQ(last_record(r)[2], first);
    check_shown(r, "b", 1, 0);
    lockstep_scope_pop(b);
    check_scope(r, last_record(r), "b", 1, 0);
    CHECK_EQ(shown(r), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 0);
}

static void of_too_many_the_outermost_is_given_up(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t name = lockstep_scope_name("recursion"), outer = lockstep_scope_name("outer");
    lockstep_scope_push(outer);
    for (int i = 0; i < 99; i++) {
        lockstep_scope_push(name);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 100 - 64);
    uint64_t s = lockstep_scope_begin("handle", 0);
    check_shown(r, "handle", 63, 0);
    lockstep_scope_end(s);
    check_scope(r, last_record(r), "handle", 63, 0);
    lockstep_scope_pop(outer); // given up: this must end nothing else
    CHECK_EQ(head_of_mine(r), 1);
    check_shown(r, "recursion", 63, 0);
    for (int i = 0; i < 99; i++) {
        lockstep_scope_pop(name);
    }
    CHECK_EQ(head_of_mine(r), 1 + 63);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 100 - 63);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 100 - 63);
    CHECK_EQ(shown(r), 0);
}

// What never ends must not keep its thread from telling of all that comes after.
static void pushes_that_never_end_give_way(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t leak = lockstep_scope_name("leak"), name = lockstep_scope_name("forward");
    for (int i = 0; i < 200; i++) {
        lockstep_scope_push(leak);
    }
    for (int i = 0; i < 1000; i++) {
        lockstep_scope_push(name);
        CHECK_EQ((uint32_t)shown(r), name);
        lockstep_scope_pop(name);
        CHECK_EQ((uint32_t)shown(r), leak);
    }
    CHECK_EQ(head_of_mine(r), 1000);
    check_scope(r, last_record(r), "forward", 63, 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 200 - 63);
}

static void handles_that_never_end_give_way(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t name = lockstep_scope_name("forward");
    uint64_t first = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t s = lockstep_scope_begin("leak", 0);
        first = i == 0 ? s : first;
    }
    for (int i = 0; i < 1000; i++) {
        lockstep_scope_push(name);
        CHECK_EQ((uint32_t)shown(r), name);
        lockstep_scope_pop(name);
    }
    CHECK_EQ(head_of_mine(r), 1000);
    lockstep_scope_end(first); // has no place on the stack, but a record
    check_scope(r, last_record(r), "leak", 0, 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 0);
}

static void the_oldest_gives_way(void)
{
    struct lockstep_ring *r = process_ring();
    static uint64_t open[1034];
    for (int i = 0; i < 1034; i++) {
        open[i] = lockstep_scope_begin("x", 0);
        CHECK(open[i] != 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 10);
    for (int i = 0; i < 1034; i++) {
        lockstep_scope_end(open[i]);
        CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), i < 10 ? i + 1 : 10);
    }
    CHECK_EQ(head_of_mine(r), 1024);
    CHECK_EQ(shown(r), 0);
}

static void *leave_open(void *lane)
{
    struct lockstep_ring *r = lockstep_ring_process();
    CHECK(lockstep_scope_begin("handle", 0) != 0);
    lockstep_scope_push(lockstep_scope_name("left open"));
    lockstep_scope_push(lockstep_scope_name("left open"));
    CHECK(shown(r) != 0);
    *(uint64_t *)lane = lane_of_mine();
    return NULL;
}

static void what_a_thread_leaves_is_given_up(void)
{
    struct lockstep_ring *r = process_ring();
    uint64_t mine = lockstep_scope_begin("mine", 0), lane;
    lockstep_scope_push(lockstep_scope_name("mine"));
    pthread_t t;
    for (int i = 0; i < 1100; i++) { // more than there are places
        CHECK(pthread_create(&t, NULL, leave_open, &lane) == 0 && pthread_join(t, NULL) == 0);
        CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 3 * (i + 1));
    }
    CHECK_EQ(atomic_load(&r->lanes[lane].owner), 0);
    CHECK_EQ(atomic_load(&r->lanes[lane].scope), 0);
    CHECK_EQ(atomic_load(&r->lanes[lane].scope_at), 0);
    lockstep_scope_pop(lockstep_scope_name("mine"));
    lockstep_scope_end(mine);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 0);
    CHECK_EQ(head_of_mine(r), 2);
}

static pthread_barrier_t turn;

struct loan {
    uint64_t handle, lane;
    uint32_t tid;
};

static void *begin_for_another(void *arg)
{
    struct loan *l = arg;
    struct lockstep_ring *r = lockstep_ring_process();
    l->tid = (uint32_t)gettid();
    lockstep_scope_push(lockstep_scope_name("outside"));
    l->handle = lockstep_scope_begin("lent", 0);
    l->lane = lane_of_mine();
    check_shown(r, "lent", 1, 0);
    pthread_barrier_wait(&turn); // the other ends it
    pthread_barrier_wait(&turn);
    CHECK_EQ(shown(r), 0);
    lockstep_scope_push(lockstep_scope_name("inside"));
    check_shown(r, "inside", 1, 0); // what the other ended is no part of the stack
    lockstep_scope_pop(lockstep_scope_name("inside"));
    check_shown(r, "outside", 0, 0);
    lockstep_scope_pop(lockstep_scope_name("outside"));
    return NULL;
}

static void a_scope_may_end_on_another_thread(void)
{
    struct lockstep_ring *r = process_ring();
    struct loan l;
    pthread_t t;
    CHECK(pthread_barrier_init(&turn, NULL, 2) == 0);
    CHECK(pthread_create(&t, NULL, begin_for_another, &l) == 0);
    pthread_barrier_wait(&turn);
    lockstep_scope_end(l.handle);
    CHECK(lane_of_mine() != l.lane);
    const lockstep_word *w = last_record(r);
    check_scope(r, w, "lent", 1, 0);
    CHECK_EQ(w[1] >> 16 & 0xffff, LOCKSTEP_S_ASYNC); // it nests in nothing
    CHECK_EQ(w[4] >> 32, l.tid);
    pthread_barrier_wait(&turn);
    pthread_join(t, NULL);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 0);
}

static int die_in_a_scope(void *unused)
{
    (void)unused;
    process_ring();
    lockstep_scope_push(lockstep_scope_name("forward") | LOCKSTEP_PHASE_TRAIN << 16);
    lockstep_scope_begin("stuck", 0);
    raise(SIGKILL);
    return 0;
}

static bool file_holds(const char *path, uint64_t offset, const void *want, size_t n)
{
    char got[64];
    int fd = open(path, O_RDONLY);
    bool same = fd >= 0 && pread(fd, got, n, (off_t)offset) == (ssize_t)n && memcmp(got, want, n) == 0;
    close(fd);
    return same;
}

static char only_file[600];

static int note_file(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)f;
    if (type == FTW_F) {
        snprintf(only_file, sizeof only_file, "%s", path);
    }
    return 0;
}

static void what_a_killed_process_was_in_can_be_read(void)
{
    CHECK_EQ(in_child(die_in_a_scope, NULL), 128 + SIGKILL);
    nftw(test_dir, note_file, 4, FTW_PHYS);
    struct lockstep_header h;
    int fd = open(only_file, O_RDONLY);
    CHECK(fd >= 0 && read(fd, &h, sizeof h) == sizeof h && close(fd) == 0);
    uint64_t lane = h.sections[LOCKSTEP_S_LANES - 1].offset + sizeof(struct lockstep_lane);
    uint32_t scope[2];
    fd = open(only_file, O_RDONLY);
    CHECK(pread(fd, scope, sizeof scope, (off_t)(lane + offsetof(struct lockstep_lane, scope))) == sizeof scope);
    CHECK(close(fd) == 0);
    CHECK_EQ(scope[1], 1);
    uint64_t text = h.sections[LOCKSTEP_S_STRINGS - 1].offset + scope[0] * sizeof(struct lockstep_string);
    CHECK(file_holds(only_file, text + offsetof(struct lockstep_string, text), "stuck", 6));
}

static int child_says_nothing(void *parents)
{
    (void)parents;
    uint32_t name = lockstep_scope_name("child");
    CHECK_EQ(name, 0);
    for (int i = 0; i < 100; i++) {
        lockstep_scope_push(1);
        lockstep_scope_pop(1);
        CHECK_EQ(lockstep_scope_begin("child", 0), 0);
        CHECK_EQ(lockstep_group_open(1, 2, 0, "child"), 0);
        CHECK_EQ(lockstep_collective_begin(1, "AllReduce", 1, -1, NULL), 0);
    }
    lockstep_scope_end(1 << 16 | 1);
    lockstep_collective_end(1 << 16 | 1);
    lockstep_link((const uint8_t *)"0123456789abcdef", (const uint8_t *)"01234567");
    return 0;
}

static void a_forked_child_says_nothing(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t name = lockstep_scope_name("parent");
    uint64_t s = lockstep_scope_begin("parent", 0);
    uint32_t group = lockstep_group_open(1, 2, 0, "parent");
    uint64_t op = lockstep_collective_begin(group, "AllReduce", 1, -1, NULL);
    lockstep_scope_push(name);
    CHECK_EQ(in_child(child_says_nothing, NULL), 0);
    check_shown(r, "parent", 1, 0);
    CHECK_EQ(records_in(r), 0);
    lockstep_scope_pop(name);
    lockstep_scope_end(s);
    lockstep_collective_end(op);
    CHECK_EQ(records_in(r), 3);
    for (int i = 0; i < LOCKSTEP_DROPS; i++) {
        CHECK_EQ(drops_of(r, i), 0);
    }
}

#define RATE_CAPACITY 64u
#define RATE_EACH_NS (2000000000ull / RATE_CAPACITY)
// What may be recorded in so long: half a second's worth ahead, and what was due.
static uint64_t rate_limit(uint64_t elapsed) { return 500000000 / RATE_EACH_NS + 1 + elapsed / RATE_EACH_NS + 1; }

static void a_flood_leaves_room_for_operations(void)
{
    struct lockstep_ring *r = ring_of("2", "64");
    uint64_t word[LOCKSTEP_WORDS] = {[1] = lockstep_head(LOCKSTEP_OP, 1, 0, 0, 0, 0)};
    uint32_t outer = lockstep_scope_name("outer"), inner = lockstep_scope_name("inner");
    uint64_t began = lockstep_now();
    lockstep_emit(r, word);
    for (int i = 0; i < 5000; i++) {
        lockstep_scope_push(outer);
        lockstep_scope_push(inner);
        check_shown(r, "inner", 1, 0); // shown, recorded or not
        lockstep_scope_pop(inner);
        lockstep_scope_pop(outer);
    }
    CHECK_EQ(lockstep_scope_begin("handle", 0), 0);
    uint64_t made = head_of_mine(r) - 1, most = rate_limit(lockstep_now() - began);
    CHECK(made >= 500000000 / RATE_EACH_NS && made <= most);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_RATE), 10001 - made);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 0);
    CHECK_EQ(shown(r), 0);
    if (most < RATE_CAPACITY) { // it took less than a second
        CHECK_EQ(slot_at(r, lane_of_mine(), 0)[0], 1);
    }
    uint64_t head = head_of_mine(r);
    for (int i = 0; i < 10000 && head_of_mine(r) == head; i++) {
        usleep(1000);
        lockstep_scope_push(outer);
        lockstep_scope_pop(outer);
    }
    CHECK(head_of_mine(r) > head); // again, as time goes by
}

static void *flood(void *unused)
{
    uint32_t name = lockstep_scope_name("flood");
    for (int i = 0; i < 2000; i++) {
        lockstep_scope_push(name);
        lockstep_scope_pop(name);
    }
    return unused;
}

static void flood_by(int threads)
{
    pthread_t t[8];
    for (int i = 0; i < threads; i++) {
        CHECK(pthread_create(&t[i], NULL, flood, NULL) == 0);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
    }
}

// The lane's room is shared by those who share the lane, at once or in turn.
static void the_rate_is_of_the_lane(void)
{
    struct lockstep_ring *r = ring_of("2", "64"); // the shared one, and that of this thread
    lockstep_step_begin(1);
    uint64_t began = lockstep_now();
    flood_by(4);
    uint64_t made = records_in(r) - 1;
    CHECK(made <= rate_limit(lockstep_now() - began));
    CHECK_EQ(made + drops_of(r, LOCKSTEP_D_SCOPES_RATE), 4 * 2000);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SHARED_LANE), made);
}

static void threads_in_turn_share_a_rate(void)
{
    struct lockstep_ring *r = ring_of("3", "64");
    lockstep_step_begin(1);
    uint64_t began = lockstep_now();
    for (int i = 0; i < 4; i++) {
        flood_by(1);
    }
    uint64_t made = atomic_load(&r->lanes[2].head);
    CHECK(made > 0 && made <= rate_limit(lockstep_now() - began));
    CHECK_EQ(made + drops_of(r, LOCKSTEP_D_SCOPES_RATE), 4 * 2000);
}

// Links are under the same rate, and steps are not: one left out would be no step.
static void links_have_a_rate_and_steps_have_none(void)
{
    struct lockstep_ring *r = ring_of("2", "64");
    uint8_t id[16] = {1};
    uint64_t began = lockstep_now();
    for (int i = 0; i < 5000; i++) {
        lockstep_link(id, id);
    }
    uint64_t made = head_of_mine(r);
    CHECK(made > 0 && made <= rate_limit(lockstep_now() - began));
    CHECK_EQ(made + drops_of(r, LOCKSTEP_D_SCOPES_RATE), 5000);
    for (int i = 0; i < 100; i++) {
        lockstep_step_begin(i);
        CHECK_EQ(last_record(r)[2], i);
    }
    CHECK_EQ(head_of_mine(r), made + 100);
}

#define LENT 16u // as many as the rate allows at once

static void *begin_and_lend(void *handles)
{
    uint64_t *h = handles;
    for (unsigned i = 0; i < LENT; i++) {
        h[i] = lockstep_scope_begin("lent", 0);
        CHECK(h[i] != 0);
    }
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    return NULL;
}

// A scope of another thread is written here, and uses up what this lane has.
static void scopes_of_others_are_under_the_rate(void)
{
    struct lockstep_ring *r = ring_of("4", "64");
    uint64_t handles[LENT], began = lockstep_now();
    pthread_t t;
    CHECK(pthread_barrier_init(&turn, NULL, 2) == 0);
    CHECK(pthread_create(&t, NULL, begin_and_lend, handles) == 0);
    pthread_barrier_wait(&turn);
    flood(NULL);
    uint64_t here = head_of_mine(r), left_out = drops_of(r, LOCKSTEP_D_SCOPES_RATE);
    for (unsigned i = 0; i < LENT; i++) {
        lockstep_scope_end(handles[i]);
    }
    CHECK(head_of_mine(r) <= rate_limit(lockstep_now() - began));
    CHECK_EQ(head_of_mine(r) - here + drops_of(r, LOCKSTEP_D_SCOPES_RATE) - left_out, LENT);
    pthread_barrier_wait(&turn);
    pthread_join(t, NULL);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 0);
}

static void *scopes_of_thread(void *unused)
{
    uint32_t name = lockstep_scope_name("named");
    for (int i = 0; i < 2000; i++) {
        uint64_t s = lockstep_scope_begin("thread", 0);
        lockstep_scope_push(name);
        CHECK(s != 0);
        lockstep_scope_end(s);
        lockstep_scope_pop(name);
    }
    return unused;
}

static void many_threads(void)
{
    struct lockstep_ring *r = process_ring();
    pthread_t t[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&t[i], NULL, scopes_of_thread, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    CHECK_EQ(records_in(r), 4 * 2 * 2000);
    for (int i = 0; i < LOCKSTEP_DROPS; i++) {
        CHECK_EQ(drops_of(r, i), 0);
    }
}

static void names_are_cut_between_characters(void)
{
    struct lockstep_ring *r = process_ring();
    char text[80];
    memset(text, 'x', sizeof text);
    memcpy(text + 53, "\xe2\x82\xac", 3); // its three bytes would be 53 to 55
    uint16_t code = lockstep_name_add(r, LOCKSTEP_N_SCOPE, text, sizeof text);
    CHECK_EQ(strlen(name_of(r, code)), 53);
    CHECK_EQ(lockstep_name_add(r, LOCKSTEP_N_SCOPE, text, 53), code);
    memset(text, 'y', sizeof text);
    CHECK_EQ(strlen(name_of(r, lockstep_name_add(r, LOCKSTEP_N_SCOPE, text, sizeof text))), 55);
    CHECK_EQ(strlen(name_of(r, lockstep_name_add(r, LOCKSTEP_N_SCOPE, "ab\0cd", 5))), 2); // a text ends there
    CHECK_EQ(lockstep_name_add(r, LOCKSTEP_N_SCOPE, NULL, 5), 0);
    CHECK_EQ(lockstep_name_add(r, LOCKSTEP_N_SCOPE, "", 0), 0);
    CHECK_EQ(named(r, "forward"), lockstep_intern(r, "forward"));
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 0);
}

static void names_have_a_share(void)
{
    struct lockstep_ring *r = process_ring();
    char text[64];
    for (int i = 0; i < 285; i++) {
        snprintf(text, sizeof text, "iteration %d of 9", i);
        CHECK(strcmp(name_of(r, named(r, text)), text) == 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 0);
    CHECK(strcmp(name_of(r, named(r, "iteration 300 of 9")), "iteration # of #") == 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 1);
    CHECK(strcmp(name_of(r, named(r, "iteration 17 of 9")), "iteration 17 of 9") == 0); // has its own
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 1);
    for (int i = 0; i < 94; i++) { // with the one above, the last quarter
        snprintf(text, sizeof text, "%c%c", 'a' + i % 26, 'a' + i / 26);
        CHECK(strcmp(name_of(r, named(r, text)), text) == 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 1);
    CHECK(strcmp(name_of(r, named(r, "none left")), "(other)") == 0);
    CHECK(strcmp(name_of(r, named(r, "none left 2")), "(other)") == 0);
    CHECK(strcmp(name_of(r, named(r, "iteration 4711 of 4")), "iteration # of #") == 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 4);
    CHECK(strcmp(name_of(r, named(r, "garbage_collection")), "garbage_collection") == 0); // those are for all
    CHECK(strcmp(name_of(r, lockstep_name_add(r, LOCKSTEP_N_KERNEL, "kernel 1", 8)), "kernel 1") == 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NAMES), 4);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STRINGS_FULL), 0);
}

// However many names of scopes and kernels there are, what comes after them is told
// apart in the 8 bits that a record has for functions.
static void functions_keep_their_codes(void)
{
    struct lockstep_ring *r = process_ring();
    char text[64];
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof text, "%c%ck", 'a' + i % 26, 'a' + i / 26);
        CHECK(lockstep_name_add(r, LOCKSTEP_N_SCOPE, text, 2) != 0);
        CHECK(lockstep_name_add(r, LOCKSTEP_N_KERNEL, text, 3) != 0);
    }
    CHECK(named(r, "aa") > 255);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STRINGS_FULL), 0);
    uint32_t g = lockstep_group_open(7, 2, 0, "gloo");
    uint64_t h = lockstep_collective_begin(g, "MyCollective", 1, -1, "MyType");
    CHECK(h != 0);
    lockstep_collective_end(h);
    CHECK(strcmp(name_of(r, last_record(r)[1] >> 48 & 0xff), "MyCollective") == 0);
    CHECK(strcmp(name_of(r, last_record(r)[1] >> 56), "MyType") == 0);
    for (int i = 0; i < 300; i++) { // more than 8 bits tell apart
        snprintf(text, sizeof text, "function %d", i);
        h = lockstep_collective_begin(g, text, 1, -1, text);
        lockstep_collective_end(h);
        if (h != 0) {
            CHECK(strcmp(name_of(r, last_record(r)[1] >> 48 & 0xff), text) == 0);
            CHECK_EQ(last_record(r)[1] >> 56, last_record(r)[1] >> 48 & 0xff);
        }
    }
    CHECK(h == 0 && drops_of(r, LOCKSTEP_D_STRINGS_FULL) > 0);
    CHECK(strcmp(name_of(r, named(r, "aa")), "aa") == 0);
}

static void *name_many(void *arg)
{
    struct lockstep_ring *r = lockstep_ring_process();
    uint16_t *codes = arg;
    char text[64];
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "name %d", i);
        pthread_barrier_wait(&turn); // all at once
        codes[i] = named(r, text);
    }
    return NULL;
}

static void threads_agree_on_names(void)
{
    struct lockstep_ring *r = process_ring();
    static uint16_t codes[4][200];
    pthread_t t[4];
    CHECK(pthread_barrier_init(&turn, NULL, 4) == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&t[i], NULL, name_many, codes[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        CHECK(memcmp(codes[i], codes[0], sizeof codes[0]) == 0);
    }
    CHECK(codes[0][0] != 0 && codes[0][0] != codes[0][1]);
    CHECK_EQ(private_of(r)->names_used[LOCKSTEP_N_SCOPE], 200); // each counts once
}

static void links_name_a_span(void)
{
    struct lockstep_ring *r = process_ring();
    uint8_t trace[16], span[8], none[16] = {0};
    for (uint8_t i = 0; i < 16; i++) {
        trace[i] = (uint8_t)(i + 1);
        span[i % 8] = (uint8_t)(0xa0 + i);
    }
    lockstep_link(trace, span);
    const lockstep_word *w = last_record(r);
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_LINK, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0));
    CHECK_EQ(w[2], -1ll);
    CHECK(memcmp((const char *)&w[3], trace, 16) == 0 && memcmp((const char *)&w[5], span, 8) == 0);
    CHECK(w[6] != 0 && w[6] <= lockstep_now());
    CHECK_EQ(w[7], gettid());
    lockstep_step_begin(41);
    lockstep_link(trace, span);
    CHECK_EQ(last_record(r)[2], 41);
    uint64_t head = head_of_mine(r);
    lockstep_link(none, span);
    lockstep_link(trace, none);
    lockstep_link(NULL, span);
    lockstep_link(trace, NULL);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_LINKS), 4);
    CHECK_EQ(head_of_mine(r), head);
}

static void resumes_say_what_was_loaded(void)
{
    struct lockstep_ring *r = process_ring();
    const char fits[] = "0123456789abcdef0123456789ABCDEF"; // 32 bytes
    const uint8_t digest[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    lockstep_resumed(41, 40, fits, digest, "dp 3");
    const lockstep_word *w = last_record(r);
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_RESUME, LOCKSTEP_LEVEL_SUMMARY, 0xf, 0, 0, 0));
    CHECK(w[2] == 41 && w[3] == 40 && w[4] != 0 && w[4] <= lockstep_now());
    CHECK_EQ(w[5], lockstep_pair((uint32_t)gettid(), 1));
    CHECK(memcmp((const char *)&w[6], digest, 16) == 0 && memcmp((const char *)&w[8], fits, 32) == 0);
    CHECK(memcmp((const char *)&w[12], "dp 3", 5) == 0);
    lockstep_resumed(0, -1, NULL, NULL, "");
    w = last_record(r);
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_RESUME, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0));
    CHECK_EQ(w[5], lockstep_pair((uint32_t)gettid(), 2));
    for (int i = 2; i < 16; i++) {
        CHECK(i == 4 || i == 5 || w[i] == 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_RESUMES), 0);
    lockstep_resumed(7, 7, "0123456789abcdef0123456789ABCDEF0", digest, NULL); // what was cut would agree with others
    CHECK_EQ(last_record(r)[1], lockstep_head(LOCKSTEP_RESUME, LOCKSTEP_LEVEL_SUMMARY, 3, 0, 0, 0));
    CHECK_EQ(last_record(r)[8], 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_RESUMES), 1);
    uint64_t head = head_of_mine(r);
    lockstep_resumed(-1, 7, NULL, NULL, NULL);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_RESUMES), 2);
    CHECK_EQ(head_of_mine(r), head);
}

// The n-th load of a rank is compared with the n-th of others: one that is left out has its number.
static void resumes_that_are_left_out_count(void)
{
    struct lockstep_ring *r = ring_of("2", "64");
    uint32_t tid = (uint32_t)gettid();
    uint64_t calls = 1, each = lockstep_pair(tid, 1) - lockstep_pair(tid, 0);
    lockstep_resumed(7, -1, NULL, NULL, NULL);
    uint64_t first = last_record(r)[5];
    for (; drops_of(r, LOCKSTEP_D_SCOPES_RATE) == 0 && calls < 100000; calls++) {
        lockstep_resumed(7, -1, NULL, NULL, NULL);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_RATE), 1);
    uint64_t head = head_of_mine(r);
    for (int i = 0; i < 10000 && head_of_mine(r) == head; i++, calls++) {
        usleep(1000);
        lockstep_resumed(8, -1, NULL, NULL, NULL);
    }
    CHECK(head_of_mine(r) > head);
    CHECK_EQ(last_record(r)[5] - first, (calls - 1) * each);
}

static void fingerprints_have_a_group(void)
{
    struct lockstep_ring *r = process_ring();
    lockstep_fingerprint(300, 0xfedcba9876543210u, 1000, 5000, "dp 3", 8);
    const lockstep_word *w = last_record(r);
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_FINGERPRINT, LOCKSTEP_LEVEL_SUMMARY, 0, 0, 0, 0));
    CHECK(w[2] == 300 && w[3] == 0xfedcba9876543210u && w[4] != 0 && w[4] <= lockstep_now());
    CHECK_EQ(w[5], lockstep_pair((uint32_t)gettid(), 8));
    CHECK(w[6] == 1000 && w[7] == 5000 && memcmp((const char *)&w[8], "dp 3", 5) == 0);
    uint64_t head = head_of_mine(r);
    lockstep_fingerprint(300, 1, 0, 0, NULL, 8);
    lockstep_fingerprint(300, 1, 0, 0, "", 8);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_RESUMES), 0);
    lockstep_fingerprint(300, 1, 0, 0, "0123456789abcdef0123456789ABCDEF0", 8);
    lockstep_fingerprint(-1, 1, 0, 0, "dp 3", 8);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_RESUMES), 2);
    CHECK_EQ(head_of_mine(r), head);
}

static void collectives_are_followed(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t g = lockstep_group_open(0xabcdef, 4, 2, "gloo");
    CHECK(g != 0);
    CHECK_EQ(atomic_load(&r->header->witnesses), LOCKSTEP_W_PROGRAM);
    const struct lockstep_comm *c = &r->comms[g];
    CHECK(c->hash == 0xabcdef && c->nranks == 4 && c->rank == 2 && strcmp(c->name, "gloo") == 0);
    lockstep_step_begin(3);
    uint64_t before = lockstep_now();
    uint64_t a = lockstep_collective_begin(g, "AllReduce", 4096, -1, "ncclFloat32");
    uint64_t b = lockstep_collective_begin(g, "AllReduce", 8192, -1, "ncclFloat32");
    uint64_t c0 = lockstep_collective_begin(g, "Broadcast", 12, 3, NULL);
    CHECK(a != 0 && b != 0 && c0 != 0);
    struct lockstep_slot *s = lockstep_slot_of(r, b); // what a hung process shows
    CHECK(s != NULL && (s->word[0] & 0xff) == LOCKSTEP_SLOT_STARTED);
    CHECK_EQ(s->word[3], 1);
    CHECK_EQ(s->order, 2);
    uint8_t all_reduce = (uint8_t)lockstep_intern(r, "AllReduce"), type = (uint8_t)lockstep_intern(r, "ncclFloat32");
    struct lockstep_frontier *f = lockstep_frontier_of(r, (uint16_t)g, all_reduce);
    CHECK(f->enqueued == 2 && f->started == 2 && f->completed == 0 && f->open == 2 && f->total == 2);
    lockstep_collective_end(b); // not in the order in which they began
    const lockstep_word *w = last_record(r);
    CHECK_EQ(w[1], lockstep_head(LOCKSTEP_OP, LOCKSTEP_LEVEL_SUMMARY, 0, g, all_reduce, type));
    CHECK_EQ(w[2], b);
    CHECK_EQ(w[3], 1);
    CHECK_EQ(w[4], 8192);
    CHECK_EQ((int32_t)w[5], -1);
    CHECK(w[6] >= before && w[11] >= w[6] && w[11] <= lockstep_now());
    CHECK_EQ(w[7], lockstep_pair(0, 3));
    CHECK(w[8] == 0 && w[9] == 0 && w[12] == 0 && w[14] == 0 && w[15] == 0);
    CHECK_EQ((int32_t)(w[10] >> 32), -1);
    lockstep_collective_end(a);
    CHECK(f->completed == 2 && f->open == 0);
    lockstep_collective_end(c0);
    CHECK_EQ(last_record(r)[3], 0); // each function counts for itself
    CHECK_EQ((int32_t)last_record(r)[5], 3);
    CHECK(lockstep_slot_of(r, a) == NULL && lockstep_slot_of(r, b) == NULL);
    CHECK_EQ(lockstep_collective_begin(g, "AllReduce", 1, -1, NULL) != 0, 1);
    CHECK_EQ(f->enqueued, 3);
}

static void collectives_that_cannot_be(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t g = lockstep_group_open(1, 2, 5, NULL); // no such rank
    CHECK_EQ(r->comms[g].rank, LOCKSTEP_NONE);
    uint16_t nccls = lockstep_comm_add(r, 2, 2, 0, 1, 5, 0, "not the program's");
    struct lockstep_slot *s;
    uint64_t foreign = lockstep_slot_claim(r, &s);
    lockstep_slot_state(s, foreign, LOCKSTEP_SLOT_ENQUEUED);
    CHECK_EQ(lockstep_collective_begin(0, "AllReduce", 1, -1, NULL), 0);
    CHECK_EQ(lockstep_collective_begin(nccls, "AllReduce", 1, -1, NULL), 0);
    CHECK_EQ(lockstep_collective_begin(UINT32_MAX, "AllReduce", 1, -1, NULL), 0);
    lockstep_collective_end(foreign); // an operation of NCCL's
    lockstep_collective_end(UINT64_MAX);
    lockstep_collective_end(1 << 16); // no slot
    lockstep_group_close(nccls);
    lockstep_group_close(UINT32_MAX);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STALE_HANDLE), 7);
    CHECK_EQ(lockstep_collective_begin(g, NULL, 1, -1, NULL), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_NULL_ARGS), 1);
    CHECK(lockstep_slot_of(r, foreign) == s);
    uint64_t a = lockstep_collective_begin(g, "AllReduce", 1, -1, NULL);
    lockstep_collective_end(a);
    lockstep_collective_end(a);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STALE_HANDLE), 8);
    CHECK_EQ(records_in(r), 1);
}

// What is open when its group is closed was not seen to complete.
static void a_closed_group_is_over(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t g = lockstep_group_open(1, 2, 0, "a"), other = lockstep_group_open(2, 2, 0, "b");
    uint64_t open = lockstep_collective_begin(g, "AllReduce", 1, -1, NULL);
    uint64_t others = lockstep_collective_begin(other, "AllReduce", 1, -1, NULL);
    lockstep_group_close(g);
    CHECK_EQ(last_record(r)[2], open);
    CHECK_EQ(last_record(r)[11], 0);
    struct lockstep_frontier *f = lockstep_frontier_of(r, (uint16_t)g, (uint8_t)lockstep_intern(r, "AllReduce"));
    CHECK(f->open == 0 && f->completed == 0);
    CHECK_EQ(atomic_load(&r->comms[g].state), LOCKSTEP_E_ENDED);
    lockstep_collective_end(open);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STALE_HANDLE), 1);
    CHECK_EQ(lockstep_collective_begin(g, "AllReduce", 1, -1, NULL), 0);
    lockstep_group_close(g);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_FINALIZED), 2);
    lockstep_collective_end(others);
    CHECK(last_record(r)[11] != 0);
}

// Numbers go on where there is no slot: other ranks count what this one does.
static void without_a_slot_numbers_go_on(void)
{
    struct lockstep_ring *r = process_ring(); // of 16 slots
    uint32_t g = lockstep_group_open(1, 2, 0, "a");
    uint64_t first = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t h = lockstep_collective_begin(g, "AllReduce", 1, -1, NULL);
        CHECK_EQ(h != 0, i < 8); // half are NCCL's
        first = i == 0 ? h : first;
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SLOTS_FULL), 12);
    lockstep_collective_end(first);
    uint64_t h = lockstep_collective_begin(g, "AllReduce", 1, -1, NULL);
    CHECK_EQ(lockstep_slot_of(r, h)->word[3], 20);
}

// Programs that forget to end theirs leave NCCL its slots and communicators.
static void collectives_have_a_share(void)
{
    struct lockstep_ring *r = process_ring(); // of 16 slots
    uint32_t g = lockstep_group_open(1, 2, 0, "leaks");
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(lockstep_collective_begin(g, "AllReduce", 1, -1, NULL) != 0, i < 8);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SLOTS_FULL), 92);
    uint64_t nccl[8];
    for (int i = 0; i < 8; i++) {
        struct lockstep_slot *s;
        nccl[i] = lockstep_slot_claim(r, &s);
        CHECK(nccl[i] != 0);
    }
    lockstep_group_close(g); // gives them back
    CHECK_EQ(records_in(r), 8);
    uint32_t other = lockstep_group_open(2, 2, 0, "other");
    for (int i = 0; i < 8; i++) {
        CHECK(lockstep_collective_begin(other, "AllReduce", 1, -1, NULL) != 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SLOTS_FULL), 92);
}

// Where NCCL has all, a failed try takes nothing of the share.
static void a_share_is_not_used_up_by_failures(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t g = lockstep_group_open(1, 2, 0, "a");
    uint64_t nccl[16];
    struct lockstep_slot *s[16];
    for (int i = 0; i < 16; i++) {
        nccl[i] = lockstep_slot_claim(r, &s[i]);
        lockstep_slot_state(s[i], nccl[i], LOCKSTEP_SLOT_ENQUEUED);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(lockstep_collective_begin(g, "AllReduce", 1, -1, NULL), 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SLOTS_FULL), 20);
    CHECK(lockstep_slot_ending(s[3], nccl[3]));
    lockstep_slot_free(r, s[3], nccl[3]);
    CHECK(lockstep_collective_begin(g, "AllReduce", 1, -1, NULL) != 0);
}

static void groups_have_a_share(void)
{
    struct lockstep_ring *r = process_ring();
    for (int i = 0; i < 2000; i++) {
        uint32_t g = lockstep_group_open(7, 2, 0, "again and again");
        CHECK_EQ(g != 0, i < 128);
        if (g != 0) {
            lockstep_group_close(g);
        }
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_COMMS_FULL), 2000 - 128);
    CHECK(lockstep_comm_add(r, 9, 2, 0, 1, 7, 0, "NCCL's") != 0);
}

static void *run_until_closed(void *arg)
{
    uint32_t g = *(uint32_t *)arg;
    while (lockstep_collective_begin(g, "AllReduce", 1, -1, NULL) != 0) {
    }
    return NULL;
}

// Whoever begins one while another closes the group: it does not stay open.
static void nothing_is_left_in_a_closed_group(void)
{
    setenv("LOCKSTEP_RING_SLOTS", "4096", 1);
    struct lockstep_ring *r = process_ring();
    pthread_t t;
    for (uint64_t i = 0; i < 128; i++) {
        uint32_t g = lockstep_group_open(1, 2, 0, "a");
        struct lockstep_frontier *f = lockstep_frontier_of(r, (uint16_t)g, (uint8_t)lockstep_intern(r, "AllReduce"));
        CHECK(pthread_create(&t, NULL, run_until_closed, &g) == 0);
        while (atomic_load(&f->total) < 100 + i) { // amid its work
        }
        lockstep_group_close(g);
        pthread_join(t, NULL);
        CHECK_EQ(f->open, 0);
    }
}

static void *run_collectives(void *arg)
{
    uint32_t g = *(uint32_t *)arg;
    for (int i = 0; i < 1000; i++) {
        uint64_t h = lockstep_collective_begin(g, "AllReduce", 1, -1, NULL);
        CHECK(h != 0);
        lockstep_collective_end(h);
    }
    return NULL;
}

static void collectives_of_many_threads(void)
{
    struct lockstep_ring *r = process_ring();
    uint32_t g = lockstep_group_open(1, 2, 0, "a");
    pthread_t t[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&t[i], NULL, run_collectives, &g) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    struct lockstep_frontier *f = lockstep_frontier_of(r, (uint16_t)g, (uint8_t)lockstep_intern(r, "AllReduce"));
    CHECK(f->open == 0 && f->completed == 4000 && f->total == 4000);
    CHECK_EQ(records_in(r), 4000);
}

static void the_status_tells_of_cupti(void)
{
    CHECK_EQ(lockstep_abi(), 3);
    struct lockstep_ring *r = process_ring();
    CHECK(strcmp(lockstep_status(), lockstep_ring_status()) == 0);
    atomic_store(&r->header->cupti, LOCKSTEP_CUPTI_ACTIVE);
    CHECK_HAS(lockstep_status(), test_dir);
    CHECK_HAS(lockstep_status(), "; CUPTI: active");
    atomic_store(&r->header->cupti, lockstep_pair(LOCKSTEP_CUPTI_YIELDED, 39));
    CHECK_HAS(lockstep_status(), "; CUPTI: left to another client (result 39)");
    atomic_store(&r->header->cupti, 4711);
    CHECK_HAS(lockstep_status(), "; CUPTI: in an unknown state");
}

static void without_a_ring_nothing_happens(void)
{
    setenv("LOCKSTEP_DISABLE", "1", 1);
    CHECK_EQ(child_says_nothing(NULL), 0);
    CHECK_HAS(lockstep_status(), "LOCKSTEP_DISABLE");
}

static const struct test_case cases[] = {
    {"a_scope_has_a_record", a_scope_has_a_record},
    {"ends_of_nothing_are_counted", ends_of_nothing_are_counted},
    {"pushes_nest", pushes_nest},
    {"a_push_keeps_its_step", a_push_keeps_its_step},
    {"pops_find_their_name", pops_find_their_name},
    {"of_too_many_the_outermost_is_given_up", of_too_many_the_outermost_is_given_up},
    {"pushes_that_never_end_give_way", pushes_that_never_end_give_way},
    {"handles_that_never_end_give_way", handles_that_never_end_give_way},
    {"the_oldest_gives_way", the_oldest_gives_way},
    {"what_a_thread_leaves_is_given_up", what_a_thread_leaves_is_given_up},
    {"a_scope_may_end_on_another_thread", a_scope_may_end_on_another_thread},
    {"what_a_killed_process_was_in_can_be_read", what_a_killed_process_was_in_can_be_read},
    {"a_forked_child_says_nothing", a_forked_child_says_nothing},
    {"a_flood_leaves_room_for_operations", a_flood_leaves_room_for_operations},
    {"the_rate_is_of_the_lane", the_rate_is_of_the_lane},
    {"links_have_a_rate_and_steps_have_none", links_have_a_rate_and_steps_have_none},
    {"scopes_of_others_are_under_the_rate", scopes_of_others_are_under_the_rate},
    {"threads_in_turn_share_a_rate", threads_in_turn_share_a_rate},
    {"many_threads", many_threads},
    {"names_are_cut_between_characters", names_are_cut_between_characters},
    {"names_have_a_share", names_have_a_share},
    {"functions_keep_their_codes", functions_keep_their_codes},
    {"threads_agree_on_names", threads_agree_on_names},
    {"links_name_a_span", links_name_a_span},
    {"resumes_say_what_was_loaded", resumes_say_what_was_loaded},
    {"resumes_that_are_left_out_count", resumes_that_are_left_out_count},
    {"fingerprints_have_a_group", fingerprints_have_a_group},
    {"collectives_are_followed", collectives_are_followed},
    {"collectives_that_cannot_be", collectives_that_cannot_be},
    {"a_closed_group_is_over", a_closed_group_is_over},
    {"without_a_slot_numbers_go_on", without_a_slot_numbers_go_on},
    {"collectives_have_a_share", collectives_have_a_share},
    {"a_share_is_not_used_up_by_failures", a_share_is_not_used_up_by_failures},
    {"groups_have_a_share", groups_have_a_share},
    {"nothing_is_left_in_a_closed_group", nothing_is_left_in_a_closed_group},
    {"collectives_of_many_threads", collectives_of_many_threads},
    {"the_status_tells_of_cupti", the_status_tells_of_cupti},
    {"without_a_ring_nothing_happens", without_a_ring_nothing_happens},
};

TEST_MAIN(cases)
