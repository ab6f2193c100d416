// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// The one ring of this process.
#include "ring_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool ready;
static _Atomic(struct lockstep_ring *) ring;
static _Atomic(const char *) status = "no ring: not asked for yet";
static char text[sizeof((struct config *)0)->directory + NOTES_SIZE + 256];

static void describe(const char *err)
{
    struct lockstep_ring *r = atomic_load(&ring);
    if (r == NULL) {
        snprintf(text, sizeof text, "no ring: %s", err);
        return;
    }
    const struct config *c = &private_of(r)->cfg;
    snprintf(text, sizeof text, "ring: %s/%s%s%s", c->directory, private_of(r)->name, c->notes[0] != '\0' ? "; " : "",
             c->notes);
}

static void make(void)
{
    char err[1024] = "";
    struct lockstep_ring *r = NULL;
    if (ring_env_true("LOCKSTEP_DISABLE")) {
        snprintf(err, sizeof err, "LOCKSTEP_DISABLE is set");
    } else {
        lockstep_ring_create(NULL, &r, err, sizeof err);
    }
    atomic_store(&ring, r);
    describe(err);
    atomic_store(&status, text);
    if (ring_env_true("LOCKSTEP_DEBUG")) {
        dprintf(STDERR_FILENO, "lockstep: %s\n", text);
    }
    atomic_store_explicit(&ready, true, memory_order_release);
}

struct lockstep_ring *lockstep_ring_process(void)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire)) {
        pthread_once(&once, make);
    }
    return atomic_load_explicit(&ring, memory_order_acquire);
}

const char *lockstep_ring_status(void) { return atomic_load(&status); }

// A child of a process that has a ring has none. One forked while the ring is
// being made, or before, makes its own: pthread_once begins anew in a child.
void ring_process_forked(void)
{
    if (atomic_load(&ring) != NULL) {
        atomic_store(&ring, NULL);
        atomic_store(&status, "no ring: this is a forked child of a process that has one");
    }
}

// At exit others may still be writing: the mapping stays, the lock goes with the
// process.
__attribute__((destructor)) static void leave(void)
{
    struct lockstep_ring *r = atomic_load(&ring);
    if (r != NULL) {
        ring_heart_leave(private_of(r));
        atomic_store_explicit(&r->header->state, LOCKSTEP_STATE_CLOSED, memory_order_release);
    }
}
