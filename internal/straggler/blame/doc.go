// SPDX-License-Identifier: Apache-2.0

// Package blame owns the question where the time of one step went, over all ranks: it
// joins their operations in one graph, walks it backward from what ended last, and runs
// it again without a cause.
//
// An operation begins when all that it waits for is over: what ran before it on its
// stream, what it was seen to wait for on another, the host's launch, and the last
// operation of its own rank that ended before it. The last one matters most: without
// it, what a rank computed is taken for idleness of its host. A rendezvous ends a
// transfer after the one that is waited for came, and there the walk goes on with that
// rank. The host's launches follow one another, and follow the device where the host
// was seen to wait for it.
//
// What counts is not the time on the path but its excess over peers: ranks of one role
// that did the same operation in the same place of their program. Excess of computing,
// of the host's gaps and of collectives' transfer is measured on one clock each, so
// that a clock error can lead the walk astray but accuses nobody.
//
// The walk is the delay analysis of Boehme et al. (ACM TOPC 3(2), 2016) seen from the
// end of the step, with peers in place of absolute times; the path of one rank is HTA's
// critical path. Running again with typical durations follows Lin et al. (OSDI 2025),
// on operations instead of a model of the framework.
package blame
