// SPDX-License-Identifier: Apache-2.0

// What a rank measured of itself, as lines of JSON.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

#define KEPT (1u << 16) // steps that percentiles are taken of: the last ones

static uint64_t took[KEPT], callbacks[KEPT], order[KEPT];
static uint64_t count;
static FILE *file;
static uint64_t told;

void stats_step(uint64_t start, uint64_t ns, uint64_t in_callbacks)
{
    took[count % KEPT] = ns;
    callbacks[count % KEPT] = in_callbacks;
    count++;
    if (opt.times == NULL) {
        return;
    }
    if (file == NULL && (file = fopen(opt.times, "we")) == NULL) {
        fail("write %s: %s", opt.times, strerror(errno));
        return;
    }
    fprintf(file, "%llu %llu %llu\n", (unsigned long long)start, (unsigned long long)ns, (unsigned long long)in_callbacks);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t sorted(const uint64_t *of)
{
    uint64_t n = count < KEPT ? count : KEPT;
    memcpy(order, of, n * sizeof *order);
    qsort(order, n, sizeof *order, compare);
    return n;
}

static double quantile_ms(uint64_t n, double q) { return n == 0 ? 0 : (double)order[(uint64_t)(q * (double)(n - 1) + 0.5)] / 1e6; }

static double mean_ms(const uint64_t *of)
{
    uint64_t n = count < KEPT ? count : KEPT;
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += (double)of[i];
    }
    return n == 0 ? 0 : sum / (double)n / 1e6;
}

void stats_print(long steps, float first, float last, bool identical)
{
    if (file != NULL) {
        fclose(file);
    }
    uint64_t n = sorted(took);
    printf("{\"done\":true,\"rank\":%d,\"steps\":%ld,\"abi\":%d,\"loss_first\":%.6f,\"loss_last\":%.6f,\"weights_identical\":%s,", opt.rank, steps,
           profiler.table != NULL ? profiler.abi : 0, (double)first, (double)last, identical ? "true" : "false");
    printf("\"iteration_ms\":{\"p50\":%.4f,\"p95\":%.4f,\"mean\":%.4f},", quantile_ms(n, .5), quantile_ms(n, .95), mean_ms(took));
    n = sorted(callbacks);
    printf("\"callbacks_ms\":{\"p50\":%.6f,\"p99\":%.6f,\"max\":%.6f}}\n", quantile_ms(n, .5), quantile_ms(n, .99), quantile_ms(n, 1));
    fflush(stdout);
}

void stats_progress(long step, float loss)
{
    uint64_t now = now_ns();
    if (!opt.progress || (told != 0 && now - told < 20 * MS)) {
        return;
    }
    told = now;
    printf("{\"step\":%ld,\"iteration_ms\":%.3f,\"loss\":%.6f}\n", step, (double)took[(count - 1) % KEPT] / 1e6, (double)loss);
    fflush(stdout);
}
