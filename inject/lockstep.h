// SPDX-License-Identifier: Apache-2.0

// What a program may say of itself. All of it is exported by
// libnccl-profiler-lockstep.so, for dlsym, ctypes or the linker; all of it does
// nothing where the process has no ring. No call waits, fails or allocates memory
// once the calling thread is known, but for the last two.
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCKSTEP_EXPORT __attribute__((visibility("default")))

// Version of this interface. It only grows.
LOCKSTEP_EXPORT uint32_t lockstep_abi(void); // 3; 2 had neither resumes nor fingerprints, 1 steps and the first two calls for scopes

// Where the ring is, or why there is none; and how CUPTI came off. Never NULL.
LOCKSTEP_EXPORT const char *lockstep_status(void);

// A step of the job begins; the same number on all ranks. Each call has a record,
// so it is for steps, of which there are at most some hundred a second.
LOCKSTEP_EXPORT void lockstep_step_begin(int64_t step);

enum lockstep_phase {
    LOCKSTEP_PHASE_NONE = 0, LOCKSTEP_PHASE_INIT, LOCKSTEP_PHASE_COMPILE, LOCKSTEP_PHASE_TRAIN,
    LOCKSTEP_PHASE_EVAL, LOCKSTEP_PHASE_CHECKPOINT, LOCKSTEP_PHASE_INFERENCE,
};

// A scope that may end on another thread, or while later ones are open.
LOCKSTEP_EXPORT uint64_t lockstep_scope_begin(const char *name, int phase); // for its end; 0: not recorded
LOCKSTEP_EXPORT void lockstep_scope_end(uint64_t scope);

// A scope of the calling thread, by the code of its name: code | phase << 16. pop
// ends the innermost open one of that name, wherever others end.
LOCKSTEP_EXPORT uint32_t lockstep_scope_name(const char *name); // 0: no room, or no ring
LOCKSTEP_EXPORT void lockstep_scope_push(uint32_t name_phase);
LOCKSTEP_EXPORT void lockstep_scope_pop(uint32_t name_phase);

// The current step works for a span of a trace: W3C trace id and span id, as bytes.
LOCKSTEP_EXPORT void lockstep_link(const uint8_t trace_id[16], const uint8_t span_id[8]);

// What this process has loaded as it resumed, before its first step: step, from 0;
// optimizer_step -1: not said; data_cursor, where the data begin, rng_digest, of the states of
// random generators, and replica, which names the ranks that share those two, NULL: not said.
// Texts have 32 bytes at most; a longer one is left out. Ranks of one job agree on both steps, and
// those of one replica on the rest; the n-th call of a rank is compared with the n-th of others.
LOCKSTEP_EXPORT void lockstep_resumed(int64_t step, int64_t optimizer_step, const char *data_cursor,
                                      const uint8_t rng_digest[16], const char *replica);

// What total parameters from start on hash to after a step. Replicas of one group, of which there
// are so many (0: not said), hash alike. The group's name has 1 to 32 bytes.
LOCKSTEP_EXPORT void lockstep_fingerprint(int64_t step, uint64_t hash, uint64_t start, uint64_t total,
                                          const char *group, uint32_t replicas);

// Collectives of libraries that have no profiler interface (Gloo, say). A group is
// known by a hash on which its members agree. Operations are numbered per group and
// function from 0, as NCCL does. func and dtype as NCCL spells them ("AllReduce",
// "ncclFloat32"); root -1: none.
LOCKSTEP_EXPORT uint32_t lockstep_group_open(uint64_t hash, int32_t size, int32_t rank, const char *name); // 0: no room
LOCKSTEP_EXPORT void lockstep_group_close(uint32_t group);
LOCKSTEP_EXPORT uint64_t lockstep_collective_begin(uint32_t group, const char *func, uint64_t bytes, int32_t root, const char *dtype); // 0: not followed
LOCKSTEP_EXPORT void lockstep_collective_end(uint64_t handle); // on whichever thread

// CUPTI belongs to one client. Call pause before another profiler of the program begins:
// ours stops, and records what CUPTI has. Call resume after that profiler has ended: ours
// begins again, also where the profiler keeps its subscription. A resume that comes
// earlier takes the profiler's records. Pauses count: ours begins again at the resume that
// ends the last of them; a resume without a pause retries a start that was refused or
// yielded. Pauses before CUDA's first use count, too.
// Both return 0 or CUPTI's result, 39 where another client has CUPTI. They wait for CUPTI
// for a second at most: -1 says that ours follows as soon as CUPTI lets go.
LOCKSTEP_EXPORT int lockstep_cupti_pause(void);
LOCKSTEP_EXPORT int lockstep_cupti_resume(void);

#ifdef __cplusplus
}
#endif

#endif
