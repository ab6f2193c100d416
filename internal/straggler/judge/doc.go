// SPDX-License-Identifier: Apache-2.0

// Package judge owns the question whom the own, wait-free times of a job's ranks
// accuse, in which class, and when they accuse nobody. It takes one sheet for each
// step, compares like with like along a ladder of cohorts, keeps a compact history of
// each rank's excess, and draws conclusions from it: single ranks and whole hosts, and
// beside them what is nobody's fault (stages, amounts of work, pauses that rotate, the
// whole job) and links. It knows nothing of spans, clocks or replay: what a conclusion
// costs, and whether it is told, is decided by its caller.
package judge
