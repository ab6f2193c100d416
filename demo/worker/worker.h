// SPDX-License-Identifier: Apache-2.0

// One rank of a small training job that has the shape of one on GPUs: a host
// that enqueues, a device with two streams, a proxy that moves data, and a
// profiler thread that delivers the device's stamps late.
#ifndef DEMO_WORKER_H
#define DEMO_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#define MAX_RANKS 64
#define MAX_CHANNELS 4
#define MS 1000000ull // ns

enum fault {
    FAULT_NONE,
    FAULT_COMPUTE,
    FAULT_HOST,
    FAULT_LINK,
    FAULT_COMPILE,
    FAULT_DATALOADER,
    FAULT_GC,
    FAULT_CHECKPOINT,
    // After these the job stands still.
    FAULT_HANG,
    FAULT_EXIT,
    FAULT_MISMATCH,
};

enum { PHASE_COMPILE = 2, PHASE_TRAIN = 3, PHASE_EVAL = 4, PHASE_CHECKPOINT = 5 }; // enum lockstep_phase

// A time that the host spends in a scope, before a step and every so many after it.
struct pause {
    int rank;
    char scope[32];
    long first, every; // steps; every 0: once
    long ms;
};
#define MAX_PAUSES 8

struct options {
    int rank, ranks, channels;
    long steps; // 0: until told to stop
    enum fault fault;
    long fault_from; // first step with the fault
    long checkpoint_every; // steps; 0: never
    bool pace, markers, callback_times, progress;
    bool patient; // waits for a peer that is gone, until told to stop, as NCCL does without a timeout
    struct pause pauses[MAX_PAUSES];
    int pause_count;
    uint32_t chunk;      // bytes of one step of the proxy
    uint64_t link_rate;  // bytes per second of a throttled link
    uint64_t poll_ns;    // pause of the profiler thread between looks
    int abi;             // 0: newest that the plugin has
    const char *meet;    // directory where ranks find each other
    const char *cleanup; // directory to remove where the parent died before us
    const char *times;   // file for the times of all steps
};

extern struct options opt;
int options_parse(int argc, char **argv); // 0, or the exit status

// Time.
uint64_t now_ns(void);           // MONOTONIC_RAW
uint64_t device_clock(void);     // of this rank's simulated GPU
void device_clock_init(int rank);
void sleep_until(uint64_t from_raw, uint64_t ns);

// Failure, said once; who waits for anything waits for this, too.
extern atomic_bool failed;
extern atomic_bool stopping; // SIGINT or SIGTERM came
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void give_up(void); // ends what waits, as failure does, and is none

// Model: a perceptron of three layers, its gradients in three buckets.
enum { LAYERS = 3, BATCH = 16 };
struct bucket {
    float *data;
    size_t count;
};
extern struct bucket buckets[LAYERS]; // gradients of layer i; the last two values of layer 0's are loss and stop vote
void model_init(int ranks);
void model_batch(int rank, long step);
void model_forward(int layer);
void model_backward(int layer);
void model_update(void);
float model_loss(void);       // mean over ranks, of the last finished step
float model_votes(void);      // ranks that want to stop
void model_vote(bool stop);   // of this rank, for the step to come
uint64_t model_hash(void);
const float *model_weights(int layer, size_t *count);

// Writes this rank's part of the weights to a file, and has it reach the disk.
void checkpoint_write(long step);

// Device: streams run kernels in order, and one kernel may wait for another of
// the other stream.
struct stream;
extern struct stream compute_stream, comm_stream;
struct kernel {
    void (*run)(void *arg, int n);
    void *arg;
    int n;
    const char *name;       // as a compiler mangles it
    uint64_t nominal;       // ns that a healthy device takes
    struct stream *after;   // NULL, or: not before kernel `ticket` of it is done
    uint64_t ticket;
    uint32_t stream, correlation; // for CUPTI
};
struct stream {
    uint32_t number; // as CUPTI numbers it
    pthread_t thread;
    struct kernel queue[64];
    uint64_t pushed, done;
};
void device_start(double slowdown);
uint64_t stream_push(struct stream *s, struct kernel k);
bool stream_wait(struct stream *s, uint64_t ticket); // false: failed
void device_stop(void);
void device_slow(double slowdown); // for kernels that start from now on
void device_wait(bool (*ready)(void *), void *arg); // of a kernel for the proxy; returns when failed, too
void device_wake(void); // after received or sent rose, or all failed

// Profiler plugin.
struct profiler {
    void *lib;
    struct table *table;
    void *ctx;
    int abi;
    atomic_int mask;
    void (*step_begin)(int64_t);
    uint64_t (*scope_begin)(const char *, int);
    void (*scope_end)(uint64_t);
};
extern struct profiler profiler;
bool profiler_load(void);
void profiler_init(uint64_t hash);
void profiler_finalize(void);
void *event_start(struct descr *d);
void event_state(void *handle, int state, union state_args *args);
void event_stop(void *handle);
uint64_t callback_ns_take(void); // ns this thread spent in the plugin since the last call
uint64_t scope_begin(const char *name);
uint64_t scope_begin_phase(const char *name, int phase);
void scope_end(uint64_t scope);
void step_begin(int64_t step);

// CUPTI's records, where LOCKSTEP_CUPTI is the path of a stand-in for it.
bool cupti_load(void);
uint64_t cupti_now(void);
uint32_t cupti_correlation(void); // of the next launch
void cupti_launched(uint32_t correlation, uint64_t start);
void cupti_ran(const struct kernel *k, uint64_t start);
void cupti_flush(void);

// Collectives.
#define FIFO 8 // chunks in flight per connection and direction
struct collective {
    float *data;
    size_t count;
    uint64_t seq;
    int mask; // events asked for when it was enqueued
    bool odd; // of another size than the peers': nothing of it moves
    void *handle;
    atomic_int users; // device, poller, each flow of the proxy
    struct part {
        size_t offset, count;
        uint64_t work;        // number of its kernel on this channel, from 1
        uint64_t base, steps; // first step of its flows; how many
    } parts[MAX_CHANNELS];
};
// A stretch of the data.
struct chunk {
    size_t offset, count;
};
struct chunk chunk_of(const struct collective *c, int channel, uint64_t loop, int phase);
struct chunk chunk_of_step(const struct collective *c, int channel, uint64_t step, bool send);
void collective_release(struct collective *c);
void collective_first(void); // the next one has sequence number 0
// Returns its ticket on comm_stream.
uint64_t all_reduce(float *data, size_t count, struct stream *after, uint64_t ticket);
// The same in a size that no peer has.
uint64_t all_reduce_odd(float *data, size_t count, struct stream *after, uint64_t ticket);

// Connections and the buffers between device and proxy.
struct channel {
    int send_fd, recv_fd;
    float *send_buf[FIFO], *recv_buf[FIFO];
    _Atomic uint64_t ready;    // filled by the device
    _Atomic uint64_t sent;     // done by the proxy
    _Atomic uint64_t received; // flushed, for the device to take
    _Atomic uint64_t consumed; // by the device
};
extern struct channel channels[MAX_CHANNELS];
extern uint64_t comm_hash;
bool comm_connect(void);
void comm_close(void);
void proxy_start(void);
void proxy_append(struct collective *c);
void proxy_wake(void);
void proxy_throttle(bool on);
void proxy_drain(void); // until all that was appended has left and arrived
void proxy_stop(void);

// Stamps of the device, and the thread that delivers them.
void stamp_start(int channel, uint64_t work);
void stamp_stop(int channel, uint64_t work);
void poller_start(void);
void poller_post(struct collective *c);
void poller_stop(void); // after all that was posted has been delivered

// Results.
void stats_step(uint64_t start, uint64_t took, uint64_t callbacks);
void stats_print(long steps, float first, float last, bool identical);
void stats_progress(long step, float loss);

#endif
