// SPDX-License-Identifier: Apache-2.0

// What a callback costs, on one thread that does nothing else.
//
//   bench PLUGIN DIRECTORY
#define _GNU_SOURCE
#include "driver.h"

#include <unistd.h>

// Batches, so that the clock is read 1,000 times less often than a callback runs.
#define BATCH 1000
#define ROUNDS 2000

static double sample[ROUNDS];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void *ctx, *op, *proxy;
static void *kept[BATCH];
static uint64_t number;

static void *call(struct abi_event *e)
{
    void *h;
    nccl.table->start(ctx, &h, e);
    return h;
}

static void coll(void)
{
    struct abi_event e = {.type = T_COLL, .coll = {.func = "AllReduce", .count = 256, .datatype = "ncclFloat32",
                                                  .channels = 1, .algo = "RING", .proto = "SIMPLE"}};
    for (int i = 0; i < BATCH; i++) {
        e.coll.seq = number++;
        kept[i] = call(&e);
        nccl.table->stop(kept[i]);
    }
}

static void kernel(void)
{
    union abi_args a;
    for (int i = 0; i < BATCH; i++) {
        struct abi_event e = {.type = T_KERNEL_CH, .parent = kept[i], .kernel_ch = {0, 1000 + number * 10}};
        void *h = call(&e);
        a.timer = 1005 + number++ * 10;
        nccl.table->state(h, S_KERNEL_CH_STOP, &a);
        nccl.table->stop(h);
    }
}

static void step(void)
{
    for (int i = 0; i < BATCH; i++) {
        struct abi_event e = {.type = T_PROXY_STEP, .parent = proxy, .proxy_step = {i}};
        union abi_args a = {.trans_size = 4096};
        void *h = call(&e);
        nccl.table->state(h, S_SEND_GPU_WAIT, NULL);
        nccl.table->state(h, S_SEND_PEER_WAIT, &a);
        nccl.table->state(h, S_SEND_WAIT, &a);
        nccl.table->stop(h);
    }
}

static void nothing(void)
{
    for (int i = 0; i < BATCH; i++) {
        lockstep_now();
    }
}

static void measure(const char *name, int callbacks, void (*before)(void), void (*run)(void), void (*after)(void))
{
    for (int i = 0; i < ROUNDS; i++) {
        if (before != NULL) {
            before();
        }
        uint64_t from = lockstep_now();
        run();
        sample[i] = (double)(lockstep_now() - from) / BATCH;
        if (after != NULL) {
            after();
        }
    }
    qsort(sample, ROUNDS, sizeof sample[0], compare);
    double p50 = sample[ROUNDS / 2], p99 = sample[ROUNDS * 99 / 100];
    printf("%-34s %5.0f ns (p99 %5.0f), %d callbacks: %4.0f ns each\n", name, p50, p99, callbacks, p50 / callbacks);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench PLUGIN DIRECTORY\n");
        return 2;
    }
    driver_plugin = argv[1];
    driver_dir = argv[2];
    setenv("LOCKSTEP_DIR", driver_dir, 1);
    printf("median of %d batches of %d, level %s\n", ROUNDS, BATCH,
           getenv("LOCKSTEP_LEVEL") != NULL ? getenv("LOCKSTEP_LEVEL") : "collectives");
    nccl_load(5);
    ctx = comm_init(7, 8, 0, "bench");
    measure("reading the clock", 1, NULL, nothing, NULL);
    measure("Coll: start, stop", 2, NULL, coll, kernel);
    measure("KernelCh: start, state, stop, record", 3, coll, kernel, NULL);
    op = enqueue(ctx, number, 1);
    proxy = start_proxy_op(ctx, op, getpid(), 0, 1, true);
    measure("ProxyStep: start, 3 states, stop", 5, NULL, step, NULL);
    comm_finalize(ctx);
    return 0;
}
