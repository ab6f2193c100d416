// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// heapOf returns by how many bytes the heap grows while fill makes what it returns.
func heapOf(fill func() any) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	held := fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(held)
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// Estimates are never much less than what maps take, and at most about twice as much.
func TestMapBytes_ManyMaps_CoverTheHeap(t *testing.T) {
	type key struct{ a, b int64 }
	for _, tt := range []struct{ maps, entries int }{{1000, 1}, {1000, 5}, {100, 100}, {10, 5000}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			heap := heapOf(func() any {
				all := make([]*Map[key, *int], tt.maps)
				for i := range all {
					all[i] = NewMap(MapConfig[key, *int]{Order: ByUse})
					for e := range int64(tt.entries) {
						all[i].Set(key{e, e}, nil)
					}
				}
				return all
			})
			counted := tt.maps * (MapBytes[key, *int]() + tt.entries*EntryBytes[key, *int]())
			assert.Less(t, float64(heap), 1.1*float64(counted), "the heap's classes of sizes take some more")
			assert.Less(t, counted, 2*heap)
		})
	}
}
