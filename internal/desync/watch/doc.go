// SPDX-License-Identifier: Apache-2.0

// Package watch owns when a hang is told of: it follows jobs while they run, knows how long
// each of them may stand still before that is no rhythm of its own, has package desync judge
// the states of ranks that stand for longer, and tells what is found once, as a finding that
// opens, changes and closes.
//
// A job stands still all the time: in checkpoints, evaluations, compilations, and while
// somebody debugs it. The limit is therefore a multiple of the gaps that the job itself has
// shown in the phase that the blamed rank is in, and a start limit as long as too few of them
// are known. Nothing is told of a rank that has moved between two looks.
package watch
