// SPDX-License-Identifier: Apache-2.0

// Package methods holds the ways to name a straggler that the scoreboard compares, each
// behind the same interface: Lockstep's own engine, KAIR, and rules of other tools,
// written from what is published of them and not from their code.
package methods
