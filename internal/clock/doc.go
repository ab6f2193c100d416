// SPDX-License-Identifier: Apache-2.0

// Package clock owns the timeline: how the clocks of different ranks relate,
// and how well that is known.
//
// Two kinds of knowledge are kept apart. A hard interval follows from relations
// that always hold (a member of an all-reduce leaves after the last has
// entered); it can be wide, and it is a bound. An estimate follows from the
// observation that the ends of one collective nearly coincide on all ranks; it
// is sharp, carries a sigma, and is never called a bound.
package clock
