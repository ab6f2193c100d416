// SPDX-License-Identifier: Apache-2.0

// Package capability owns what each witness can decide: for every class of finding
// of the data model and every set of witnesses whether today's engines decide it,
// bound it or abstain, and why. docs/capabilities.md is written from it, and its
// tests hold each cell against simulated jobs that the real engine judges, having
// seen of them no more than the row's witness records.
package capability

//go:generate go run ./gen ../../docs/capabilities.md
