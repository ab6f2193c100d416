// SPDX-License-Identifier: Apache-2.0

// Package ring owns the reading of rings: the memory-mapped files through which
// code inside a job's processes hands events to an agent outside. The format is
// docs/format/ring.md, its C side inject/ring.h; this is the only reader.
//
// A ring is written by a process that may be slow, killed at any instruction,
// or hostile. So a file is checked whole before it is mapped, everything read
// from the mapping is copied and judged afterwards, and each call does a bounded
// amount of work whatever the words say. A file that is truncated under its
// mapping ends the Ring with an error, not the process with a signal.
//
// Nothing is consumed: the reader keeps its own place, so several readers do
// not disturb each other, and what Poll left behind by level Snapshot still
// finds. Losses are exact: for every lane, what the producer wrote is what was
// read, skipped and reported lost.
//
// All times are CLOCK_MONOTONIC_RAW nanoseconds of the host unless a name says
// GPU; strings are codes into the ring's table (Ring.String).
package ring
