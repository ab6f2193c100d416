// SPDX-License-Identifier: Apache-2.0

// Package desync owns the diagnosis of a hang: which rank, which operation, why, and who
// only waits. It is given the state of every rank (model.RankState), from whatever source,
// and the ranks of which there is none.
//
// It tells the state of every operation that somebody waits in over its members, and builds
// one graph over all communicators at once: a rank waits for the oldest open operation of
// each of its streams, an operation for the members that have not come to it, or not to the
// front of their stream. What a set of nodes that nobody of it can leave contains is a root:
// a rank that waits for nothing, an operation that all have joined and nobody gets out of, or
// a cycle. Everybody else waits, and is not accused. The strongly connected components are
// found by Tarjan's algorithm ("Depth-first search and linear graph algorithms", SIAM J.
// Comput. 1(2), 1972).
//
// Two kinds of edges are told apart. A rank that has not enqueued an operation holds it up for
// certain. A rank that has enqueued another operation before it, on another communicator, may:
// whether one device waits for the other is not recorded. Such an edge takes an operation out
// of suspicion; alone it accuses nobody of a cycle with certainty.
//
// Nothing here depends on whether an operation was seen to start, or on clocks: numbers of
// operations order what happened. What a source cannot have kept (overwritten buffers, torn
// files, messages that a library never records) proves nothing, and where that leaves open
// who is at fault, candidates are named instead of a culprit.
package desync
