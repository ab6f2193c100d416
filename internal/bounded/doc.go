// SPDX-License-Identifier: Apache-2.0

// Package bounded limits what other people send: what an engine holds of all senders together
// (Room), maps (Map) and memories of keys that came before (Ring). Package cut limits texts.
//
// A map whose keys come from senders grows as long as they send. Map holds at most so many entries and
// bytes, drops the first ones in its order for others and counts them. Its order is that of insertion, of
// use, or of a comparison, and never that in which Go happens to iterate over a map. Room is for owners
// of very different sizes, where none may push out the others; for entries of one kind a Map does.
package bounded
