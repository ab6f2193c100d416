/* SPDX-License-Identifier: Apache-2.0 */

/* PyTorch DCP into a folder that is new for each save: the shards of the earlier save stay
 * as they are, and the new folder has no .metadata until all ranks have written. */
#define N 3

byte fresh[N]; /* shards of the new folder: 0: not there; 2: partly written; 3: whole */
bool metadata; /* of the new folder */
byte done;

proctype rank(byte me) {
	fresh[me] = 2;
	fresh[me] = 3;
	done++;
	if
	:: me == 0 -> done == N; metadata = true
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

/* The new folder has .metadata only when all its shards are whole. The old folder, which
 * nobody touches, has its own. */
ltl safe { [] (metadata -> (fresh[0] == 3 && fresh[1] == 3 && fresh[2] == 3)) }

/* Expected to be violated: the model does come to commit. */
ltl idle { [] !metadata }
