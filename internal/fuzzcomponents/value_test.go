// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

var integers = []int64{
	0, 1, 2, 3, 7, -1, -2, 63, 64, 65, 127, 128, 255, 1 << 16, 1<<31 - 1, 1 << 31, 1 << 32, 1<<53 + 1, 1 << 62,
	math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1,
}

var doubles = []float64{
	0, 0.5, 1, -1, 1e-9, 1e9, 1e18, 1e300, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64,
	math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1),
}

// stamp returns a time near now, or one that no clock shows.
func (s *source) stamp(now time.Time) pcommon.Timestamp {
	at := uint64(now.UnixNano())
	switch s.below(8) {
	case 0:
		return 0
	case 1:
		return math.MaxInt64
	case 2:
		return math.MaxUint64
	case 3:
		return pcommon.Timestamp(s.uint64())
	case 4:
		return 1
	}
	return pcommon.Timestamp(at + uint64(int64(int8(s.byte()))*int64(pick(s, []time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Hour}))))
}

// deepest is how far values nest.
const deepest = 40

// value puts a value of any type into v.
func (s *source) value(v pcommon.Value, depth int) {
	kind := s.below(9)
	if depth <= 0 && kind > 5 {
		kind = 0
	}
	switch kind {
	case 0:
		v.SetStr(pick(s, texts))
	case 1:
		v.SetInt(pick(s, integers))
	case 2:
		v.SetInt(int64(int8(s.byte())))
	case 3:
		v.SetDouble(pick(s, doubles))
	case 4:
		v.SetBool(s.byte()&1 == 1)
	case 5:
		v.SetEmptyBytes().FromRaw(s.take(s.below(64)))
	case 6:
		slice := v.SetEmptySlice()
		for range s.below(6) {
			s.value(slice.AppendEmpty(), depth-1)
		}
	case 7:
		m := v.SetEmptyMap()
		for range s.below(4) {
			s.value(m.PutEmpty(pick(s, names())), depth-1)
		}
	case 8: // one value deep inside others
		for range depth {
			v = v.SetEmptySlice().AppendEmpty()
		}
		v.SetInt(1)
	}
}

func (s *source) take(n int) []byte {
	n = min(n, len(s.b))
	taken := s.b[:n]
	s.b = s.b[n:]
	return taken
}
