// SPDX-License-Identifier: Apache-2.0

// The model: 64 -> 256 -> 128 -> 8, tanh between layers, squared error against
// a fixed random teacher of the same shape; plain stochastic gradient descent.
// Every rank starts from the same weights and draws its own batches.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

static const size_t width[LAYERS + 1] = {64, 256, 128, 8};

#define RATE 0.05f

struct bucket buckets[LAYERS];

static struct layer {
    float *w, *teacher;          // inputs x outputs, then a row of biases
    float *in, *delta;           // activations before it; error after it
} layers[LAYERS];
static float *out, *target;      // BATCH x 8
static int world;
static float vote;
static float last_loss, last_votes;

static uint64_t rng_next(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static float uniform(uint64_t *s) { return (float)(rng_next(s) >> 40) / (float)(1 << 23) - 1; }

static size_t weights_of(int l) { return (width[l] + 1) * width[l + 1]; }

static void *zeroed(size_t floats)
{
    void *p = calloc(floats, sizeof(float));
    if (p == NULL) {
        abort();
    }
    return p;
}

void model_init(int ranks)
{
    world = ranks;
    uint64_t mine = 1, theirs = 2;
    for (int l = 0; l < LAYERS; l++) {
        size_t n = weights_of(l);
        layers[l].w = zeroed(n);
        layers[l].teacher = zeroed(n);
        layers[l].in = zeroed(BATCH * width[l]);
        layers[l].delta = zeroed(BATCH * width[l + 1]);
        float scale = 1.7f / sqrtf((float)width[l]);
        for (size_t i = 0; i < n; i++) {
            layers[l].w[i] = scale * uniform(&mine);
            layers[l].teacher[i] = scale * uniform(&theirs);
        }
        buckets[l] = (struct bucket){zeroed(n + 2), n + (l == 0 ? 2 : 0)};
    }
    out = zeroed(BATCH * width[LAYERS]);
    target = zeroed(BATCH * width[LAYERS]);
}

static void apply(const float *w, const float *x, float *y, size_t in, size_t outs, bool squash)
{
    for (size_t b = 0; b < BATCH; b++) {
        float *row = y + b * outs;
        memcpy(row, w + in * outs, outs * sizeof(float));
        for (size_t i = 0; i < in; i++) {
            float v = x[b * in + i];
            const float *wi = w + i * outs;
            for (size_t o = 0; o < outs; o++) {
                row[o] += v * wi[o];
            }
        }
        for (size_t o = 0; squash && o < outs; o++) {
            row[o] = tanhf(row[o]);
        }
    }
}

void model_batch(int rank, long step)
{
    static float a[BATCH * 256], b[BATCH * 256];
    uint64_t s = (uint64_t)step * 1000003u + (uint64_t)rank * 7919u + 17;
    for (size_t i = 0; i < BATCH * width[0]; i++) {
        layers[0].in[i] = uniform(&s);
    }
    apply(layers[0].teacher, layers[0].in, a, width[0], width[1], true);
    apply(layers[1].teacher, a, b, width[1], width[2], true);
    apply(layers[2].teacher, b, target, width[2], width[3], false);
}

static float *output_of(int l) { return l + 1 < LAYERS ? layers[l + 1].in : out; }

void model_forward(int l)
{
    apply(layers[l].w, layers[l].in, output_of(l), width[l], width[l + 1], l + 1 < LAYERS);
}

static float error_of_output(void)
{
    float sum = 0;
    size_t n = BATCH * width[LAYERS];
    for (size_t i = 0; i < n; i++) {
        float e = out[i] - target[i];
        layers[LAYERS - 1].delta[i] = e / BATCH;
        sum += e * e;
    }
    return sum / (float)n;
}

static void pass_error_down(int l)
{
    size_t in = width[l], outs = width[l + 1];
    for (size_t b = 0; b < BATCH; b++) {
        const float *d = layers[l].delta + b * outs;
        for (size_t i = 0; i < in; i++) {
            const float *wi = layers[l].w + i * outs;
            float sum = 0;
            for (size_t o = 0; o < outs; o++) {
                sum += d[o] * wi[o];
            }
            float v = layers[l].in[b * in + i];
            layers[l - 1].delta[b * in + i] = sum * (1 - v * v);
        }
    }
}

void model_backward(int l)
{
    size_t in = width[l], outs = width[l + 1];
    float *g = buckets[l].data;
    memset(g, 0, weights_of(l) * sizeof(float));
    if (l == LAYERS - 1) {
        float *tail = buckets[0].data + weights_of(0);
        tail[0] = error_of_output();
        tail[1] = vote;
    }
    for (size_t b = 0; b < BATCH; b++) {
        const float *d = layers[l].delta + b * outs;
        for (size_t i = 0; i < in; i++) {
            float v = layers[l].in[b * in + i];
            for (size_t o = 0; o < outs; o++) {
                g[i * outs + o] += v * d[o];
            }
        }
        for (size_t o = 0; o < outs; o++) {
            g[in * outs + o] += d[o];
        }
    }
    if (l > 0) {
        pass_error_down(l);
    }
}

void model_update(void)
{
    for (int l = 0; l < LAYERS; l++) {
        const float *g = buckets[l].data;
        size_t n = weights_of(l);
        float rate = RATE / (float)world;
        for (size_t i = 0; i < n; i++) {
            layers[l].w[i] -= rate * g[i];
        }
    }
    const float *tail = buckets[0].data + weights_of(0);
    last_loss = tail[0] / (float)world;
    last_votes = tail[1];
}

float model_loss(void) { return last_loss; }
float model_votes(void) { return last_votes; }
void model_vote(bool stop) { vote = stop ? 1 : 0; }

const float *model_weights(int l, size_t *count)
{
    *count = weights_of(l);
    return layers[l].w;
}

uint64_t model_hash(void)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (int l = 0; l < LAYERS; l++) {
        const unsigned char *p = (const unsigned char *)layers[l].w;
        for (size_t i = 0; i < weights_of(l) * sizeof(float); i++) {
            h = (h ^ p[i]) * 0x100000001b3ull;
        }
    }
    return h;
}
