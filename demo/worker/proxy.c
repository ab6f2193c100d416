// SPDX-License-Identifier: Apache-2.0

// The proxy: one thread that moves chunks between the device's buffers and the
// sockets, and tells the profiler of each step of it as NCCL's does. Unlike
// NCCL's it sleeps where nothing can move, since many ranks share few cores.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker.h"

#define QUEUE 64

// One direction of one channel. Steps are numbered through all collectives.
struct flow {
    struct collective *queue[QUEUE];
    uint64_t head, tail;
    void *op; // event of the one at the head
    bool started, in_progress;
    void *step[FIFO];
    uint64_t posted, peered, moving, done; // of a receiver only posted, moving (has data) and done
    size_t bytes;                          // of the step at hand
    unsigned credits;                      // sender: that it has; receiver: that it owes
};

static struct flow senders[MAX_CHANNELS], receivers[MAX_CHANNELS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of queue tails
static atomic_bool asleep, ended, throttled;
static int wake_fd;
static pthread_t thread;
static struct {
    double tokens;
    uint64_t at;
} bucket;

void proxy_wake(void)
{
    if (atomic_exchange(&asleep, false)) {
        uint64_t one = 1;
        (void)!write(wake_fd, &one, sizeof one);
    }
}

void proxy_throttle(bool on) { atomic_store(&throttled, on); }

static void append(struct flow *f, struct collective *c)
{
    f->queue[f->tail % QUEUE] = c;
    f->tail++;
}

void proxy_append(struct collective *c)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < opt.channels; i++) {
        if (c->parts[i].steps == 0) {
            collective_release(c);
            collective_release(c);
            continue;
        }
        append(&senders[i], c);
        append(&receivers[i], c);
    }
    pthread_mutex_unlock(&lock);
    proxy_wake();
}

static struct collective *head_of(struct flow *f)
{
    pthread_mutex_lock(&lock);
    struct collective *c = f->head < f->tail ? f->queue[f->head % QUEUE] : NULL;
    pthread_mutex_unlock(&lock);
    return c;
}

static int peer_of(bool send) { return (opt.rank + (send ? 1 : opt.ranks - 1)) % opt.ranks; }

static void op_start(struct flow *f, struct collective *c, int channel, bool send)
{
    if (f->started) {
        return;
    }
    f->started = true;
    f->op = NULL;
    if (c->mask & (EV_PROXY_OP | EV_PROXY_STEP | EV_NET_PLUGIN)) {
        struct descr d = {.type = EV_PROXY_OP,
                          .parent = c->handle,
                          .rank = opt.rank,
                          .proxy_op = {.pid = getpid(),
                                       .channel = (uint8_t)channel,
                                       .peer = peer_of(send),
                                       .steps = (int)c->parts[channel].steps,
                                       .chunk = (int)opt.chunk,
                                       .is_send = send}};
        f->op = event_start(&d);
    }
}

static void op_progress(struct flow *f)
{
    if (!f->in_progress) {
        f->in_progress = true;
        event_state(f->op, ST_PROXY_OP_IN_PROGRESS, NULL);
    }
}

static void op_end(struct flow *f, struct collective *c)
{
    event_stop(f->op);
    f->started = f->in_progress = false;
    pthread_mutex_lock(&lock);
    f->head++;
    pthread_mutex_unlock(&lock);
    collective_release(c);
}

static void step_start(struct flow *f, struct collective *c, int channel, int first_state)
{
    void **e = &f->step[f->posted % FIFO];
    *e = NULL;
    if (c->mask & (EV_PROXY_STEP | EV_NET_PLUGIN)) {
        int k = (int)(f->posted - c->parts[channel].base);
        struct descr d = {.type = EV_PROXY_STEP, .parent = f->op, .rank = opt.rank, .proxy_step.step = k};
        *e = event_start(&d);
    }
    event_state(*e, first_state, &(union state_args){0});
    f->posted++;
}

static void step_state(struct flow *f, uint64_t step, int state, size_t size)
{
    event_state(f->step[step % FIFO], state, &(union state_args){.trans_size = size});
}

static void step_stop(struct flow *f, uint64_t step)
{
    event_stop(f->step[step % FIFO]);
    f->step[step % FIFO] = NULL;
}

// How many of left bytes may leave now. A throttled link is a token bucket of
// two chunks; a write waits until a packet's worth is there.
static size_t allowed(size_t left)
{
    if (!atomic_load(&throttled)) {
        return left;
    }
    uint64_t now = now_ns();
    bucket.tokens += (double)(now - bucket.at) * (double)opt.link_rate / 1e9;
    bucket.at = now;
    if (bucket.tokens > 2.0 * opt.chunk) {
        bucket.tokens = 2.0 * opt.chunk;
    }
    size_t packet = left < 4096 ? left : 4096;
    if (bucket.tokens < (double)packet) {
        return 0;
    }
    return (double)left < bucket.tokens ? left : (size_t)bucket.tokens;
}

// A connection that is gone says so again for ever: who is patient closes it.
static bool broken(ssize_t n, int *fd, int peer)
{
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        return false;
    }
    if (opt.patient) {
        if (*fd >= 0) {
            close(*fd);
            *fd = -1;
        }
        return true;
    }
    fail("rank %d is gone: %s", peer, n == 0 ? "connection closed" : strerror(errno));
    return true;
}

static void take_credits(struct flow *f, int *fd)
{
    char credit[FIFO];
    ssize_t n = recv(*fd, credit, sizeof credit, MSG_DONTWAIT);
    if (!broken(n, fd, peer_of(true)) && n > 0) {
        f->credits += (unsigned)n;
    }
}

static void give_credits(struct flow *f, int *fd)
{
    static const char credit[FIFO];
    while (f->credits > 0) {
        ssize_t n = send(*fd, credit, f->credits < FIFO ? f->credits : FIFO, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) {
            (void)broken(n, fd, peer_of(false));
            return;
        }
        f->credits -= (unsigned)n;
    }
}

// Writes what may be written of the step at hand; true when all is out.
static bool push(struct flow *f, struct channel *ch, const struct collective *c, int channel)
{
    size_t size = chunk_of_step(c, channel, f->done, true).count * sizeof(float);
    while (f->bytes < size) {
        size_t n = allowed(size - f->bytes);
        if (n == 0) {
            return false;
        }
        const char *from = (const char *)ch->send_buf[f->done % FIFO] + f->bytes;
        ssize_t out = send(ch->send_fd, from, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (out <= 0) {
            (void)broken(out, &ch->send_fd, peer_of(true));
            return false;
        }
        f->bytes += (size_t)out;
        bucket.tokens -= (double)out;
    }
    f->bytes = 0;
    return true;
}

static void send_moving(struct flow *f, struct channel *ch, const struct collective *c, int channel)
{
    while (f->done < f->moving && push(f, ch, c, channel)) {
        step_stop(f, f->done++);
        atomic_store_explicit(&ch->sent, f->done, memory_order_release);
        device_wake();
    }
}

static bool progress_send(int channel)
{
    struct flow *f = &senders[channel];
    struct channel *ch = &channels[channel];
    struct collective *c = head_of(f);
    if (c == NULL) {
        return false;
    }
    op_start(f, c, channel, true);
    uint64_t end = c->parts[channel].base + c->parts[channel].steps, before = f->posted + f->peered + f->moving + f->done;
    while (f->posted < end && f->posted < f->done + FIFO) {
        step_start(f, c, channel, ST_SEND_GPU_WAIT);
    }
    if (c->odd) {
        return f->posted + f->peered + f->moving + f->done != before;
    }
    uint64_t ready = atomic_load(&ch->ready);
    if (f->moving < f->peered) { // NCCL tells of it again at every try
        step_state(f, f->moving, ST_SEND_PEER_WAIT, chunk_of_step(c, channel, f->moving, true).count * sizeof(float));
    }
    for (; f->peered < f->posted && f->peered < ready; f->peered++) {
        step_state(f, f->peered, ST_SEND_PEER_WAIT, chunk_of_step(c, channel, f->peered, true).count * sizeof(float));
    }
    if (f->credits == 0 && f->moving < f->peered) {
        take_credits(f, &ch->send_fd);
    }
    // One after the other where the socket takes them at once, so that no chunk's
    // time on the wire holds that of those before it.
    send_moving(f, ch, c, channel);
    for (; f->moving < f->peered && f->credits > 0; f->credits--) {
        op_progress(f);
        step_state(f, f->moving, ST_SEND_WAIT, chunk_of_step(c, channel, f->moving, true).count * sizeof(float));
        f->moving++;
        send_moving(f, ch, c, channel);
    }
    bool moved = f->posted + f->peered + f->moving + f->done != before;
    if (f->done == end) {
        op_end(f, c);
    }
    return moved;
}

static bool pull(struct flow *f, struct channel *ch, const struct collective *c, int channel)
{
    size_t size = chunk_of_step(c, channel, f->moving, false).count * sizeof(float);
    while (f->bytes < size) {
        char *to = (char *)ch->recv_buf[f->moving % FIFO] + f->bytes;
        ssize_t n = recv(ch->recv_fd, to, size - f->bytes, MSG_DONTWAIT);
        if (n <= 0) {
            (void)broken(n, &ch->recv_fd, peer_of(false));
            return false;
        }
        f->bytes += (size_t)n;
    }
    f->bytes = 0;
    return true;
}

static bool progress_recv(int channel)
{
    struct flow *f = &receivers[channel];
    struct channel *ch = &channels[channel];
    struct collective *c = head_of(f);
    if (c == NULL) {
        return false;
    }
    op_start(f, c, channel, false);
    uint64_t end = c->parts[channel].base + c->parts[channel].steps, before = f->posted + f->moving + f->done;
    while (f->posted < end && f->posted < f->done + FIFO) {
        step_start(f, c, channel, ST_RECV_WAIT);
        f->credits++;
    }
    if (c->odd) {
        return f->posted + f->moving + f->done != before;
    }
    give_credits(f, &ch->recv_fd);
    while (f->moving < f->posted && pull(f, ch, c, channel)) {
        size_t size = chunk_of_step(c, channel, f->moving, false).count * sizeof(float);
        op_progress(f);
        step_state(f, f->moving, ST_RECV_FLUSH_WAIT, size);
        step_state(f, f->moving, ST_RECV_GPU_WAIT, size);
        f->moving++;
        atomic_store_explicit(&ch->received, f->moving, memory_order_release);
        device_wake();
    }
    uint64_t consumed = atomic_load(&ch->consumed);
    while (f->done < f->moving && f->done < consumed) {
        step_stop(f, f->done++);
    }
    bool moved = f->posted + f->moving + f->done != before;
    if (f->done == end) {
        op_end(f, c);
    }
    return moved;
}

static bool progress(void)
{
    bool moved = false;
    for (int i = 0; i < opt.channels && !atomic_load(&failed); i++) {
        moved = progress_send(i) || moved;
        moved = progress_recv(i) || moved;
    }
    return moved;
}

// Sleeps until something can move. A throttled link is looked at again when the
// next packet's tokens are there.
static void doze(void)
{
    struct pollfd fds[1 + 2 * MAX_CHANNELS] = {{.fd = wake_fd, .events = POLLIN}};
    nfds_t n = 1;
    bool sending = false;
    for (int i = 0; i < opt.channels; i++) {
        const struct flow *s = &senders[i], *r = &receivers[i];
        short events = (short)((s->done < s->moving ? POLLOUT : 0) | (s->moving < s->peered ? POLLIN : 0));
        if ((events & POLLOUT) && atomic_load(&throttled)) {
            events &= (short)~POLLOUT;
            sending = true;
        }
        if (events != 0) {
            fds[n++] = (struct pollfd){.fd = channels[i].send_fd, .events = events};
        }
        if (r->moving < r->posted) {
            fds[n++] = (struct pollfd){.fd = channels[i].recv_fd, .events = POLLIN};
        }
    }
    const struct timespec packet = {0, (long)(4096u * 1000000000ull / opt.link_rate % 1000000000ull)};
    (void)ppoll(fds, n, sending ? &packet : NULL, NULL);
    if (fds[0].revents & POLLIN) {
        uint64_t count;
        (void)!read(wake_fd, &count, sizeof count);
    }
}

// The device is done with a collective before the last chunks have left.
static bool empty(void)
{
    for (int i = 0; i < opt.channels; i++) {
        if (head_of(&senders[i]) != NULL || head_of(&receivers[i]) != NULL) {
            return false;
        }
    }
    return true;
}

static bool over(void) { return (empty() && atomic_load(&ended)) || atomic_load(&failed); }

void proxy_drain(void)
{
    while (!empty() && !atomic_load(&failed) && !atomic_load(&stopping)) {
        usleep(1000);
    }
}

static void *run(void *arg)
{
    (void)arg;
    while (!over()) {
        if (progress()) {
            continue;
        }
        // From here on the device wakes us: what it did before, progress sees.
        atomic_store(&asleep, true);
        if (!progress() && !over()) {
            doze();
        }
        atomic_store(&asleep, false);
    }
    return NULL;
}

void proxy_start(void)
{
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bucket.at = now_ns();
    pthread_create(&thread, NULL, run, NULL);
    pthread_setname_np(thread, "proxy");
}

void proxy_stop(void)
{
    atomic_store(&ended, true);
    atomic_store(&asleep, true);
    proxy_wake();
    pthread_join(thread, NULL);
    close(wake_fd);
}
