// SPDX-License-Identifier: Apache-2.0

// Package sequence counts spans that are lost between an agent and the end of their step at a gateway.
//
// An agent numbers the spans of each stream with a [Numberer]. A gateway keeps with a [Ledger] which numbers
// arrived and which of these are of steps that were concluded, also over a kill: what arrived, was not concluded
// and does not arrive again was lost with the memory of the gateway. docs/format/sequence.md has the attributes and
// what is stored.
package sequence
