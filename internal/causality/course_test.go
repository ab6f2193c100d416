// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLateFromTheStart: of each second come some batches of 30 s ago and one in time,
// from the first on. They are not a clock that is set to and fro.
func TestLateFromTheStart(t *testing.T) {
	for _, late := range []int{1, 4, 12, 40} {
		const rounds = 60
		c := newChat()
		one := func(at int64, n int) {
			b := &Batch{}
			for k := range int64(5) {
				x := call(c.e, 6e6, -4e6)
				for i := range x.Spans {
					s := &x.Spans[i]
					s.Ref.Trace = traceID(uint64(c.n)<<20 + uint64(n)<<8 + uint64(k))
					s.Begin, s.Until = s.Begin+at+k*1e6, s.Until+at+k*1e6
				}
				b.Spans = append(b.Spans, x.Spans...)
			}
			c.e.Run(b)
		}
		for second := range int64(rounds) {
			c.n = second * 10
			for n := range late {
				one(second*1e9-30e9+int64(n)*20e6, n)
			}
			one(second*1e9, late)
		}
		stepped, last := 0, int64(0)
		for _, e := range c.edges {
			if e.Stepped {
				stepped++
			}
			last = max(last, e.At)
		}
		stats := c.e.Stats().Evidence
		t.Logf("%d late batches: %d edges, %d stepped; %+v", late, len(c.edges), stepped, stats)
		assert.LessOrEqual(t, stepped, 2, "%d late batches", late)
		assert.Greater(t, len(c.edges), rounds/3)
		assert.Greater(t, stats.Late, int64(rounds-5)*int64(late)*10*9/10)
		assert.Greater(t, last, base+(rounds-10)*1e9)
	}
}
