// SPDX-License-Identifier: Apache-2.0

// Package graph solves for all clocks at once: edges between pairs of clocks go
// in, an offset, a drift and a bound for each clock come out, against one clock of
// the component that serves as reference.
//
// # Estimates
//
// Every edge is brought to one instant that all clocks of the component share, by
// its own drift, and becomes one equation x[dst]-x[src] = r with weight 1/sigma².
// The solution of least squares is that of the graph's Laplacian, which is what
// Huygens' correction of loops computes (Geng et al., NSDI 2018), without looking
// for loops: trees are solved exactly, the rest by conjugate gradients. Drifts are
// solved in the same way before, as logarithms of rates, which add up. n clocks and
// m edges leave sqrt((n-1)/m) of one edge's error, about 1/sqrt(K) where each clock
// probes K others; an asymmetry that belongs to a node is in all its edges alike,
// and stays.
//
// Sigmas are beliefs. Each source of edges (probes, pairs, messages, ...) is given
// the variance by which its edges deviate from the solution, be it more or less than
// their sigmas say. Each clock with five edges in loops or more is given the variance by
// which half of its edges deviate beyond what they claim, if it is twice that or more, and all its
// edges count for less. An edge beyond three sigmas pulls no harder than one at three
// (Huber) at first, and then the less the farther away it is. So a clock that tells its
// neighbours different times moves them little, long before anything is proved. What
// weights that are found from edges cost where all are honest is some percent of the error.
// No sigma is believed to be better than half of what is usual. Drifts come with a bound
// and no sigma: they are taken to deviate by the same share of it, which is measured.
//
// # Bounds
//
// A hard bound is never an estimate. The bounds of an edge are two constraints on a
// difference, and shortest paths over all of them give the tightest bounds that
// follow for any two clocks (Patt-Shamir and Rajsbaum). They hold if the stamps do.
// An edge of messages (probes, traces) bounds the offset at all readings of its
// span, if its bounds are moved by its drift; between its span and the instant they
// widen by the drift's bound and by Options.Wander in each window. Bounds are stated
// for a time around the instant in which all but one in eight of the edges hold, which
// need not be as long before as after it; those that hold for less of it are widened.
// Bounds are whole ns, rounded outwards; estimates that lie outside of them are moved inside.
//
// # Changes
//
// Pairs see a step, or a change of frequency, at different times, and edges that hold
// before it cannot be joined with others that hold after it. So only edges whose spans
// cover one instant are joined, one that most of the new edges cover, and those of the
// reference among them. A path of such edges bounds a clock for as long as all of them
// hold, which is what From and Until say. Clocks that no such path leads to hang on the
// others by edges that have a time in common with those, and hold in that time; they
// bound nobody else. So do those that such a path leads to, but on which twice as much
// is unknown (in sigmas) as beside the instant: in the first second edges are some ms
// long and as wide as a message lay in a queue, and a wide one must place nobody whom
// others know. Where an edge has no time in common with the others, it is carried
// over by its drift, unless new edges tell of a change: then nothing is said of that
// clock until the next solution. Edges that do not take part contradict nobody at the
// instant, so that no step accuses anybody.
//
// Readings of a clock go on. An edge that is older than the one held for its clocks is
// late, and left out; one that says that a clock was stepped is not, and neither is the
// third of which no solution in between had a newer one. Where its two clocks do not agree
// which edge is older, that one tells that is not known to have been set, or that goes on.
// An edge that does not go on from one that a solution had tells of a step. Which clock was stepped
// is what most of those tell that an edge tells it of. Once that is known, and the offset
// changed, edges of the clock that have not seen it are forgotten, since a clock that
// was set back shows the same readings twice.
//
// # Contradictions
//
// If all stamps hold, the constraints cannot contradict one another: a cycle of
// constraints shorter than nothing proves that somebody's stamps are wrong. Nothing
// less accuses anybody, so that no delay, however asymmetric, does: what it hides
// is inside the bounds.
//
// Clock v, which tells peer j a time that differs by d from what it tells peer k,
// is contradicted once
//
//	d > h(v,j) + h(v,k) + H(j,k)
//
// where h are half widths of its edges' bounds and H is what the best path of the
// others between j and k bounds them to, give or take the errors of these edges,
// each of which is within its own bounds. With edges of half width h and peers c
// edges apart that is (2+c)h: 4h with peers that share a neighbour, some 7h among
// 10,000 clocks with ten neighbours each. A lie that is smaller could as well be a
// longer way. It accuses nobody, and yet it could narrow the bounds of others to what is
// not true: so what the solution contradicts, of a clock that has no place which all its
// edges allow, or where half of the edges at both ends agree with the solution, bounds
// nobody. That relies on the solution, and on five edges in loops.
//
// Clocks of which many edges disagree with the solution are set aside until the
// rest agrees. Then each is judged by all its contradictions with the rest. It is
// cut off (untrusted) if these involve three neighbours or more and no single
// neighbour is part of all of them: otherwise that neighbour may as well be the one
// that lies, to this clock alone. Then the edge between both is left out, both are
// named (undecided), and nobody is accused. A clock that is cut off moves nobody:
// none of its edges takes part.
//
// Who is off by more than an edge is long has edges that hold at another time, by what they
// say themselves. So before a solution all offsets are compared as such, whatever the time
// that they are told of, with room for what MaxDrift makes of a horizon (32 ms for each edge),
// and judged by the same rules. A clock that was set looks the same for as long as some tell of
// it from before and others from after. So what is told of two places counts only where no
// edge jumped or said that a clock was set within a horizon, and it takes half a horizon to
// accuse anybody; until then the clock takes no part, and nothing is said of it. At three
// places no clock was set; but one of which edges jumped, or said so, takes part until then.
//
// Two further proofs exist. A clock that is read together with another one of its
// host (source pair), and that the traces of two other clocks contradict, is not
// the clock that stamps its spans. Traces mostly come later than the instant that packets
// cover; so what they say is carried there, with Options.MaxDrift for what either clock
// may have been slewed since (10 to 20 ms), and counts as proof once traces that began after
// this was first seen say so as well: what a step left behind does not. And an exchange that takes less than no time
// contradicts itself, as do two in a row of which the later one shows an older time, and
// answers that left at a reading that is told of another packet as well. An
// edge that says so of one in eight neighbouring samples of 32 or more (package pair), or
// that has its lower bound above the upper one, is counted and remembered, and a clock
// with such edges to three others, more than any of these has, is cut off as well. Its
// threshold is the shortest round trip: stamps that are wrong by less could be a delay.
//
// # What cannot be seen
//
// A clock that tells everybody the same wrong time has an offset. A constant delay
// of what one NIC sends is the same to all peers, and shifts its clock by half of
// it; its bounds are wider by the delay, and contain the truth. Stamps that are
// wrong by less than messages take are a delay. Two clocks that lie together can
// make a third one seem to lie between them only if they are a majority of its
// neighbours.
package graph
