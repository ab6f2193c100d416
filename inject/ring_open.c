// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Making a ring, and giving it back.
#include "ring_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Tables whose sizes nobody has had to change: 64 KiB, 96 KiB, 4 KiB, 256 KiB.
#define STRINGS 1024u
#define COMMS 512u
#define GPUS 64u
#define FRONTIERS 2048u // a power of two: it is hashed

static void place(struct ring_layout *l, enum lockstep_section_kind kind, uint32_t entry_size, uint64_t count)
{
    struct lockstep_section *s = &l->section[kind - 1];
    *s = (struct lockstep_section){.kind = kind, .entry_size = entry_size, .offset = l->size, .count = count};
    l->size = (l->size + entry_size * count + LOCKSTEP_PAGE - 1) / LOCKSTEP_PAGE * LOCKSTEP_PAGE;
}

static void lay_out(struct ring_layout *l, const struct config *c)
{
    l->size = LOCKSTEP_PAGE;
    place(l, LOCKSTEP_S_CONTROL, sizeof(struct lockstep_control), 1);
    place(l, LOCKSTEP_S_STRINGS, sizeof(struct lockstep_string), STRINGS);
    place(l, LOCKSTEP_S_COMMS, sizeof(struct lockstep_comm), COMMS);
    place(l, LOCKSTEP_S_GPUS, sizeof(struct lockstep_gpu), GPUS);
    place(l, LOCKSTEP_S_FRONTIERS, sizeof(struct lockstep_frontier), FRONTIERS);
    place(l, LOCKSTEP_S_SLOTS, sizeof(struct lockstep_slot), c->slots);
    place(l, LOCKSTEP_S_LANES, sizeof(struct lockstep_lane), c->lanes);
    place(l, LOCKSTEP_S_RECORDS, LOCKSTEP_RECORD_SIZE, (uint64_t)c->lanes * c->capacity);
}

static void *section(const struct ring_private *p, enum lockstep_section_kind kind)
{
    return p->base != NULL ? (char *)p->base + p->layout.section[kind - 1].offset : NULL;
}

void ring_point(struct ring_private *p)
{
    struct lockstep_ring *r = &p->pub;
    r->header = p->base;
    r->control = section(p, LOCKSTEP_S_CONTROL);
    r->strings = section(p, LOCKSTEP_S_STRINGS);
    r->comms = section(p, LOCKSTEP_S_COMMS);
    r->gpus = section(p, LOCKSTEP_S_GPUS);
    r->frontiers = section(p, LOCKSTEP_S_FRONTIERS);
    r->slots = section(p, LOCKSTEP_S_SLOTS);
    r->lanes = section(p, LOCKSTEP_S_LANES);
    r->records = section(p, LOCKSTEP_S_RECORDS);
}

static void set_sizes(struct ring_private *p)
{
    struct lockstep_ring *r = &p->pub;
    r->nstrings = STRINGS;
    r->ncomms = COMMS;
    r->ngpus = GPUS;
    r->nfrontiers = FRONTIERS;
    r->nslots = p->cfg.slots;
    r->nlanes = p->cfg.lanes;
    r->capacity = p->cfg.capacity;
    r->default_level = p->cfg.level;
}

static void fill_header(struct ring_private *p, const struct ring_layout *l)
{
    struct lockstep_header *h = p->pub.header;
    h->magic = LOCKSTEP_RING_MAGIC;
    h->version = LOCKSTEP_RING_VERSION;
    h->header_size = sizeof *h;
    h->file_size = l->size;
    h->created = lockstep_now();
    h->retain_seconds = p->cfg.retain_seconds;
    ring_identify(h, &p->cfg);
    memcpy(h->sections, l->section, sizeof h->sections);
    atomic_store_explicit(&h->step, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&h->level, p->cfg.level, memory_order_relaxed);
    // Entry 0 stands for all that found no room.
    atomic_store_explicit(&p->pub.comms[0].state, LOCKSTEP_E_LIVE, memory_order_relaxed);
    atomic_store_explicit(&p->pub.gpus[0].state, LOCKSTEP_E_LIVE, memory_order_relaxed);
    p->pub.gpus[0].device = LOCKSTEP_NONE;
    struct lockstep_comm *none = &p->pub.comms[0];
    none->nranks = none->rank = none->nnodes = LOCKSTEP_NONE;
}

// Growing beyond RLIMIT_FSIZE raises a signal that ends the process.
static int check_file_limit(uint64_t size, char *err, size_t errlen)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY && size > lim.rlim_cur) {
        return ring_fail(err, errlen, "allocate ring: got %llu bytes; want at most %llu (RLIMIT_FSIZE)",
                         (unsigned long long)size, (unsigned long long)lim.rlim_cur);
    }
    return 0;
}

// A signal interrupts it, and it begins anew: in a program with a fast timer it
// would never be done. So signals wait meanwhile.
#define ALLOCATE_TRIES 16

static int allocate_undisturbed(int fd, uint64_t size)
{
    sigset_t all, before;
    int e = EINTR;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < ALLOCATE_TRIES && e == EINTR; i++) {
        e = posix_fallocate(fd, 0, (off_t)size);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}

static int allocate(int fd, uint64_t size, const char *directory, char *err, size_t errlen)
{
    int e = allocate_undisturbed(fd, size);
    if (e != 0) {
        return ring_fail(err, errlen,
                         "allocate ring of %llu bytes in %s: %s (LOCKSTEP_RING_LANES and LOCKSTEP_RING_RECORDS make it smaller)",
                         (unsigned long long)size, directory, strerror(e));
    }
    return 0;
}

static int map(struct ring_private *p, const struct ring_layout *l, char *err, size_t errlen)
{
    // Populated, so that no event pays for the first touch of a page.
    p->base = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, p->pub.fd, 0);
    if (p->base == MAP_FAILED) {
        p->base = NULL;
        return ring_fail(err, errlen, "map ring of %llu bytes: %s", (unsigned long long)l->size, strerror(errno));
    }
    p->size = l->size;
    madvise(p->base, p->size, MADV_DONTFORK);
    return 0;
}

static int build(struct ring_private *p, const char *tmp, char *err, size_t errlen)
{
    struct ring_layout *l = &p->layout;
    lay_out(l, &p->cfg);
    struct stat st;
    if (fchmod(p->pub.fd, ring_file_mode(p->dirfd)) != 0 || fstat(p->pub.fd, &st) != 0) {
        return ring_fail(err, errlen, "set mode of ring: %s", strerror(errno));
    }
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    if (ring_lock(p->pub.fd) != 0) {
        return ring_fail(err, errlen, "lock ring in %s: %s", p->cfg.directory, strerror(errno));
    }
    if (check_file_limit(l->size, err, errlen) != 0 ||
        allocate(p->pub.fd, l->size, p->cfg.directory, err, errlen) != 0 || map(p, l, err, errlen) != 0) {
        return -1;
    }
    if (free_stack_init(&p->free_slots, p->cfg.slots) != 0) {
        return ring_fail(err, errlen, "allocate slots: %s", strerror(ENOMEM));
    }
    ring_point(p);
    set_sizes(p);
    fill_header(p, l);
    ring_seed_strings(&p->pub);
    ring_beat(p);
    atomic_store_explicit(&p->pub.header->state, LOCKSTEP_STATE_LIVE, memory_order_release);
    if (renameat(p->dirfd, tmp, p->dirfd, p->name) != 0) {
        return ring_fail(err, errlen, "rename ring in %s: %s", p->cfg.directory, strerror(errno));
    }
    return 0;
}

static void discard(struct ring_private *p)
{
    if (p->base != NULL) {
        munmap(p->base, p->size);
    }
    if (p->lock_fd >= 0) {
        close(p->lock_fd);
    }
    if (p->dirfd >= 0) {
        close(p->dirfd);
    }
    free(p->free_slots.next);
    free(p);
}

// One that is below the descriptors 0 to 2 would be mistaken for them.
int ring_above_stdio(int fd)
{
    if (fd < 0 || fd > 2) {
        return fd;
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return high;
}

static int make_file(struct ring_private *p, char *err, size_t errlen)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        random = (uint32_t)(lockstep_now() * 2654435761u);
    }
    char prefix[64], tmp[sizeof p->name + sizeof TMP_SUFFIX];
    snprintf(prefix, sizeof prefix, "%lld-%llu-", (long long)getpid(), (unsigned long long)ring_start_time());
    snprintf(p->name, sizeof p->name, "%s%08x" RING_SUFFIX, prefix, random);
    snprintf(tmp, sizeof tmp, ".%s%08x" TMP_SUFFIX, prefix, random);
    ring_prune(p->dirfd, prefix);
    p->pub.fd = p->lock_fd = ring_above_stdio(openat(p->dirfd, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (p->pub.fd < 0) {
        return ring_fail(err, errlen, "create ring in %s: %s%s", p->cfg.directory, strerror(errno),
                         errno == EACCES ? "; is the job in the directory's group?" : "");
    }
    if (build(p, tmp, err, errlen) != 0) {
        unlinkat(p->dirfd, tmp, 0);
        return -1;
    }
    return 0;
}

int lockstep_ring_create(const struct lockstep_options *opt, struct lockstep_ring **out, char *err, size_t errlen)
{
    static _Atomic uint32_t ids;
    *out = NULL;
    struct ring_private *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return ring_fail(err, errlen, "allocate ring: %s", strerror(ENOMEM));
    }
    p->pub.fd = p->lock_fd = p->dirfd = -1;
    p->pub.id = atomic_fetch_add(&ids, 1) + 1;
    if (ring_configure(&p->cfg, opt, err, errlen) != 0) {
        discard(p);
        return -1;
    }
    p->dirfd = ring_above_stdio(ring_open_directory(p->cfg.directory, err, errlen));
    if (p->dirfd < 0 || ring_watch_thread() != 0 || make_file(p, err, errlen) != 0) {
        discard(p);
        return -1;
    }
    close(p->dirfd);
    p->dirfd = -1;
    ring_list_add(p);
    ring_heart_start(p);
    ring_fail(err, errlen, "%s", p->cfg.notes);
    *out = &p->pub;
    return 0;
}

void lockstep_ring_close(struct lockstep_ring *r)
{
    if (r == NULL) {
        return;
    }
    struct ring_private *p = private_of(r);
    ring_heart_stop(p);
    ring_list_remove(p);
    atomic_store_explicit(&r->header->state, LOCKSTEP_STATE_CLOSED, memory_order_release);
    discard(p);
}
