// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A path that is silent for some tenths of a second now and then leaves readings of
// which little is known. They do not spoil the window that they lie in, and what is told
// last, which those go by who place readings, is no worse for them.
func TestGapsDoNotSpoilWhatIsKnown(t *testing.T) {
	for _, rate := range []float64{5, 10, 20, 100} {
		t.Run(fmt.Sprintf("%v_per_s", rate), func(t *testing.T) {
			windows, vague := 0, 0
			for seed := range uint64(10) {
				r := rand.New(rand.NewPCG(seed, 5))
				tr := &truth{base: r.Int64N(1e15), origin: origin, changes: []change{{t: origin, drift: 20e-6}}}
				e, end := New(Config{}), origin+80*second
				for at := origin; at < end; {
					silent := min(end, at+int64(r.ExpFloat64()*10e9))
					tr.probes(r, e, rate, at, silent, veth, func(_ int64, out []Estimate) {
						for _, o := range out {
							tr.check(t, r, o)
						}
						if len(out) == 0 || !e.known {
							return
						}
						windows++
						if last := out[len(out)-1]; !last.HasLower || !last.HasUpper || last.DriftBound > 100e-6 || last.Upper-last.Lower > 50_000 {
							vague++
						}
					})
					at = silent + second*3/10 + r.Int64N(second/2)
				}
			}
			assert.Greater(t, windows, 350)
			assert.LessOrEqual(t, vague, 1)
		})
	}
}

// No answer comes for a second, in whatever part of a window: who keeps the last estimate of
// each window keeps one that is bounded on both sides.
func TestGapOfOneDirection(t *testing.T) {
	for gap := range int64(20) {
		r := rand.New(rand.NewPCG(1, uint64(gap)))
		tr := &truth{base: 3_700_000, origin: origin, changes: []change{{origin, 20e-6, 0}}}
		e, from := New(Config{}), origin+8*second+gap*second/10
		silent := false
		for n := range int64(2000) {
			at := origin + n*second/100
			e.Upper(at, tr.dst(at+veth(r)), 0)
			if at < from || at > from+second {
				e.Lower(at+20_000+veth(r), tr.dst(at+20_000), 0)
			}
			if n%200 != 199 {
				continue
			}
			out := e.Close(at)
			if n <= 200 {
				continue
			}
			// What is vague may wait for the next window, once.
			if len(out) == 0 {
				assert.False(t, silent, "gap from %d ms of the window, at %d s", gap*100, n/100)
				silent = true
			} else {
				silent = false
				last := out[len(out)-1]
				assert.True(t, last.HasLower && last.HasUpper, "gap from %d ms of the window, at %d s", gap*100, n/100)
			}
		}
	}
}
