// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	us = int64(time.Microsecond)
	ms = int64(time.Millisecond)
	s  = int64(time.Second)
)

// made is a clock whose raw is now and whose realtime is known.
type made struct {
	now      int64
	realtime []segment // of raw
	width    int64
	rng      *rand.Rand
	calm     bool // no reading is interrupted
}

func newMade(seed uint64, realtime []Change) *made {
	return &made{now: s, realtime: *schedule(0, 1_700_000_000*s, realtime), width: 100, rng: rand.New(rand.NewPCG(seed, 1))}
}

// Pair takes some time, in which realtime is read at any moment.
func (m *made) Pair() Pair {
	took := m.width/2 + m.rng.Int64N(m.width)
	if !m.calm && m.rng.IntN(100) == 0 {
		took = m.rng.Int64N(50 * us) // interrupted
	}
	before := m.now
	m.now += took
	return between(before, read(m.realtime, before+m.rng.Int64N(took+1)), m.now)
}

func (m *made) Kernel(unix int64) int64 { return unix }

// traffic takes stamps for a while and carries each over after a delay; every
// stamp that is carried must contain the truth.
type traffic struct {
	clock       *made
	pairs       *Pairs
	every       int64        // ns between stamps
	delay       func() int64 // until a stamp is fetched
	carried     int
	dropped     int
	narrow      int // carried, to half a µs
	wrong       int
	explanation string
}

func (f *traffic) run(duration int64) {
	type waiting struct{ at, due int64 }
	var queue []waiting
	end, tick, next := f.clock.now+duration, f.clock.now, f.clock.now
	for f.clock.now < end {
		if f.clock.now >= tick {
			f.pairs.Read()
			tick = f.clock.now + int64(ReadEvery)
		}
		for ; next <= f.clock.now; next += f.every {
			queue = append(queue, waiting{next, next + f.delay()})
		}
		rest := queue[:0]
		for _, w := range queue {
			if w.due > f.clock.now {
				rest = append(rest, w)
				continue
			}
			f.carry(w.at)
		}
		queue = rest
		until := min(tick, next)
		for _, w := range queue {
			until = min(until, w.due)
		}
		f.clock.now = max(f.clock.now, until)
	}
}

func (f *traffic) carry(at int64) {
	f.pairs.Read()
	raw, width, ok := f.pairs.Carry(read(f.clock.realtime, at))
	if !ok {
		f.dropped++
		return
	}
	f.carried++
	if width <= 500 {
		f.narrow++
	}
	if magnitude(raw-at) > int64(width) {
		f.wrong++
		f.explanation = fmt.Sprintf("stamp at %d: got %d ± %d, off by %d", at, raw, width, raw-at)
	}
}

// moved shifts all changes but the first.
func moved(changes []Change, by int64) []Change {
	changes = slices.Clone(changes)
	for i := range changes[min(1, len(changes)):] {
		changes[i+1].At += by
	}
	return changes
}

func TestCarriedStampsContainTheTruth(t *testing.T) {
	const duration = 6 * 1_000_000_000
	seeds := uint64(2)
	if n, err := strconv.ParseUint(os.Getenv("LOCKSTEP_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	at := func(when float64, rate float64, step int64) Change {
		return Change{At: int64(when * 1e9), Rate: rate, Step: step}
	}
	scenarios := map[string][]Change{
		"steady":             {at(0, -13e-6, 0)},
		"no difference":      nil,
		"0.1 ppm":            {at(0, 20e-6, 0), at(3.0071, 20.1e-6, 0)},
		"1 ppm":              {at(0, 20e-6, 0), at(3.0071, 21e-6, 0)},
		"50 ppm":             {at(0, 20e-6, 0), at(3.0071, -30e-6, 0)},
		"slew of 500 ppm":    {at(0, 20e-6, 0), at(3.0071, 520e-6, 0), at(4.1111, 20e-6, 0)},
		"from -500 to 500":   {at(0, -500e-6, 0), at(3.0071, 500e-6, 0)},
		"chrony's 83333 ppm": {at(0, 20e-6, 0), at(3.0071, 83333e-6, 0), at(4.1111, 20e-6, 0)},
		"100 ms ahead":       {at(0, -13e-6, 0), at(3.0071, -13e-6, 100*ms)},
		"100 ms back":        {at(0, -13e-6, 0), at(3.0071, -13e-6, -100*ms)},
		"an hour back":       {at(0, -13e-6, 0), at(3.0071, -13e-6, -3600*s)},
		"20 µs ahead":        {at(0, -13e-6, 0), at(3.0071, -13e-6, 20*us)},
		"2 µs back":          {at(0, -13e-6, 0), at(3.0071, -13e-6, -2*us)},
		"forth and back":     {at(0, 0, 0), at(3.0071, 0, 50*ms), at(3.0322, 0, -50*ms)},
	}
	loads := map[string]struct {
		every int64
		delay func(*rand.Rand) int64
	}{
		"busy": {500 * us, func(r *rand.Rand) int64 { return 5*us + int64(r.ExpFloat64()*20e3) }},
		"idle": {100 * ms / 3, func(r *rand.Rand) int64 { return 5*us + int64(r.ExpFloat64()*20e3) }},
		"late": {ms, func(r *rand.Rand) int64 { return 5*us + int64(r.ExpFloat64()*4e6) }},
	}
	for name, changes := range scenarios {
		for load, l := range loads {
			t.Run(name+"/"+load, func(t *testing.T) {
				var total traffic
				for seed := range seeds {
					clock := newMade(seed, moved(changes, int64(seed)*777_777))
					f := traffic{clock: clock, pairs: newPairs(clock), every: l.every, delay: func() int64 { return l.delay(clock.rng) }}
					f.run(100 * ms)
					f.carried, f.dropped, f.narrow = 0, 0, 0 // it knows the rate now
					f.run(duration)
					require.Zero(t, f.wrong, "seed %d: %s of %d", seed, f.explanation, f.carried)
					total.carried, total.dropped, total.narrow = total.carried+f.carried, total.dropped+f.dropped, total.narrow+f.narrow
				}
				t.Logf("carried %d, to 0.5 µs %d, dropped %d", total.carried, total.narrow, total.dropped)
				switch name {
				case "steady", "no difference", "0.1 ppm", "1 ppm":
					assert.Zero(t, total.dropped)
				case "chrony's 83333 ppm":
					assert.Positive(t, total.carried)
				default:
					assert.Less(t, total.dropped, total.carried/20+10)
				}
			})
		}
	}
}
