// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// NVTX: programs that mark their ranges for NVIDIA's tools mark them for us, once
// NVTX_INJECTION64_PATH names this library. Every library in the process that has
// NVTX inside loads it by itself, and all share what is here. Marks, categories,
// colours, payloads and names of other things are not asked for.
#include "nvtx.h"

static int push(struct lockstep_ring *r, uint32_t domain, uint16_t code)
{
    scope_witness(r, LOCKSTEP_W_NVTX);
    return scope_push(r, KEY_DOMAIN + domain, code, LOCKSTEP_PHASE_NONE);
}

static int pop(uint32_t domain)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL ? scope_pop(r, KEY_DOMAIN + domain, 0, LOCKSTEP_S_NVTX) : NVTX_NOT_TRACKED;
}

static uint64_t start(struct lockstep_ring *r, uint16_t code)
{
    scope_witness(r, LOCKSTEP_W_NVTX);
    return scope_open(r, code, LOCKSTEP_PHASE_NONE, LOCKSTEP_S_NVTX | LOCKSTEP_S_ASYNC);
}

static int domain_push_ex(uint64_t domain, const struct nvtx_event *e)
{
    struct lockstep_ring *r = lockstep_ring_process();
    uint32_t d = nvtx_domain_of(domain);
    return r != NULL ? push(r, d, nvtx_name_of_event(r, d, e)) : NVTX_NOT_TRACKED;
}

static int push_ex(const struct nvtx_event *e) { return domain_push_ex(0, e); }

static int push_a(const char *message)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL ? push(r, 0, nvtx_name(r, 0, message)) : NVTX_NOT_TRACKED;
}

static int push_w(const wchar_t *message)
{
    char narrow[NVTX_TEXT];
    return push_a(nvtx_narrow(message, narrow));
}

static int pop_default(void) { return pop(0); }
static int domain_pop(uint64_t domain) { return pop(nvtx_domain_of(domain)); }

static uint64_t domain_start_ex(uint64_t domain, const struct nvtx_event *e)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL ? start(r, nvtx_name_of_event(r, nvtx_domain_of(domain), e)) : 0;
}

static uint64_t start_ex(const struct nvtx_event *e) { return domain_start_ex(0, e); }

static uint64_t start_a(const char *message)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL ? start(r, nvtx_name(r, 0, message)) : 0;
}

static uint64_t start_w(const wchar_t *message)
{
    char narrow[NVTX_TEXT];
    return start_a(nvtx_narrow(message, narrow));
}

static void end(uint64_t id) { lockstep_scope_end(id); }

// The id alone says which range.
static void domain_end(uint64_t domain, uint64_t id)
{
    (void)domain;
    lockstep_scope_end(id);
}

static uint64_t domain_create_a(const char *name)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL ? nvtx_domain_create(r, name) : 0;
}

static uint64_t domain_create_w(const wchar_t *name)
{
    char narrow[NVTX_TEXT];
    return domain_create_a(nvtx_narrow(name, narrow));
}

static uint64_t register_a(uint64_t domain, const char *text)
{
    struct lockstep_ring *r = lockstep_ring_process();
    return r != NULL ? nvtx_string_register(r, nvtx_domain_of(domain), text) : 0;
}

static uint64_t register_w(uint64_t domain, const wchar_t *text)
{
    char narrow[NVTX_TEXT];
    return register_a(domain, nvtx_narrow(text, narrow));
}

struct place {
    unsigned number;
    nvtx_function fn;
};

static const struct place core[] = {
    {NVTX_RANGE_START_EX, (nvtx_function)start_ex}, {NVTX_RANGE_START_A, (nvtx_function)start_a},
    {NVTX_RANGE_START_W, (nvtx_function)start_w},   {NVTX_RANGE_END, (nvtx_function)end},
    {NVTX_RANGE_PUSH_EX, (nvtx_function)push_ex},   {NVTX_RANGE_PUSH_A, (nvtx_function)push_a},
    {NVTX_RANGE_PUSH_W, (nvtx_function)push_w},     {NVTX_RANGE_POP, (nvtx_function)pop_default},
};

static const struct place core2[] = {
    {NVTX_DOMAIN_RANGE_START_EX, (nvtx_function)domain_start_ex},
    {NVTX_DOMAIN_RANGE_END, (nvtx_function)domain_end},
    {NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_push_ex},
    {NVTX_DOMAIN_RANGE_POP, (nvtx_function)domain_pop},
    {NVTX_DOMAIN_REGISTER_STRING_A, (nvtx_function)register_a},
    {NVTX_DOMAIN_REGISTER_STRING_W, (nvtx_function)register_w},
    {NVTX_DOMAIN_CREATE_A, (nvtx_function)domain_create_a},
    {NVTX_DOMAIN_CREATE_W, (nvtx_function)domain_create_w},
};

// An older library has fewer places.
static bool install(const struct nvtx_callbacks *c, enum nvtx_module module, const struct place *p, size_t n)
{
    nvtx_function **places = NULL;
    unsigned count = 0;
    if (c->module(module, &places, &count) != 1 || places == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (p[i].number < count && places[p[i].number] != NULL) {
            *places[p[i].number] = p[i].fn;
        }
    }
    return true;
}

int InitializeInjectionNvtx2(nvtx_get_export_table get)
{
    // Without a ring, NVTX had better call nobody.
    if (get == NULL || lockstep_ring_process() == NULL) {
        return 0;
    }
    const struct nvtx_callbacks *c = get(NVTX_TABLE_CALLBACKS);
    if (c == NULL || c->size < sizeof *c || c->module == NULL) {
        return 0;
    }
    bool any = install(c, NVTX_MODULE_CORE, core, sizeof core / sizeof core[0]);
    any = install(c, NVTX_MODULE_CORE2, core2, sizeof core2 / sizeof core2[0]) || any;
    return any;
}
