// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// chunk is how many elements one goroutine takes at a time: enough that the counter costs nothing.
const chunk = 64

// each calls f for every number below n, on all processors. What f writes must be of its number
// alone, so that the result is the same as one after the other.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk) {
		wg.Go(func() {
			for {
				from := int(next.Add(chunk)) - chunk
				if from >= n {
					return
				}
				for i := from; i < min(from+chunk, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}
