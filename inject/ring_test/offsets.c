// SPDX-License-Identifier: Apache-2.0

// offsets prints where every field of ring.h lies: "struct.field offset size".
// The tables of docs/format/ring.md are compared with it.
#include "ring.h"

#include <stdio.h>

#define FIELD(type, field) \
    printf(#type "." #field " %zu %zu\n", offsetof(struct lockstep_##type, field), \
           sizeof(((struct lockstep_##type *)0)->field))
#define SIZE(type) printf(#type " 0 %zu\n", sizeof(struct lockstep_##type))

static void header(void)
{
    SIZE(header);
    FIELD(header, magic);
    FIELD(header, version);
    FIELD(header, header_size);
    FIELD(header, file_size);
    FIELD(header, boot_id);
    FIELD(header, pid);
    FIELD(header, start_time);
    FIELD(header, created);
    FIELD(header, rank);
    FIELD(header, local_rank);
    FIELD(header, world_size);
    FIELD(header, restart);
    FIELD(header, retain_seconds);
    FIELD(header, reserved0);
    FIELD(header, heartbeat);
    FIELD(header, state);
    FIELD(header, step);
    FIELD(header, clock_pairs);
    FIELD(header, level);
    FIELD(header, job_id);
    FIELD(header, job_name);
    FIELD(header, host_name);
    FIELD(header, host_id);
    FIELD(header, run_id);
    FIELD(header, producer);
    FIELD(header, witnesses);
    FIELD(header, cupti);
    FIELD(header, reserved1);
    FIELD(header, sections);
    FIELD(header, reserved2);
    FIELD(header, drops);
    FIELD(header, reserved3);
    FIELD(header, pairs);
    FIELD(header, reserved4);
}

static void parts(void)
{
    SIZE(section);
    FIELD(section, kind);
    FIELD(section, entry_size);
    FIELD(section, offset);
    FIELD(section, count);
    FIELD(section, reserved);
    SIZE(clock_pair);
    FIELD(clock_pair, raw);
    FIELD(clock_pair, realtime);
    FIELD(clock_pair, width);
    FIELD(clock_pair, number);
    SIZE(control);
    FIELD(control, level);
    FIELD(control, pid);
    FIELD(control, at);
    FIELD(control, reserved);
}

static void tables(void)
{
    SIZE(string);
    FIELD(string, state);
    FIELD(string, text);
    SIZE(comm);
    FIELD(comm, state);
    FIELD(comm, hash);
    FIELD(comm, nranks);
    FIELD(comm, rank);
    FIELD(comm, nnodes);
    FIELD(comm, abi);
    FIELD(comm, gpu);
    FIELD(comm, reserved);
    FIELD(comm, created);
    FIELD(comm, name);
    FIELD(comm, reserved1);
    SIZE(gpu);
    FIELD(gpu, state);
    FIELD(gpu, uuid);
    FIELD(gpu, device);
    FIELD(gpu, reserved);
    FIELD(gpu, reserved1);
}

static void live(void)
{
    SIZE(frontier);
    FIELD(frontier, key);
    FIELD(frontier, enqueued);
    FIELD(frontier, enqueued_at);
    FIELD(frontier, started);
    FIELD(frontier, started_at);
    FIELD(frontier, completed);
    FIELD(frontier, completed_at);
    FIELD(frontier, open);
    FIELD(frontier, total);
    FIELD(frontier, inferred);
    FIELD(frontier, reserved);
    SIZE(slot);
    FIELD(slot, word);
    FIELD(slot, order);
    FIELD(slot, children);
    FIELD(slot, last);
    FIELD(slot, waits);
    FIELD(slot, spare);
    SIZE(lane);
    FIELD(lane, owner);
    FIELD(lane, head);
    FIELD(lane, claims);
    FIELD(lane, scope);
    FIELD(lane, scope_at);
    FIELD(lane, reserved);
}

int main(void)
{
    header();
    parts();
    tables();
    live();
    return 0;
}
