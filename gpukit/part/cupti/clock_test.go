// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// bracketSession has n kernels of 2 us, each between stamps 5 us before and 3 us after.
func bracketSession(n int) *session {
	s := &session{right: report.Shown, facts: &facts{}, ring: &record{}}
	for i := range n {
		at := uint64(1_000_000 + i*100_000)
		k := kernel{launch: at + 1000, start: at + 5000, end: at + 7000, bound: 100, placed: true}
		k.Launched = true
		s.ring.kernels = append(s.ring.kernels, k)
		s.facts.Brackets = append(s.facts.Brackets, [2]uint64{at, at + 10_000})
	}
	return s
}

func TestBrackets_KernelsWithin_AreRight(t *testing.T) {
	s := bracketSession(10)
	s.facts.Brackets[3][1] -= 2000 // the narrowest: 8 us around 2
	c := s.brackets()
	assert.Equal(t, report.Shown, c.Status)
	assert.InDelta(t, 3.0, c.Figures[0].Value, 1e-9)
}

func TestBrackets_WrongData_Fails(t *testing.T) {
	for name, change := range map[string]func(s *session){
		"ends after the host saw it": func(s *session) { s.ring.kernels[4].end += 24_000 },
		"starts before its launch":   func(s *session) { s.ring.kernels[4].start = s.ring.kernels[4].launch - 20_200 },
		"is missing":                 func(s *session) { s.ring.kernels = s.ring.kernels[1:] },
		"has no launch":              func(s *session) { s.ring.kernels[4].Launched = false },
		"all are a millisecond off": func(s *session) {
			for i := range s.ring.kernels {
				k := &s.ring.kernels[i]
				k.launch, k.start, k.end = k.launch+1_000_000, k.start+1_000_000, k.end+1_000_000
			}
		},
		"none": func(s *session) { s.ring.kernels = nil },
	} {
		s := bracketSession(10)
		change(s)
		assert.Equal(t, report.Failed, s.brackets().Status, name)
	}
}

func TestBrackets_WithinCUPTIsConversion_IsRightAndCounted(t *testing.T) {
	s := bracketSession(10)
	s.ring.kernels[4].start = s.ring.kernels[4].launch - 3000
	c := s.brackets()
	assert.Equal(t, report.Shown, c.Status)
	assert.Contains(t, c.Text, "1 lie outside, by up to 3.0 us")
}

func TestBrackets_WithinTheBoundOfTheReadings_IsRight(t *testing.T) {
	s := bracketSession(10)
	s.ring.kernels[4].end = s.facts.Brackets[4][1] + 99
	assert.Equal(t, report.Shown, s.brackets().Status)
}

// clocksAt returns readings each second of a clock that begins at REALTIME and runs at
// a rate.
func clocksAt(n int, rate float64) []ring.Clock {
	const epoch = 1_700_000_000_000_000_000
	var out []ring.Clock
	for i := range n {
		past := uint64(i) * 1_000_000_000
		out = append(out, ring.Clock{Raw: 5_000_000_000 + past, CUPTI: epoch + uint64(rate*float64(past)), Realtime: epoch + past, Width: 60})
	}
	return out
}

func TestDrift_AClockThatFollows_IsRight(t *testing.T) {
	s := &session{right: report.Shown, ring: &record{clocks: clocksAt(10, 1)}}
	assert.Equal(t, report.Shown, s.drift().Status)
}

func TestDrift_WrongClocks_Fail(t *testing.T) {
	for name, clocks := range map[string][]ring.Clock{
		"ticks":            clocksAt(10, 2.1),
		"gains 500 ppm":    clocksAt(10, 1.0005),
		"one reading":      clocksAt(1, 1),
		"no reading":       nil,
		"stepped by 10 ms": append(clocksAt(10, 1), ring.Clock{Raw: 15_000_000_000, CUPTI: 1_700_000_010_010_000_000, Realtime: 1_700_000_010_000_000_000}),
	} {
		s := &session{right: report.Shown, ring: &record{clocks: clocks}}
		assert.Equal(t, report.Failed, s.drift().Status, name)
	}
}

func TestTicks_AClockOfTwoTicks_IsFound(t *testing.T) {
	assert.InDelta(t, 2.0, ticks(clocksAt(4, 2)), 1e-9)
	assert.InDelta(t, 1.0, ticks(clocksAt(4, 1)), 1e-9)
}

func TestOffsetOf_Readings_BoundTheTimer(t *testing.T) {
	o := offsetOf([][3]int64{{1000, 1600, 2000}, {3000, 3516, 4000}, {5000, 5700, 5900}})
	assert.Equal(t, timerOffset{low: -200, high: 516, resolution: 1916}, o)
	assert.True(t, offsetOf([][3]int64{{1000, 1600, 2000}, {3000, 2500, 4000}}).apart)
}
