/* SPDX-License-Identifier: Apache-2.0 */

/* DeepSpeed's order: rank 0 names the save in `latest` when its own part is written, and
 * waits for the others only then. A shard is partly written before it is whole. Any process
 * may stop for ever between any two steps, which is a crash of the job: what is on the disk
 * then is what a resume finds. */
#define N 3

byte shard[N] = 1; /* 1: the old save; 2: partly written; 3: the new save, whole */
byte latest = 1; /* the save that a resume takes: 1 the old, 2 the new */

proctype rank(byte me) {
	shard[me] = 2;
	shard[me] = 3;
	if
	:: me == 0 -> latest = 2
	:: else
	fi
}

init {
	atomic {
		byte i = 0;
		do
		:: i < N -> run rank(i); i++
		:: else -> break
		od
	}
}

#define whole (shard[0] == 3 && shard[1] == 3 && shard[2] == 3)

/* What `latest` names is whole, at every instant. */
ltl safe { [] (latest == 2 -> whole) }
