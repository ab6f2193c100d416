// SPDX-License-Identifier: Apache-2.0

// Tests of NVTX ranges, with a client of our own in place of NVTX's header: tables
// of places as that has them, and calls through what was put there.
#include "scope/nvtx.h"
#include "test.h"

#define PLACES 17 // of one module: number 0 is none, and there is an end

static nvtx_function core[PLACES], core2[PLACES];
static nvtx_function *core_places[PLACES], *core2_places[PLACES];
static unsigned core_count, core2_count;
static unsigned asked_for_others;

static void untouched(void) {}

static int module_of(uint32_t module, nvtx_function ***places, unsigned *count)
{
    switch (module) {
    case NVTX_MODULE_CORE:
        *places = core_places;
        *count = core_count;
        return 1;
    case NVTX_MODULE_CORE2:
        *places = core2_places;
        *count = core2_count;
        return core2_count != 0;
    default:
        asked_for_others++;
        return 0;
    }
}

static struct nvtx_callbacks callbacks = {sizeof callbacks, module_of};

static const void *export_table(uint32_t id) { return id == NVTX_TABLE_CALLBACKS ? &callbacks : NULL; }
static const void *no_table(uint32_t id) { return id == 0 ? &callbacks : NULL; }

static void fill_tables(unsigned n_core, unsigned n_core2)
{
    core_count = n_core;
    core2_count = n_core2;
    for (int i = 1; i < PLACES - 1; i++) {
        core[i] = core2[i] = untouched;
        core_places[i] = &core[i];
        core2_places[i] = &core2[i];
    }
}

static struct lockstep_ring *process_ring(void)
{
    setenv("LOCKSTEP_DIR", test_dir, 1);
    setenv("LOCKSTEP_RING_LANES", "6", 1);
    setenv("LOCKSTEP_RING_RECORDS", "65536", 1);
    struct lockstep_ring *r = lockstep_ring_process();
    CHECK(r != NULL);
    return r;
}

static struct lockstep_ring *injected(void)
{
    struct lockstep_ring *r = process_ring();
    fill_tables(16, 16);
    CHECK_EQ(InitializeInjectionNvtx2(export_table), 1);
    return r;
}

static int push_a(const char *m) { return ((int (*)(const char *))core[NVTX_RANGE_PUSH_A])(m); }
static int push_w(const wchar_t *m) { return ((int (*)(const wchar_t *))core[NVTX_RANGE_PUSH_W])(m); }
static int push_ex(const struct nvtx_event *e) { return ((int (*)(const struct nvtx_event *))core[NVTX_RANGE_PUSH_EX])(e); }
static int pop(void) { return ((int (*)(void))core[NVTX_RANGE_POP])(); }
static uint64_t start_a(const char *m) { return ((uint64_t(*)(const char *))core[NVTX_RANGE_START_A])(m); }
static uint64_t start_w(const wchar_t *m) { return ((uint64_t(*)(const wchar_t *))core[NVTX_RANGE_START_W])(m); }
static uint64_t start_ex(const struct nvtx_event *e)
{
    return ((uint64_t(*)(const struct nvtx_event *))core[NVTX_RANGE_START_EX])(e);
}
static void end(uint64_t id) { ((void (*)(uint64_t))core[NVTX_RANGE_END])(id); }
static uint64_t domain_a(const char *n) { return ((uint64_t(*)(const char *))core2[NVTX_DOMAIN_CREATE_A])(n); }
static uint64_t domain_w(const wchar_t *n) { return ((uint64_t(*)(const wchar_t *))core2[NVTX_DOMAIN_CREATE_W])(n); }
static uint64_t string_a(uint64_t d, const char *s)
{
    return ((uint64_t(*)(uint64_t, const char *))core2[NVTX_DOMAIN_REGISTER_STRING_A])(d, s);
}
static uint64_t string_w(uint64_t d, const wchar_t *s)
{
    return ((uint64_t(*)(uint64_t, const wchar_t *))core2[NVTX_DOMAIN_REGISTER_STRING_W])(d, s);
}
static int domain_push(uint64_t d, const struct nvtx_event *e)
{
    return ((int (*)(uint64_t, const struct nvtx_event *))core2[NVTX_DOMAIN_RANGE_PUSH_EX])(d, e);
}
static int domain_pop(uint64_t d) { return ((int (*)(uint64_t))core2[NVTX_DOMAIN_RANGE_POP])(d); }
static uint64_t domain_start(uint64_t d, const struct nvtx_event *e)
{
    return ((uint64_t(*)(uint64_t, const struct nvtx_event *))core2[NVTX_DOMAIN_RANGE_START_EX])(d, e);
}
static void domain_end(uint64_t d, uint64_t id)
{
    ((void (*)(uint64_t, uint64_t))core2[NVTX_DOMAIN_RANGE_END])(d, id);
}

static struct nvtx_event ascii(const char *message)
{
    struct nvtx_event e = {.version = 3, .size = sizeof e, .message_type = NVTX_MESSAGE_ASCII};
    e.category = 7;
    e.message.ascii = message;
    return e;
}

static struct nvtx_event by_handle(uint64_t string)
{
    struct nvtx_event e = {.version = 3, .size = sizeof e, .message_type = NVTX_MESSAGE_REGISTERED};
    e.message.registered = string;
    return e;
}

static const lockstep_word *last_record(struct lockstep_ring *r)
{
    uint64_t lane = lockstep_lane_of_thread - 1, head = atomic_load(&r->lanes[lane].head);
    CHECK(head > 0);
    return slot_at(r, lane, head - 1);
}

static uint64_t records(struct lockstep_ring *r) { return atomic_load(&r->lanes[lockstep_lane_of_thread - 1].head); }

static void check_last(struct lockstep_ring *r, const char *name, uint32_t depth, unsigned flags)
{
    const lockstep_word *w = last_record(r);
    CHECK_EQ(w[1] & 0xffff, LOCKSTEP_SCOPE | LOCKSTEP_LEVEL_SUMMARY << 8);
    CHECK_EQ(w[1] >> 16 & 0xffff, flags);
    const char *got = r->strings[(uint32_t)w[5]].text;
    if (strcmp(got, name) != 0) {
        fprintf(stderr, "got \"%s\"; want \"%s\"\n", got, name);
        exit(1);
    }
    CHECK_EQ(w[5] >> 32, depth);
    CHECK(w[2] <= w[3]);
}

#define RANGE (LOCKSTEP_S_NVTX | LOCKSTEP_S_ASYNC)

static void pushes_are_scopes(void)
{
    struct lockstep_ring *r = injected();
    CHECK_EQ(push_a("outer"), 0);
    CHECK_EQ(push_w(L"inner \u20ac"), 1);
    struct nvtx_event e = ascii("innermost");
    CHECK_EQ(push_ex(&e), 2);
    CHECK_EQ(pop(), 2);
    check_last(r, "innermost", 2, LOCKSTEP_S_NVTX);
    CHECK_EQ(pop(), 1);
    check_last(r, "inner \xe2\x82\xac", 1, LOCKSTEP_S_NVTX);
    CHECK_EQ(pop(), 0);
    check_last(r, "outer", 0, LOCKSTEP_S_NVTX);
    CHECK(pop() < 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 1);
    CHECK_EQ(atomic_load(&r->header->witnesses), LOCKSTEP_W_NVTX);
}

static void ranges_nest_in_nothing(void)
{
    struct lockstep_ring *r = injected();
    struct nvtx_event e = ascii("c");
    uint64_t a = start_a("a"), b = start_w(L"b"), c = start_ex(&e);
    CHECK(a != 0 && b != 0 && c != 0 && a != b && b != c);
    CHECK_EQ(push_a("pushed"), 0);
    end(a);
    check_last(r, "a", 0, RANGE);
    end(c);
    check_last(r, "c", 0, RANGE);
    pop();
    check_last(r, "pushed", 0, LOCKSTEP_S_NVTX);
    end(b);
    check_last(r, "b", 0, RANGE);
    uint64_t n = records(r);
    end(b);
    end(0);
    end(UINT64_MAX);
    CHECK_EQ(records(r), n);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 2);
}

static void domains_have_stacks_of_their_own(void)
{
    struct lockstep_ring *r = injected();
    uint64_t lib = domain_a("lib"), other = domain_w(L"other");
    CHECK(lib != 0 && other != 0 && lib != other);
    CHECK_EQ(domain_a("lib"), lib); // another library's, of the same name
    struct nvtx_event e = ascii("work");
    CHECK_EQ(push_a("default"), 0);
    CHECK_EQ(domain_push(lib, &e), 0); // levels are of the domain
    CHECK_EQ(domain_push(other, &e), 0);
    CHECK_EQ(domain_push(lib, &e), 1);
    CHECK_EQ(pop(), 0); // not the innermost, but the default domain's
    check_last(r, "default", 0, LOCKSTEP_S_NVTX);
    CHECK_EQ(domain_pop(other), 0);
    check_last(r, "other: work", 2, LOCKSTEP_S_NVTX);
    CHECK_EQ(domain_pop(lib), 1);
    CHECK_EQ(domain_pop(lib), 0);
    check_last(r, "lib: work", 1, LOCKSTEP_S_NVTX);
    CHECK(domain_pop(lib) < 0);
    uint64_t id = domain_start(lib, &e);
    domain_end(other, id); // the id alone says which
    check_last(r, "lib: work", 0, RANGE);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 1);
}

static void some_names_are_the_default_domain(void)
{
    struct lockstep_ring *r = injected();
    CHECK(domain_a("not of them") != 0); // it has number 1
    uint64_t none[] = {1, domain_a("default"), domain_a("Default"), domain_a("NVTX"), domain_a(""), domain_a(NULL), 0, 12345, UINT64_MAX};
    struct nvtx_event e = ascii("plain");
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_EQ(domain_push(none[i], &e), 0);
        CHECK_EQ(pop(), 0);
        check_last(r, "plain", 0, LOCKSTEP_S_NVTX);
    }
}

static void domains_run_out(void)
{
    struct lockstep_ring *r = injected();
    char name[32];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "domain %d", i);
        CHECK(domain_a(name) != 0);
    }
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SLOTS_FULL), 300 - 255);
    struct nvtx_event e = ascii("x");
    CHECK_EQ(domain_push(domain_a("domain 299"), &e), 0);
    CHECK_EQ(pop(), 0); // it is the default one
    check_last(r, "x", 0, LOCKSTEP_S_NVTX);
}

static void long_names_keep_their_message(void)
{
    struct lockstep_ring *r = injected();
    uint64_t d = domain_a("com.example.a.domain.with.a.long.name");
    struct nvtx_event e = ascii("message");
    domain_push(d, &e);
    domain_pop(d);
    check_last(r, "com.example.a.domain.wit: message", 0, LOCKSTEP_S_NVTX);
    char text[1000];
    memset(text, 'x', sizeof text);
    text[999] = '\0';
    push_a(text);
    pop();
    text[55] = '\0';
    check_last(r, text, 0, LOCKSTEP_S_NVTX);
}

// Domains are told apart by their whole names, of which the records have a part.
static void domains_that_begin_alike(void)
{
    struct lockstep_ring *r = injected();
    uint64_t a = domain_a("com.example.library.part.one"), b = domain_a("com.example.library.part.two");
    CHECK(a != b);
    CHECK_EQ(domain_a("com.example.library.part.two"), b);
    struct nvtx_event outer = ascii("outer"), inner = ascii("inner");
    CHECK_EQ(domain_push(a, &outer), 0);
    CHECK_EQ(domain_push(b, &inner), 0);
    CHECK_EQ(domain_pop(a), 0); // its own, and not the other's inner one
    check_last(r, "com.example.library.part: outer", 0, LOCKSTEP_S_NVTX);
    CHECK_EQ(domain_pop(b), 0);
    check_last(r, "com.example.library.part: inner", 1, LOCKSTEP_S_NVTX);
}

// A push that is given up for want of room ends with nobody else's pop.
static void pushes_beyond_the_stack(void)
{
    struct lockstep_ring *r = injected();
    uint64_t lib = domain_a("lib");
    struct nvtx_event e = ascii("work");
    CHECK_EQ(domain_push(lib, &e), 0);
    for (int i = 0; i < 70; i++) {
        CHECK_EQ(push_a("x"), i); // levels go on
    }
    CHECK(domain_pop(lib) < 0);
    CHECK_EQ(records(r), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 7);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 1);
    for (int i = 69; i >= 6; i--) {
        CHECK_EQ(pop(), i);
    }
    CHECK(pop() < 0);
    CHECK_EQ(records(r), 64);
}

static void strings_are_registered(void)
{
    struct lockstep_ring *r = injected();
    uint64_t lib = domain_a("lib");
    char text[] = "registered";
    uint64_t s = string_a(lib, text), w = string_w(0, L"wide");
    CHECK(s != 0 && w != 0 && s != w);
    CHECK_EQ(string_a(lib, text), s);
    memset(text, 'x', sizeof text - 1); // the text need not stay
    struct nvtx_event e = by_handle(s), f = by_handle(w);
    domain_push(lib, &e);
    domain_pop(lib);
    check_last(r, "lib: registered", 0, LOCKSTEP_S_NVTX);
    end(start_ex(&f));
    check_last(r, "wide", 0, RANGE);
}

static void garbage_has_no_name(void)
{
    struct lockstep_ring *r = injected();
    struct nvtx_event shorter = ascii("x"), no_type = ascii("x"), null = ascii(NULL);
    shorter.size = 40;
    no_type.message_type = 99;
    struct nvtx_event strings[] = {shorter, no_type, null, by_handle(0), by_handle(UINT64_MAX), by_handle(0x4c53535400000000ull | 0xffff)};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        CHECK_EQ(push_ex(&strings[i]), 0);
        CHECK_EQ(pop(), 0);
        CHECK_EQ((uint32_t)last_record(r)[5], 0);
    }
    CHECK_EQ(push_ex(NULL), 0);
    CHECK_EQ(push_a(NULL), 1);
    CHECK_EQ(push_w(NULL), 2);
    pop(), pop(), pop();
    const wchar_t odd[] = {0xd800, 'a', 0x110000, 0x1f600, (wchar_t)-1, 0};
    push_w(odd);
    pop();
    check_last(r, "\xef\xbf\xbd" "a" "\xef\xbf\xbd" "\xf0\x9f\x98\x80" "\xef\xbf\xbd", 0, LOCKSTEP_S_NVTX);
}

// NVTX of another version has fewer places, or none where we look.
static void missing_places_are_left_alone(void)
{
    struct lockstep_ring *r = process_ring();
    fill_tables(NVTX_RANGE_PUSH_A + 1, 0);
    core_places[NVTX_RANGE_START_A] = NULL;
    CHECK_EQ(InitializeInjectionNvtx2(export_table), 1);
    CHECK(core[NVTX_RANGE_POP] == untouched && core[NVTX_RANGE_PUSH_W] == untouched);
    CHECK(core[NVTX_RANGE_START_A] == untouched);
    CHECK(core2[NVTX_DOMAIN_RANGE_PUSH_EX] == untouched);
    CHECK(core[NVTX_RANGE_PUSH_EX] != untouched);
    for (int i = 1; i < NVTX_RANGE_START_EX; i++) {
        CHECK(core[i] == untouched); // marks
    }
    CHECK_EQ(push_a("x"), 0);
    CHECK_EQ(asked_for_others, 0);
    CHECK_EQ(records(r), 0);
}

static void what_cannot_be_injected_is_refused(void)
{
    process_ring();
    CHECK_EQ(InitializeInjectionNvtx2(NULL), 0);
    CHECK_EQ(InitializeInjectionNvtx2(no_table), 0);
    callbacks.size = 8;
    CHECK_EQ(InitializeInjectionNvtx2(export_table), 0);
    callbacks.size = sizeof callbacks;
    callbacks.module = NULL;
    CHECK_EQ(InitializeInjectionNvtx2(export_table), 0);
}

static void without_a_ring_nvtx_calls_nobody(void)
{
    setenv("LOCKSTEP_DISABLE", "1", 1);
    fill_tables(16, 16);
    CHECK_EQ(InitializeInjectionNvtx2(export_table), 0);
    CHECK(core[NVTX_RANGE_PUSH_A] == untouched);
}

static int child_is_not_tracked(void *unused)
{
    (void)unused;
    struct nvtx_event e = ascii("child");
    CHECK_EQ(push_a("child"), NVTX_NOT_TRACKED);
    CHECK_EQ(domain_push(0, &e), NVTX_NOT_TRACKED);
    CHECK_EQ(pop(), NVTX_NOT_TRACKED);
    CHECK_EQ(start_a("child"), 0);
    CHECK_EQ(domain_a("child"), 0);
    CHECK_EQ(string_a(0, "child"), 0);
    end(1 << 16 | 1);
    return 0;
}

static void a_forked_child_is_not_tracked(void)
{
    struct lockstep_ring *r = injected();
    push_a("parent");
    CHECK_EQ(in_child(child_is_not_tracked, NULL), 0);
    CHECK_EQ(pop(), 0);
    CHECK_EQ(records(r), 1);
}

static void *start_and_leave(void *id)
{
    *(uint64_t *)id = start_a("across threads");
    CHECK(lockstep_scope_begin("never ended", 0) != 0);
    push_a("never popped");
    return NULL;
}

// A range belongs to no thread, a push does.
static void ranges_outlive_their_thread(void)
{
    struct lockstep_ring *r = injected();
    uint64_t id;
    pthread_t t;
    push_a("here");
    CHECK(pthread_create(&t, NULL, start_and_leave, &id) == 0 && pthread_join(t, NULL) == 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_GIVEN_UP), 2);
    end(id);
    check_last(r, "across threads", 0, RANGE);
    CHECK_EQ(pop(), 0);
    check_last(r, "here", 0, LOCKSTEP_S_NVTX);
}

static void *one_of_many(void *arg)
{
    uint64_t lib = domain_a("lib");
    char text[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "iteration %d", i); // more than there is room for
        struct nvtx_event e = ascii(text);
        CHECK_EQ(domain_push(lib, &e), 0);
        uint64_t id = start_a("range");
        CHECK_EQ(domain_pop(lib), 0);
        end(id);
    }
    return arg;
}

static void many_threads(void)
{
    struct lockstep_ring *r = injected();
    pthread_t t[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&t[i], NULL, one_of_many, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    uint64_t n = 0;
    for (uint64_t i = 0; i < r->nlanes; i++) {
        n += atomic_load(&r->lanes[i].head);
    }
    CHECK_EQ(n, 4 * 2 * 1000);
    CHECK(drops_of(r, LOCKSTEP_D_NAMES) > 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_STRINGS_FULL), 0);
    CHECK_EQ(drops_of(r, LOCKSTEP_D_SCOPES_UNBALANCED), 0);
}

static const struct test_case cases[] = {
    {"pushes_are_scopes", pushes_are_scopes},
    {"ranges_nest_in_nothing", ranges_nest_in_nothing},
    {"domains_have_stacks_of_their_own", domains_have_stacks_of_their_own},
    {"some_names_are_the_default_domain", some_names_are_the_default_domain},
    {"domains_run_out", domains_run_out},
    {"long_names_keep_their_message", long_names_keep_their_message},
    {"domains_that_begin_alike", domains_that_begin_alike},
    {"pushes_beyond_the_stack", pushes_beyond_the_stack},
    {"strings_are_registered", strings_are_registered},
    {"garbage_has_no_name", garbage_has_no_name},
    {"missing_places_are_left_alone", missing_places_are_left_alone},
    {"what_cannot_be_injected_is_refused", what_cannot_be_injected_is_refused},
    {"without_a_ring_nvtx_calls_nobody", without_a_ring_nvtx_calls_nobody},
    {"a_forked_child_is_not_tracked", a_forked_child_is_not_tracked},
    {"ranges_outlive_their_thread", ranges_outlive_their_thread},
    {"many_threads", many_threads},
};

TEST_MAIN(cases)
