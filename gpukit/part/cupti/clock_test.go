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

// clocksAhead returns readings of a clock that is off REALTIME, ns.
func clocksAhead(ns int64) []ring.Clock {
	all := clocksAt(10, 1)
	for i := range all {
		all[i].CUPTI += uint64(ns)
	}
	return all
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
		"5 s ahead":        clocksAhead(5_000_000_000),
		"2 ms behind":      clocksAhead(-2_000_000),
		"for a while 2 ms ahead": func() []ring.Clock {
			all := clocksAhead(-900_000)
			all[5].CUPTI += 2_000_000
			return all
		}(),
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
	assert.Equal(t, timerOffset{low: -200, high: 516, resolution: 4, span: 4900}, o)
}

// timerReadings returns readings 100 us apart of a timer that is off REALTIME, runs at
// a rate and counts steps of a size, all ns, in brackets of a width.
func timerReadings(off int64, rate float64, step, width int64) [][3]int64 {
	var out [][3]int64
	for i := range int64(200) {
		before := 1_700_000_000_000_000_000 + i*100_000
		past := int64(rate * float64(i*100_000+width/2))
		out = append(out, [3]int64{before, (1_700_000_000_000_000_000 + off + past) / step * step, before + width})
	}
	return out
}

func TestTimer_Readings_AreJudged(t *testing.T) {
	const second = 1_000_000_000
	for _, tt := range []struct {
		name     string
		readings [][3]int64
		want     report.Status
		text     string
	}{
		{"as REALTIME", timerReadings(0, 1, 32, 20_000), report.Shown, "beside REALTIME"},
		{"coarse steps", timerReadings(0, 1, 1024, 200), report.Shown, "steps of 1024 ns"},
		{"drifts by 20 ppm", timerReadings(0, 1+20e-6, 32, 200), report.Shown, "beside REALTIME"},
		{"a month of drift", timerReadings(-50*second, 1, 32, 20_000), report.Shown, "beside REALTIME"},
		{"another epoch", timerReadings(-1_000_000*second, 1, 32, 20_000), report.Failed, "want within 60 s"},
		{"counts ticks", timerReadings(0, 2, 32, 20_000), report.Failed, "no offset fits"},
		{"gains 1 %", timerReadings(0, 1.01, 32, 20_000), report.Failed, "no offset fits"},
		{"does not advance", timerReadings(0, 0, 32, 20_000), report.Failed, "does not advance"},
		{"wide brackets", timerReadings(0, 1, 32, 5_000_000), report.NotShown, "too wide"},
		{"one reading", timerReadings(0, 1, 32, 20_000)[:1], report.NotShown, "1 reading"},
	} {
		c := timerCheck(report.Shown, tt.readings)
		assert.Equal(t, tt.want, c.Status, "%s: %s", tt.name, c.Text)
		assert.Contains(t, c.Text, tt.text, tt.name)
	}
}
