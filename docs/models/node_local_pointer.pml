/* SPDX-License-Identifier: Apache-2.0 */

/* Node-local checkpoints: each node keeps two saves on a disk of its own, and a pointer to
 * the one that it resumes from. Nothing orders the pointers of different nodes.
 *
 * safe: all nodes would resume from one save. It is violated. With MEET, every node takes the
 * least of all pointers, which is what the nodes agree on when they ask each other, and keeps
 * the save before its own until then: that holds. */
#define N 3

byte pointer[N] = 1; /* the save that a node's pointer names */
byte oldest[N] = 1; /* the oldest save that the node still has */

proctype node(byte me) {
	pointer[me] = 2; /* its save 2 is whole; save 1 is kept */
#ifdef EAGER
	oldest[me] = 2; /* or dropped at once */
#endif
}

init {
	atomic {
		byte i = 0;
		do
		:: i < N -> run node(i); i++
		:: else -> break
		od
	}
}

#define has(e) (oldest[0] <= e && oldest[1] <= e && oldest[2] <= e)
#define least1 (pointer[0] == 1 || pointer[1] == 1 || pointer[2] == 1)

#ifdef MEET
/* Every node still has the least save that any pointer names. */
ltl safe { [] ((least1 -> has(1)) && (!least1 -> has(2))) }
#else
ltl safe { [] (pointer[0] == pointer[1] && pointer[1] == pointer[2]) }
#endif

/* Expected to be violated: the nodes do come to the new save. */
ltl idle { [] least1 }
