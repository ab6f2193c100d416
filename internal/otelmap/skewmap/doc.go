// SPDX-License-Identifier: Apache-2.0

// Package skewmap reads spans for internal/causality and writes back what it
// says of them. It knows how a span tells its clock and what it is, and how one
// that was corrected before is put back.
//
// A Mapper keeps memory between two batches, to use it again, and nothing about their spans: Read forgets the
// batch before. Clocks and jobs are the engine's.
package skewmap
