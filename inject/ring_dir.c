// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// The directory of rings: whether it can be trusted, and what is dead in it.
#include "ring_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PRUNED 65536 // entries looked at

static const char *why_not_directory(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        return "it is a symbolic link, which is never followed";
    }
    switch (errno) {
    case ENOENT:
        return "it does not exist; the operator makes it, see docs/format/ring.md";
    case EACCES:
        return "permission denied; is the job in the directory's group?";
    default:
        return strerror(errno);
    }
}

int ring_open_directory(const char *path, char *err, size_t errlen)
{
    int how = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, how | O_RDONLY);
    if (fd < 0 && errno == EACCES) {
        fd = open(path, how | O_PATH); // files can be made in it, though not listed
    }
    if (fd < 0) {
        int e = errno;
        struct stat st;
        if (e == ENOTDIR && lstat(path, &st) == 0 && !S_ISLNK(st.st_mode)) {
            return ring_fail(err, errlen, "open directory %s: it is no directory", path);
        }
        errno = e;
        return ring_fail(err, errlen, "open directory %s: %s", path, why_not_directory(path));
    }
    return fd;
}

static bool in_group(gid_t g)
{
    if (geteuid() == 0 || getegid() == g) {
        return true;
    }
    gid_t list[1024];
    int n = getgroups(1024, list);
    for (int i = 0; i < n; i++) {
        if (list[i] == g) {
            return true;
        }
    }
    return false;
}

// 0660 where the directory hands its group on and we are of it.
mode_t ring_file_mode(int dirfd)
{
    struct stat st;
    if (fstat(dirfd, &st) == 0 && (st.st_mode & S_ISGID) != 0 && in_group(st.st_gid)) {
        return 0660;
    }
    return 0600;
}

int ring_lock(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    return fcntl(fd, F_SETLK, &l);
}

// Whether another process holds the lock; where that cannot be told, it does.
static bool locked(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    return fcntl(fd, F_GETLK, &l) != 0 || l.l_type != F_UNLCK;
}

// Nanoseconds since the ring was last alive: by its heartbeat if it is of this
// boot, else by the file's time.
static uint64_t silent_for(int fd, const struct stat *st)
{
    static const char magic[] = "LKSTRING";
    _Alignas(8) char page[sizeof(struct lockstep_header)];
    struct lockstep_header *h = (struct lockstep_header *)(void *)page;
    uint8_t boot[16];
    uint64_t now = lockstep_now();
    if (pread(fd, page, sizeof page, 0) == (ssize_t)sizeof page && memcmp(page, magic, 8) == 0 &&
        ring_boot_id(boot) && memcmp(boot, h->boot_id, sizeof boot) == 0) {
        uint64_t beat = atomic_load_explicit(&h->heartbeat, memory_order_relaxed);
        if (beat != 0 && beat <= now) {
            return now - beat;
        }
    }
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t age = (int64_t)t.tv_sec - (int64_t)st->st_mtim.tv_sec;
    return age > 0 ? (uint64_t)age * 1000000000u : 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool is_ring_name(const char *name)
{
    return name[0] == '.' ? has_suffix(name, TMP_SUFFIX) : has_suffix(name, RING_SUFFIX);
}

static void prune_one(int dirfd, const char *name)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        return;
    }
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !locked(fd) && silent_for(fd, &st) > DEAD_AFTER_NS) {
        unlinkat(dirfd, name, 0);
    }
    close(fd);
}

// Rings of this process are left alone without being opened: closing any of a
// process's descriptors of a file gives up its lock on it.
void ring_prune(int dirfd, const char *own_prefix)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        close(fd);
        return;
    }
    size_t prefix = strlen(own_prefix);
    const struct dirent *e;
    for (int i = 0; i < MAX_PRUNED && (e = readdir(d)) != NULL; i++) {
        const char *plain = e->d_name[0] == '.' ? e->d_name + 1 : e->d_name;
        if (is_ring_name(e->d_name) && strncmp(plain, own_prefix, prefix) != 0) {
            prune_one(dirfd, e->d_name);
        }
    }
    closedir(d);
}
