// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// All open rings of the process: for threads that end and for forked children.
#include "ring_internal.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ring_private *list;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static int watch_error;

static _Thread_local uint64_t cached_tid;

uint64_t ring_tid(void)
{
    if (cached_tid == 0) {
        cached_tid = (uint64_t)syscall(SYS_gettid);
    }
    return cached_tid;
}

void ring_list_add(struct ring_private *p)
{
    pthread_mutex_lock(&list_mutex);
    p->next_open = list;
    list = p;
    pthread_mutex_unlock(&list_mutex);
}

void ring_list_remove(struct ring_private *p)
{
    pthread_mutex_lock(&list_mutex);
    for (struct ring_private **at = &list; *at != NULL; at = &(*at)->next_open) {
        if (*at == p) {
            *at = p->next_open;
            break;
        }
    }
    pthread_mutex_unlock(&list_mutex);
}

static void release_lanes_of(struct lockstep_ring *r, uint64_t tid)
{
    for (uint64_t i = 1; i < r->nlanes; i++) {
        uint64_t owner = tid;
        if (atomic_load_explicit(&r->lanes[i].owner, memory_order_relaxed) != tid) {
            continue;
        }
        atomic_store_explicit(&r->lanes[i].scope, 0, memory_order_relaxed);
        atomic_store_explicit(&r->lanes[i].scope_at, 0, memory_order_relaxed);
        atomic_compare_exchange_strong_explicit(&r->lanes[i].owner, &owner, 0, memory_order_release,
                                                memory_order_relaxed);
    }
}

void ring_release_lanes(uint64_t tid)
{
    pthread_mutex_lock(&list_mutex);
    for (struct ring_private *p = list; p != NULL; p = p->next_open) {
        release_lanes_of(&p->pub, tid);
    }
    pthread_mutex_unlock(&list_mutex);
}

static _Atomic(void (*)(void)) leaving;

void ring_on_thread_end(void (*fn)(void)) { atomic_store_explicit(&leaving, fn, memory_order_relaxed); }

static void thread_ended(void *arg)
{
    (void)arg;
    void (*fn)(void) = atomic_load_explicit(&leaving, memory_order_relaxed);
    if (fn != NULL) {
        fn();
    }
    lockstep_ring_of_thread = 0;
    lockstep_lane_of_thread = 0;
    ring_release_lanes(ring_tid());
}

static void before_fork(void) { pthread_mutex_lock(&list_mutex); }
static void after_fork_parent(void) { pthread_mutex_unlock(&list_mutex); }

// Private pages of zeroes in place of the ring, which the child did not inherit.
// They lie where it lay if nothing is there: another library's handler of the fork
// may have run before this one and have mapped what it needs into the hole.
static void replace(struct ring_private *p)
{
    void *zeroes = mmap(p->base, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    p->base = zeroes != MAP_FAILED ? zeroes : NULL;
    ring_point(p);
    p->heart_runs = false;
}

// The child has no ring. Whoever kept the ring's address writes to private zeroes
// instead of to the parent's file.
static void after_fork_child(void)
{
    for (struct ring_private *p = list; p != NULL; p = p->next_open) {
        replace(p);
    }
    list = NULL;
    cached_tid = 0;
    lockstep_ring_of_thread = 0;
    lockstep_lane_of_thread = 0;
    ring_process_forked();
    pthread_mutex_unlock(&list_mutex);
}

static void watch(void)
{
    watch_error = pthread_key_create(&thread_key, thread_ended);
    if (watch_error == 0) {
        watch_error = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    }
}

static int watch_process(void)
{
    pthread_once(&watch_once, watch);
    return watch_error;
}

// Hears of the calling thread's end. Any value but NULL will do.
int ring_watch_thread(void)
{
    int e = watch_process();
    return e != 0 ? e : pthread_setspecific(thread_key, &thread_key);
}
