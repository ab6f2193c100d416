// SPDX-License-Identifier: Apache-2.0

package bounded

import "unsafe"

const (
	// goMapBytes is Go's map itself; slots is how many places for entries it takes at first.
	goMapBytes = 48
	slots      = 8
	// spareSlots is how many places Go's map has for an entry: it is half empty after it grew.
	spareSlots = 2
)

// MapBytes estimates how many bytes a Map takes before its entries. An owner that has a Map for each of many
// senders counts it.
func MapBytes[K comparable, V any]() int {
	return int(unsafe.Sizeof(Map[K, V]{})+unsafe.Sizeof(chain[K, V]{})) + goMapBytes + slots*slotBytes[K, V]()
}

// EntryBytes estimates how many bytes an entry of a Map takes besides what its key and value point to.
func EntryBytes[K comparable, V any]() int {
	return int(unsafe.Sizeof(entry[K, V]{})) + spareSlots*slotBytes[K, V]()
}

// slotBytes is a place for a key and its entry in Go's map, with the byte by which it finds the place.
func slotBytes[K comparable, V any]() int {
	var k K
	return int(unsafe.Sizeof(k)+unsafe.Sizeof(&entry[K, V]{})) + 1
}
