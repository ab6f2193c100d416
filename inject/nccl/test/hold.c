// SPDX-License-Identifier: Apache-2.0

// An event that is under way while its operation ends writes into nothing else:
// the slot of what somebody holds is not given to the next.
//
//   hold DIRECTORY
#include "op.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                    \
    do {                                                               \
        if (!(cond)) {                                                 \
            printf("    %s:%d: %s\n", __FILE__, __LINE__, #cond);      \
            exit(1);                                                   \
        }                                                              \
    } while (0)

int main(int argc, char **argv)
{
    int mask = 0;
    void *ctx = NULL;
    bool finished;
    setenv("LOCKSTEP_DIR", argc > 1 ? argv[1] : ".", 1);
    setenv("LOCKSTEP_RING_SLOTS", "1", 1);
    struct lockstep_ring *r = lockstep_ring_process();
    CHECK(r != NULL && r->nslots == 1);
    struct naming n = {.hash = 7, .name = "world", .nodes = 1, .ranks = 2};
    CHECK(context_init(&ctx, &mask, 7, &n) == 0);
    struct context *c = context_of(ctx, &finished);
    struct op_descr d = {.func = "AllReduce", .datatype = "ncclFloat32", .channels = 1};
    uint64_t h = body_of(op_begin(r, c, &d));
    struct lockstep_slot *s;
    CHECK(h != 0);

    struct op *o = op_hold(r, h, &s);
    CHECK(o != NULL && op_hold(r, h, &s) == o);
    op_enqueued_only(r, h); // ends meanwhile
    CHECK(op_begin(r, c, &d) == 0);
    CHECK(op_hold(r, h, &s) == NULL);
    s = &r->slots[0];
    put(&o->waits[WAIT_WIRE], 4711); // what the late event still writes
    op_release(r, o, s, h);
    CHECK(op_begin(r, c, &d) == 0); // one holds it yet
    op_release(r, o, s, h);

    uint64_t next = body_of(op_begin(r, c, &d));
    CHECK(next != 0 && next != h && op_hold(r, h, &s) == NULL);
    CHECK(op_hold(r, next, &s) == o && get(&o->waits[WAIT_WIRE]) == 0);
    op_release(r, o, s, next);
    op_enqueued_only(r, next);
    CHECK(op_begin(r, c, &d) != 0);
    CHECK(context_finalize(ctx) == 0);
    printf("hold: ok\n");
    return 0;
}
