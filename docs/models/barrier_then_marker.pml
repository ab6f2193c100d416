/* SPDX-License-Identifier: Apache-2.0 */

/* Megatron's order, and DCP's in a fresh folder: all shards, a barrier, then the marker that
 * makes the save the one to load. A shard is partly written before it is whole. Any process
 * may stop for ever between any two steps. */
#define N 3

byte shard[N]; /* 0: not there; 2: partly written; 3: whole */
byte done; /* ranks at the barrier */
byte latest = 1; /* 1: the old save, in a folder of its own; 2: the new */

proctype rank(byte me) {
	shard[me] = 2;
	shard[me] = 3;
	done++;
	if
	:: me == 0 -> done == N; latest = 2
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

/* Expected to be violated: the model does come to name the new save. */
ltl idle { [] (latest == 1) }
