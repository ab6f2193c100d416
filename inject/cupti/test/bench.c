// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// What it costs to read a record, without the pauses, with the stand-in of libcupti: of a buffer of
// kernels and their launches, 2,000 of each, ROUNDS times.
//
//   bench MOCK DIRECTORY
#include "cupti.h"
#include "lockstep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 500
#define PAIRS 2000u
#define KERNEL_SIZE 248u
#define CALL_SIZE 40u

int InitializeInjection(void);

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t fill(uint8_t *buffer, uint64_t now, uint32_t from)
{
    static char names[40][160];
    uint8_t *at = buffer;
    for (uint32_t i = 0; i < PAIRS; i++) {
        char *name = names[i % 40];
        if (name[0] == '\0') {
            snprintf(name, sizeof names[0], "_ZN2at6native29vectorized_elementwise_kernelILi%uENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
                     i % 40);
        }
        struct cupti_call call = {.kind = CUPTI_RUNTIME, .start = now, .end = now + 1, .thread = 1, .correlation = from + i};
        struct cupti_kernel kernel = {.kind = CUPTI_KERNEL, .start = now + 2, .end = now + 3, .correlation = from + i,
                                      .name = (uint64_t)(uintptr_t)name};
        memcpy(at, &call, sizeof call);
        memset(at + CALL_SIZE, 0, KERNEL_SIZE);
        memcpy(at + CALL_SIZE, &kernel, sizeof kernel);
        at += CALL_SIZE + KERNEL_SIZE;
    }
    return (size_t)(at - buffer);
}

static void take_work(struct lockstep_ring *r, const uint8_t *record, size_t size, uint64_t now)
{
    cupti_take_work(r, record, size, now);
}

int main(int argc, char **argv)
{
    static double ns[ROUNDS];
    double sum = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: bench MOCK DIRECTORY\n");
        return 2;
    }
    setenv("LOCKSTEP_CUPTI", argv[1], 1);
    setenv("LOCKSTEP_DIR", argv[2], 1);
    InitializeInjection();
    struct lockstep_ring *r = lockstep_ring_process();
    if (r == NULL || (uint32_t)atomic_load(&r->header->cupti) != LOCKSTEP_CUPTI_ACTIVE) {
        fprintf(stderr, "%s\n", lockstep_status());
        return 1;
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint8_t *buffer;
        size_t size, most;
        uint64_t now;
        cupti_request(&buffer, &size, &most);
        if (buffer == NULL || cupti.timestamp(&now) != CUPTI_OK) {
            return 1;
        }
        size_t valid = fill(buffer, now, 1 + i * PAIRS);
        uint64_t before = lockstep_now();
        cupti_names_begin();
        cupti_walk(r, buffer, valid, now, cupti_take_call);
        cupti_walk(r, buffer, valid, now, take_work);
        ns[i] = (double)(lockstep_now() - before) / (2 * PAIRS);
        cupti_complete(NULL, 0, buffer, size, 0);
        cupti_wait_read(UINT64_MAX);
        sum += ns[i];
    }
    qsort(ns, ROUNDS, sizeof ns[0], by_value);
    printf("read: %.0f ns per record at the median of %d buffers, %.0f in the mean (%u records in each; half of them kernels)\n",
           ns[ROUNDS / 2], ROUNDS, sum / ROUNDS, 2 * PAIRS);
    return atomic_load(&r->header->drops[LOCKSTEP_D_CUPTI_GARBAGE]) == 0 ? 0 : 1;
}
