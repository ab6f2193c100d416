// SPDX-License-Identifier: Apache-2.0

// Package dumpset owns the diagnosis of a hang from a set of Flight Recorder dumps: it
// reads them on all cores, finds whose dump each is, keeps a small form of each rank's
// state, and gives the analysis one state after the other, so that tens of thousands of
// dumps need little memory. Call stacks are read only of those that the diagnosis names.
package dumpset
