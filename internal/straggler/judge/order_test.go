// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"slices"
	"testing"
)

// Which links find room must not change from run to run, nor their numbers.
func TestLinksAtTheLimitAreTheFirst(t *testing.T) {
	const window, classes, ranks = 8, 4, 3
	for range 20 {
		var l linkHistory
		l.init(Config{Window: window, MaxLinks: 2 * ranks})
		step := func(first uint64) *Sheet {
			s := &Sheet{Seconds: 1}
			for class := range uint64(classes) {
				for r := range int64(ranks) {
					s.Links = append(s.Links, Link{Src: r, Dst: r + 1, Class: first + class, Own: 0.1, Bytes: 10, N: 1})
				}
			}
			return s
		}
		l.add(step(0), 0)
		for number, i := range l.infos {
			if want := uint64(number / ranks); i.class != want || i.src != int64(number%ranks) {
				t.Fatalf("got link %d of class %d, want %d of %d", i.src, i.class, number%ranks, want)
			}
		}
		l.forget(2 * window)
		if !slices.IsSorted(l.free) || len(l.free) != 2*ranks {
			t.Fatalf("got free numbers %v, want all in order", l.free)
		}
		l.add(step(100), 2*window)
		for key := range maps.Keys(l.index) {
			if key.class > 101 {
				t.Fatalf("got a link of class %d, want those of the first two", key.class)
			}
		}
	}
}

func TestNumbersOfForgottenRanksAreFreeInOrder(t *testing.T) {
	const window, ranks = 4, 40
	h := newHistory(window)
	for r := range int64(ranks) {
		h.number(&Seat{Rank: r}, ranks)
	}
	h.count = 2 * window
	if gone := h.forget(); gone != ranks || !slices.IsSorted(h.free) {
		t.Fatalf("got %d gone and free numbers %v, want %d in order", gone, h.free, ranks)
	}
}
