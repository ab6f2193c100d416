// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestManyWaitForOne: however many wait for one span, they take one place among those who
// wait, and nobody else is forgotten for it. What is lost is counted.
func TestManyWaitForOne(t *testing.T) {
	const all = 12_000
	for _, each := range []int{1, 4, 8, 30} {
		t.Run(strconv.Itoa(each), func(t *testing.T) {
			cfg := testConfig()
			cfg.MaxSpans = 1 << 15
			e := New(cfg, &fakeClocks{})
			var children, grandchildren, parents []Span
			for i := range all {
				trace, n := uint64(i/each+1), uint64(i%each)
				children = append(children, span(e, trace, 10+n, 1, "a", 0))
				grandchildren = append(grandchildren, span(e, trace, 1000+n, 10+n, "a", 0))
				if n == 0 && len(parents) < 1<<13 {
					parents = append(parents, span(e, trace, 1, 0, "a", 0))
				}
			}
			run(e, children...)
			run(e, grandchildren...)
			found := e.Stats().Relations
			lost := e.Stats().Crowded
			assert.GreaterOrEqual(t, found+lost, int64(all))
			assert.Less(t, lost, int64(all/1000))
			run(e, parents...)
			want := int64(min(all, len(parents)*each))
			assert.GreaterOrEqual(t, e.Stats().Relations-found, want-int64(each)*e.Stats().Crowded)
			assert.Less(t, e.Stats().Crowded, int64(all/1000))
		})
	}
}

// TestTheOldestMakesRoom: of a full bucket one of the same kind, else of the other, and
// never the newest.
func TestTheOldestMakesRoom(t *testing.T) {
	for _, kind := range []uint64{kindRecord, kindWait} {
		x := newIndex(1)
		for n := uint64(ways); n > 0; n-- {
			assert.False(t, x.put(0, kindWait, n, 1, 1))
		}
		assert.True(t, x.put(0, kind, ways+1, 1, 1))
		var left []uint64
		for _, slot := range x.bucket(0) {
			left = append(left, slot>>numberShift)
		}
		assert.ElementsMatch(t, []uint64{2, 3, 4, 5, 6, 7, 8, 9}, left)
	}
}
