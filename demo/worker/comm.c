// SPDX-License-Identifier: Apache-2.0

// How ranks find each other: each listens on a free port of the loopback
// interface and says which in a file; each connects to the next. The file of
// rank 0 also names the communicator.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker.h"

#define MEET_SECONDS 30 // for all ranks to come

struct channel channels[MAX_CHANNELS];
uint64_t comm_hash;

struct hello {
    uint64_t hash;
    uint32_t rank, channel;
};

static uint64_t deadline;

static bool late(void) { return now_ns() > deadline || atomic_load(&stopping); }

static bool listen_on(int *fd, uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&a, len) != 0 || listen(*fd, 64) != 0 ||
        getsockname(*fd, (struct sockaddr *)&a, &len) != 0) {
        fail("listen on loopback: %s", strerror(errno));
        return false;
    }
    *port = ntohs(a.sin_port);
    return true;
}

static bool publish(uint16_t port)
{
    char tmp[4096], path[4096];
    snprintf(tmp, sizeof tmp, "%s/.rank%d", opt.meet, opt.rank);
    snprintf(path, sizeof path, "%s/rank%d", opt.meet, opt.rank);
    FILE *f = fopen(tmp, "we");
    if (f == NULL || fprintf(f, "%u %llx\n", port, (unsigned long long)comm_hash) < 0 || fclose(f) != 0 || rename(tmp, path) != 0) {
        fail("write %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static bool look_up(int rank, unsigned *port, uint64_t *hash)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/rank%d", opt.meet, rank);
    while (!late()) {
        unsigned long long h;
        FILE *f = fopen(path, "re");
        int n = f != NULL ? fscanf(f, "%u %llx", port, &h) : 0;
        if (f != NULL) {
            fclose(f);
        }
        if (n == 2) {
            *hash = h;
            return true;
        }
        usleep(5000);
    }
    fail("rank %d did not come: nothing in %s for %d s", rank, path, MEET_SECONDS);
    return false;
}

static void set_up(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static bool connect_next(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    for (int i = 0; i < opt.channels; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        channels[i].send_fd = fd;
        while (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0 && !late()) {
            usleep(5000);
        }
        struct hello h = {comm_hash, (uint32_t)opt.rank, (uint32_t)i};
        if (fd < 0 || send(fd, &h, sizeof h, MSG_NOSIGNAL) != sizeof h) {
            fail("connect to rank %d at port %u: %s", (opt.rank + 1) % opt.ranks, port, strerror(errno));
            return false;
        }
        set_up(fd);
    }
    return true;
}

// Takes one connection in; strangers are sent away.
static int accept_one(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 100) <= 0) {
        return -1;
    }
    int in = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    struct timeval wait = {.tv_sec = 2};
    setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    struct hello h;
    bool ours = in >= 0 && recv(in, &h, sizeof h, MSG_WAITALL) == sizeof h && h.hash == comm_hash &&
                h.rank == (uint32_t)((opt.rank + opt.ranks - 1) % opt.ranks) && h.channel < (uint32_t)opt.channels &&
                channels[h.channel].recv_fd < 0;
    if (!ours) {
        if (in >= 0) {
            close(in);
        }
        return -1;
    }
    set_up(in);
    channels[h.channel].recv_fd = in;
    return 0;
}

static bool accept_previous(int fd)
{
    int left = opt.channels;
    while (left > 0 && !late()) {
        left += accept_one(fd) == 0 ? -1 : 0;
    }
    if (left > 0) {
        fail("rank %d did not connect in %d s", (opt.rank + opt.ranks - 1) % opt.ranks, MEET_SECONDS);
    }
    return left == 0;
}

static void buffers(void)
{
    for (int i = 0; i < opt.channels; i++) {
        for (int k = 0; k < FIFO; k++) {
            channels[i].send_buf[k] = malloc(opt.chunk);
            channels[i].recv_buf[k] = malloc(opt.chunk);
        }
    }
}

bool comm_connect(void)
{
    for (int i = 0; i < MAX_CHANNELS; i++) {
        channels[i].send_fd = channels[i].recv_fd = -1;
    }
    if (getrandom(&comm_hash, sizeof comm_hash, 0) != sizeof comm_hash) {
        fail("draw a communicator's hash: %s", strerror(errno));
        return false;
    }
    if (opt.ranks == 1) {
        return true;
    }
    deadline = now_ns() + MEET_SECONDS * 1000 * MS;
    buffers();
    int fd;
    uint16_t mine;
    unsigned port;
    uint64_t other;
    bool ok = listen_on(&fd, &mine) && publish(mine) && look_up(0, &port, &comm_hash) &&
              look_up((opt.rank + 1) % opt.ranks, &port, &other) && connect_next(port) && accept_previous(fd);
    close(fd);
    return ok;
}

// Waits for the peer to end, too: what it has not read yet would be lost with a
// connection that is closed while unread bytes are left.
static void end_connection(int fd)
{
    if (fd < 0) {
        return;
    }
    shutdown(fd, SHUT_WR);
    char rest[256];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!atomic_load(&failed) && poll(&p, 1, 2000) > 0 && recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) {
    }
    close(fd);
}

void comm_close(void)
{
    for (int i = 0; i < MAX_CHANNELS; i++) {
        if (channels[i].send_fd >= 0) {
            shutdown(channels[i].send_fd, SHUT_WR);
        }
    }
    for (int i = 0; i < MAX_CHANNELS; i++) {
        end_connection(channels[i].recv_fd);
        end_connection(channels[i].send_fd);
    }
}
