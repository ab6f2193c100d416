// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// FuzzSolve adds edges of any content, most of them between few clocks, and solves
// now and then. Nothing may panic, and what is stated must be consistent.
func FuzzSolve(f *testing.F) {
	// Pairs of all six clocks around a ring and across it, at 1 s, 0.5 us apart.
	var seed []byte
	for i := range 9 {
		at, lower, upper := []byte{0, 15, 18}, []byte{12, 254, 0}, []byte{244, 1, 0}
		seed = append(seed, byte(i%6), byte((i*5+1)%6), byte(i%3), 0)
		seed = append(seed, at...)
		seed = append(seed, 0, 15, 19)
		seed = append(seed, lower...)
		seed = append(seed, upper...)
		seed = append(seed, byte(i), 0, 0, 200, 0, 20, byte(i), 0, 27, 1, 0, 27, 9, 0, 0)
	}
	f.Add(seed)
	f.Add(append(seed, seed[:200]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New(Options{MaxClocks: 12, MaxEdges: 60, MaxFollowed: 50})
		for i := 0; len(data) >= edgeBytes && i < 100; i++ {
			e, solve := readEdge(data[:edgeBytes])
			data = data[edgeBytes:]
			_ = s.Add(e) // most are refused
			if solve {
				checkSolution(t, s.Solve())
			}
		}
		checkSolution(t, s.Solve())
		if len(s.ids) > 12 || len(s.edges) > 60 || s.crossing.Len() > 60 {
			t.Fatalf("limits: got %d clocks, %d edges, %d crossings; want 12, 60, 60", len(s.ids), len(s.edges), s.crossing.Len())
		}
	})
}

// An edge is two clocks, a source, flags, and nine numbers of three bytes.
const edgeBytes = 4 + 9*3

// number is a mantissa of 16 bits and an exponent, so that few bytes make values
// that are near one another, and also those that are farthest.
type number struct {
	mantissa int16
	exponent byte
}

func (n number) int64() int64 {
	switch n.exponent {
	case 255:
		return math.MaxInt64
	case 254:
		return math.MinInt64
	}
	return int64(n.mantissa) << (n.exponent % 48)
}

func (n number) float64() float64 {
	if n.exponent == 255 {
		return math.NaN()
	}
	return float64(n.mantissa) * math.Pow(10, 20-float64(n.exponent%40))
}

func readEdge(b []byte) (e model.ClockEdge, solve bool) {
	var n [9]number
	for i := range n {
		v := b[4+3*i:]
		n[i] = number{int16(binary.LittleEndian.Uint16(v)), v[2]}
	}
	e = model.ClockEdge{
		Src: fmt.Sprint("c", b[0]%16), Dst: fmt.Sprint("c", b[1]%16),
		At: n[0].int64(), Span: n[1].int64(), Lower: n[2].int64(), Upper: n[3].int64(), Offset: n[4].int64(),
		Sigma: n[5].float64(), Drift: n[6].float64(), DriftBound: n[7].float64(), Samples: n[8].int64(),
		Stamps: model.StampUser, Stepped: b[3]&2 != 0,
	}
	for name, n := range sources {
		if n == b[2]%(sourceCount+1) {
			e.Source = name
		}
	}
	return e, b[3]&1 != 0
}

func checkSolution(t *testing.T, s *Solution) {
	t.Helper()
	for _, m := range s.Models() {
		for _, v := range []float64{m.Drift, m.DriftBound, m.Growth, m.Sigma} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("model: got %+v; want numbers", m)
			}
		}
		if m.Bound < 0 || m.From > m.Until || m.Sigma < 0 || m.Growth < 0 {
			t.Fatalf("model: got %+v; want a bound, a growth and an interval that are not negative", m)
		}
		if ref, ok := s.Model(m.Reference); !ok || (ref.Untrusted && ref.Clock != m.Clock) {
			t.Fatalf("model: got reference %q of %q; want a trusted clock of the solution", m.Reference, m.Clock)
		}
	}
	all := s.Models()
	for i := range all {
		o := all[(i*7+3)%len(all)]
		if lo, hi, ok := s.Between(all[i].Clock, all[i].At, o.Clock, o.At); ok && lo > hi {
			t.Fatalf("between %q and %q: got %d to %d; want lower <= upper", all[i].Clock, o.Clock, lo, hi)
		}
	}
}
