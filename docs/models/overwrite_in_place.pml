/* SPDX-License-Identifier: Apache-2.0 */

/* PyTorch DCP with overwrite, its default, into the folder of an earlier save: shards are
 * written over those of the earlier save, and the earlier .metadata stays valid until the
 * new one replaces it (removed, then renamed). Names and offsets are the same in both, so
 * that a loader that finds .metadata reads whatever bytes are there. */
#define N 3

byte shard[N] = 1; /* the save whose bytes a shard holds */
byte metadata = 1; /* 0: none; else the save that wrote it */
byte done;

proctype rank(byte me) {
	shard[me] = 2;
	done++;
	if
	:: me == 0 -> done == N; metadata = 0; metadata = 2
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

#define of_one(e) (shard[0] == e && shard[1] == e && shard[2] == e)

/* Whenever a loader finds .metadata, all shards are of the save that wrote it. */
ltl safe { [] (metadata == 0 || (metadata == 1 && of_one(1)) || (metadata == 2 && of_one(2))) }
