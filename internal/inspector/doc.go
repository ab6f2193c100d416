// SPDX-License-Identifier: Apache-2.0

// Package inspector reads the log lines of NVIDIA's NCCL Inspector, formats v4.0
// to v4.4, as docs/format/inspector.md describes them. A [Splitter] cuts a file that
// is being written into lines, a [Parser] turns lines into records, and a [Process]
// turns the records of one file into operations of ranks. All of them keep what they
// need to go on after a restart in exported states.
package inspector
