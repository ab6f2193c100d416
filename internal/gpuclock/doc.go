// SPDX-License-Identifier: Apache-2.0

// Package gpuclock owns the relation between a GPU's own clock and the host's
// CLOCK_MONOTONIC_RAW, as far as it can be known from outside.
//
// Each operation gives a bracket: a kernel cannot start before the host began to
// enqueue it, and its end cannot be seen before it ended. With h(g) the host time
// at which the GPU's clock shows g:
//
//	before <= h(start)    and    h(stop) <= after
//
// Over a window of some seconds h is a line. All lines that satisfy every bracket
// form a convex polygon in the plane of (offset, drift), and the bound is how far
// any of them lies from the one that is taken: it says where the truth must be, if
// the stamps are right and the two oscillators steady. Latencies that never vanish
// make it wide, never wrong.
//
// Which line is taken is a belief. Kernels are enqueued ahead, so that the lower
// constraints are often loose by milliseconds; ends are seen soon after, at least
// some of them. So it is the line along the upper constraints, less some
// microseconds, or halfway between both where they are closer than that.
//
// The rate is known where stamps look like Unix nanoseconds or are seen to
// advance by a nanosecond each nanosecond (NVIDIA's globaltimer); otherwise the
// stamps are ticks (AMD's wall_clock64), and nothing is converted until their
// rate is known.
package gpuclock
