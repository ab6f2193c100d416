/* SPDX-License-Identifier: Apache-2.0 */

/* The rule that a confirmation counts when it was reflected back. Each domain has two slots
 * on its disk, for the save before and for the new one, and writes down how far it is:
 *
 *   TENTATIVE   its part of the new save is on the disk, beside the old one
 *   REFLECTING  it knows that every domain is TENTATIVE or further
 *   COMMITTED   it knows that every domain is REFLECTING or further; the old save may go
 *
 * Domains tell each other how far they are by messages that may be lost: one tells another
 * at some time, or never. What a domain knows of others is in its memory, and lost when it
 * crashes; what it wrote down is not. One crash happens at any point, or none.
 *
 * With EAGER a domain drops the old save as soon as its own part is TENTATIVE. */
#ifndef N
#define N 2
#endif
#define WRITING 0
#define TENTATIVE 1
#define REFLECTING 2
#define COMMITTED 3

byte state[N]; /* on the disk */
bool old[N] = true; /* on the disk: the save before is still there */
byte knows[N * N]; /* in memory: what me knows of other, at me * N + other */
bool crashed;

inline learn(me, other) {
	atomic {
		if
		:: knows[me * N + other] < state[other] -> knows[me * N + other] = state[other]
		:: else
		fi
	}
}

inline least(me, out) {
	d_step {
		out = state[me];
		j = 0;
		do
		:: j < N ->
			if
			:: j != me && knows[me * N + j] < out -> out = knows[me * N + j]
			:: else
			fi;
			j++
		:: else -> break
		od;
		j = 0
	}
}

proctype domain(byte me) {
	byte j, low, other;
	do
	:: state[me] == WRITING ->
		state[me] = TENTATIVE;
#ifdef EAGER
		old[me] = false;
#endif
	:: state[me] == TENTATIVE ->
		least(me, low);
		if
		:: low >= TENTATIVE -> state[me] = REFLECTING
		:: else
		fi
	:: state[me] == REFLECTING ->
		least(me, low);
		if
		:: low >= REFLECTING -> state[me] = COMMITTED
		:: else
		fi
	:: state[me] == COMMITTED && old[me] -> old[me] = false
	:: atomic { /* a message of somebody's arrives */
		select(other : 0 .. N - 1);
		other != me
	   };
	   learn(me, other)
	:: atomic { /* a crash: what was in memory is gone */
		!crashed -> crashed = true;
		j = 0;
		do
		:: j < N -> knows[me * N + j] = 0; j++
		:: else -> break
		od;
		j = 0
	   }
	od
}

init {
	atomic {
		byte i = 0;
		do
		:: i < N -> run domain(i); i++
		:: else -> break
		od
	}
}

#if N == 2
#define all_old (old[0] && old[1])
#define all_new (state[0] >= TENTATIVE && state[1] >= TENTATIVE)
#define some_committed (state[0] == COMMITTED || state[1] == COMMITTED)
#else
#define all_old (old[0] && old[1] && old[2])
#define all_new (state[0] >= TENTATIVE && state[1] >= TENTATIVE && state[2] >= TENTATIVE)
#define some_committed (state[0] == COMMITTED || state[1] == COMMITTED || state[2] == COMMITTED)
#endif

/* One save can be recovered on every domain, at every instant; and where one domain has
 * committed, it is the new one. */
ltl safe { [] ((all_old || all_new) && (some_committed -> all_new)) }

/* Expected to be violated: domains do commit, and drop the save before. */
ltl idle { [] (old[0] || old[1]) }
