// SPDX-License-Identifier: Apache-2.0

// Records that prove themselves: every word is a function of the thread and of the
// number of the record in that thread, so that words of two records never fit
// together.
//   word 1: an operation (func 1, AllReduce) of level 1
//   word 2: thread; word 3: number, from 0, below 2^40
//   word i, 4 to 15: mix((i << 56) + (thread << 40) + number)
// where mix is the finalizer of splitmix64.
#ifndef LOCKSTEP_PATTERN_H
#define LOCKSTEP_PATTERN_H

#include "ring.h"

static inline uint64_t pattern_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static inline uint64_t pattern_word(unsigned i, uint64_t thread, uint64_t number)
{
    return pattern_mix(((uint64_t)i << 56) + (thread << 40) + number);
}

static inline void pattern_fill(uint64_t word[LOCKSTEP_WORDS], unsigned level, uint64_t thread, uint64_t number)
{
    word[0] = 0;
    word[1] = lockstep_head(LOCKSTEP_OP, level, 0, 0, 1, 0);
    word[2] = thread;
    word[3] = number;
    for (unsigned i = 4; i < LOCKSTEP_WORDS; i++) {
        word[i] = pattern_word(i, thread, number);
    }
}

static inline bool pattern_holds(const uint64_t word[LOCKSTEP_WORDS])
{
    bool ok = (word[1] & 0xff) == LOCKSTEP_OP;
    for (unsigned i = 4; i < LOCKSTEP_WORDS; i++) {
        ok &= word[i] == pattern_word(i, word[2], word[3]);
    }
    return ok;
}

#endif
