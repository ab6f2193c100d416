// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// fakeClocks are clocks of which a test says where they stand.
type fakeClocks struct {
	of    map[string]fakeClock
	edges []model.ClockEdge
}

// fakeClock stands offset + drift*reading behind the timeline, to within bound.
type fakeClock struct {
	offset    int64
	drift     float64
	bound     int64
	unbounded bool
	untrusted bool
	stepped   bool
	timeline  string
}

func (f *fakeClocks) Place(id string, reading int64) (clock.Placement, bool) {
	c, ok := f.of[id]
	if !ok {
		return clock.Placement{}, false
	}
	if c.untrusted {
		return clock.Placement{Time: reading, Timeline: "timeline:x", Untrusted: true}, true
	}
	if c.timeline == "" {
		c.timeline = "timeline:x"
	}
	offset := c.offset + int64(math.Round(c.drift*float64(reading-base)))
	return clock.Placement{
		Time: reading + offset, Offset: offset, Bound: c.bound, Bounded: !c.unbounded, Timeline: c.timeline, Stepped: c.stepped,
	}, true
}

func (f *fakeClocks) PlaceAll(id string, readings []int64, to []clock.Placement) []clock.Placement {
	for _, r := range readings {
		p, _ := f.Place(id, r)
		to = append(to, p)
	}
	return to
}

func (f *fakeClocks) Between(a string, _ int64, b string, _ int64) (int64, bool) {
	x, y := f.of[a], f.of[b]
	if a == b {
		return 0, true
	}
	if x.unbounded || y.unbounded || x.timeline != y.timeline {
		return 0, false
	}
	return x.bound + y.bound, true
}

func (f *fakeClocks) AddEdge(e model.ClockEdge) error {
	f.edges = append(f.edges, e)
	return nil
}

// base is a time with all digits, so that no stamp passes for a rounded one.
const base = int64(1_700_000_000_123_456_789)

func testConfig() Config {
	return Config{
		MaxSpans: 1 << 12, MaxClocks: 1 << 10, MaxPairs: 1 << 10, MaxJobs: 8, Window: 2 * time.Second,
		HealthWindow: 30 * time.Second, Now: func() time.Time { return time.Unix(0, base) },
	}
}

func spanID(n uint64) (id model.SpanID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}

func traceID(n uint64) (id model.TraceID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}
