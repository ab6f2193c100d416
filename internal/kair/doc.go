// SPDX-License-Identifier: Apache-2.0

// Package kair owns the statistics of KAIR (Beihang and Kuaishou), as published: the
// baseline that our own method is measured by, and the heatmap and frequency of
// operations that people look at.
//
// A step is cut into fixed windows. A worker's execution rhythm is the cumulative
// number of its operations that were over by the end of each, and its abnormality
// score the mean Kolmogorov-Smirnov distance of that from all other workers. Each
// operation's start and duration are compared over the workers, and those more than
// three standard deviations above the mean are outliers. From an outlier blame goes
// backward over the step's graph to the first outlier whose predecessors are none: the
// root.
//
// Its code is closed. Where the publication says nothing, or not enough, this is what
// favours it:
//
//   - Rhythms are of device operations, copies left out, each counted when it ended,
//     and divided by the worker's own number of operations; Config.Raw keeps the
//     numbers as they are, as the publication writes it.
//   - An operation is compared over workers that run the same program, as it is where a
//     framework gives each operation of a model a name of its own. Rhythms are compared
//     over all workers, unless Config.Cohorts keeps programs apart.
//   - Every step is looked at, not only those that a variance of step times picks out.
//   - The graph has the order of streams, launches, collectives and messages, and the
//     operation of any stream that ended last before another began, which stands for
//     dependencies that only the framework knows. From a collective or a receive blame
//     goes to the rank that came last.
//   - A deviation is at least a microsecond, the resolution of many stamps: where all
//     workers agree to less, nobody is an outlier by less than three.
//   - Blame is summed over a step's roots by what they explain, and a rank is accused
//     only where it has at least half of the most blamed one's share in half of the
//     recent steps. One step alone, as published, accuses somebody in nearly every
//     healthy step.
//   - An operation that began late, after predecessors that did not, is held up by its
//     host. KAIR itself names the operation and no such class.
//
// Hear takes steps that somebody else has gathered, as the engine of internal/straggler
// does, with its clocks, its roles and its numbers of operations: that is how the product
// and the scoreboard run KAIR. Add and Close gather steps from operations with their raw
// stamps. They serve who has no engine: the tests of the statistics here, down to recorded
// traces, and their fuzzing.
//
// Plus is the same with what is known to help it: rhythms and outliers of compute
// operations only, over workers that run the same program.
package kair
