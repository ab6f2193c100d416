// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func randomEdge(rng *rand.Rand) model.ClockEdge {
	e := model.ClockEdge{
		Src: fmt.Sprintf("host:%d/b/raw", rng.IntN(1000)), Dst: fmt.Sprintf("host:%d/b/realtime", rng.IntN(1000)),
		At: int64(rng.Uint64()), Span: rng.Int64N(1 << 50), Samples: rng.Int64(),
		Source: model.EdgeProbe, Stamps: model.StampKernel, Stepped: rng.IntN(2) == 0, Prompt: rng.IntN(2) == 0,
		Lower: rng.Int64() - 1<<62, Upper: model.NoUpper,
	}
	e.Upper = e.Lower + rng.Int64N(1<<40)
	if rng.IntN(2) == 0 {
		e.Offset, e.Sigma = e.Lower+rng.Int64N(e.Upper-e.Lower+1), 1+100*rng.Float64()
	}
	if rng.IntN(2) == 0 {
		e.Drift, e.DriftBound = 1e-6*rng.NormFloat64(), 1e-6*(1+rng.Float64())
	}
	switch rng.IntN(4) {
	case 0:
		e.Lower = model.NoLower
	case 1:
		e.Upper = model.NoUpper
	}
	return e
}

// Drift and sigma pass through ppm and seconds: equal to 15 digits.
func equalEdge(t *testing.T, want, got model.ClockEdge) {
	t.Helper()
	assert.InEpsilon(t, 1+want.Drift*1e6, 1+got.Drift*1e6, 1e-12)
	assert.InEpsilon(t, 1+want.DriftBound*1e6, 1+got.DriftBound*1e6, 1e-12)
	assert.InEpsilon(t, 1+want.Sigma, 1+got.Sigma, 1e-12)
	got.Drift, got.DriftBound, got.Sigma = want.Drift, want.DriftBound, want.Sigma
	assert.Equal(t, want, got)
}

func TestEdgeRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		want := randomEdge(rng)
		lr := plog.NewLogRecord()
		EdgeToLog(&want, lr)
		got, ok, err := LogToEdge(lr)
		require.NoError(t, err)
		require.True(t, ok)
		equalEdge(t, want, got)
	}
}

func TestEdgeRecord(t *testing.T) {
	lr := plog.NewLogRecord()
	EdgeToLog(&model.ClockEdge{
		Src: "a", Dst: "b", At: 7_000_000_000, Span: 2_000_000_000, Lower: -1000, Upper: 3000, Offset: 1000, Sigma: 50,
		Drift: 1e-5, DriftBound: 1e-7, Samples: 12, Source: model.EdgeProbe, Stamps: model.StampKernel, Stepped: true, Contradicted: 30_000,
	}, lr)
	assert.Equal(t, "lockstep.clock.edge", lr.EventName())
	assert.Equal(t, "a to b: offset between -1µs and 3µs", lr.Body().Str())
	got := lr.Attributes().AsRaw()
	for name, want := range map[string]float64{
		"lockstep.clock.lower": -1e-6, "lockstep.clock.upper": 3e-6, "lockstep.clock.drift": 10, "lockstep.clock.drift.bound": 0.1,
		"lockstep.clock.window": 2, "lockstep.clock.sigma": 5e-8,
	} {
		assert.InEpsilon(t, want, got[name], 1e-12, name)
		delete(got, name)
	}
	assert.Equal(t, map[string]any{
		"lockstep.clock.src": "a", "lockstep.clock.dst": "b", "lockstep.clock.at_nano": int64(7_000_000_000),
		"lockstep.clock.lower_nano": int64(-1000), "lockstep.clock.upper_nano": int64(3000), "lockstep.clock.estimate_nano": int64(1000),
		"lockstep.clock.samples": int64(12), "lockstep.clock.source": "probe", "lockstep.clock.stamps": "kernel", "lockstep.clock.step": true,
		"lockstep.clock.contradicted_nano": int64(30_000),
	}, got)
}

// Another tool may write seconds only; the interval never becomes narrower.
func TestEdgeFromSeconds(t *testing.T) {
	want := model.ClockEdge{Src: "a", Dst: "b", Lower: -1_795_000_000_123_456_789, Upper: 12_345, Source: model.EdgeProbe}
	lr := plog.NewLogRecord()
	EdgeToLog(&want, lr)
	lr.Attributes().Remove(semconv.EdgeLowerNano)
	lr.Attributes().Remove(semconv.EdgeUpperNano)
	got, ok, err := LogToEdge(lr)
	require.NoError(t, err)
	require.True(t, ok)
	assert.LessOrEqual(t, got.Lower, want.Lower)
	assert.GreaterOrEqual(t, got.Upper, want.Upper)
	assert.InDelta(t, float64(want.Lower), float64(got.Lower), 2048, "some units in the last place at 1.8e18")
	assert.InDelta(t, float64(want.Upper), float64(got.Upper), 2)
}

// Bounds that cross tell the graph that one of both clocks is stamped wrongly.
func TestEdgeWithBoundsThatCross(t *testing.T) {
	want := model.ClockEdge{Src: "a", Dst: "b", Lower: 11, Upper: 10, Source: model.EdgeProbe, Stamps: model.StampKernel}
	lr := plog.NewLogRecord()
	EdgeToLog(&want, lr)
	got, ok, err := LogToEdge(lr)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, want, got)
}

func TestEdgeRefused(t *testing.T) {
	edge := model.ClockEdge{Src: "a", Dst: "b", Lower: -10, Upper: 10, Offset: 1, Sigma: 1, Source: model.EdgeProbe}
	for want, change := range map[string]func(plog.LogRecord){
		`got the source "a" again`:                                       func(lr plog.LogRecord) { lr.Attributes().PutStr("lockstep.clock.dst", "a") },
		`read attribute lockstep.clock.src: got no name; want a clock's`: func(lr plog.LogRecord) { lr.Attributes().Remove("lockstep.clock.src") },
		`lockstep.clock.dst: got a name of 200016 bytes, "host:xxx`: func(lr plog.LogRecord) {
			lr.Attributes().PutStr("lockstep.clock.dst", "host:"+strings.Repeat("x", 200_011))
		},
		`lockstep.clock.dst: got "b\n"; want UTF-8 without control characters`: func(lr plog.LogRecord) { lr.Attributes().PutStr("lockstep.clock.dst", "b\n") },
		`lockstep.clock.source: got "\x00"`:                                    func(lr plog.LogRecord) { lr.Attributes().PutStr("lockstep.clock.source", "\x00") },
		`read attribute lockstep.clock.at_nano: got none; want the reading`:    func(lr plog.LogRecord) { lr.Attributes().Remove("lockstep.clock.at_nano") },
		`read attribute lockstep.clock.src: got type Int; want Str`:            func(lr plog.LogRecord) { lr.Attributes().PutInt("lockstep.clock.src", 1) },
		`check lockstep.clock.estimate_nano: got 12 ns; want between -10 ns`:   func(lr plog.LogRecord) { lr.Attributes().PutInt("lockstep.clock.estimate_nano", 12) },
		`read attribute lockstep.clock.sigma: got -1; want 0 to 1e+10`:         func(lr plog.LogRecord) { lr.Attributes().PutDouble("lockstep.clock.sigma", -1) },
		`check lockstep.clock.samples: got -1; want 0 or more`:                 func(lr plog.LogRecord) { lr.Attributes().PutInt("lockstep.clock.samples", -1) },
		`read attribute lockstep.clock.window: got 1e+30; want 0 to 1e+10`:     func(lr plog.LogRecord) { lr.Attributes().PutDouble("lockstep.clock.window", 1e30) },
	} {
		lr := plog.NewLogRecord()
		EdgeToLog(&edge, lr)
		change(lr)
		_, ok, err := LogToEdge(lr)
		assert.True(t, ok)
		require.ErrorContains(t, err, want)
		assert.Less(t, len(err.Error()), 500, "however long the name")
	}
	_, ok, err := LogToEdge(plog.NewLogRecord())
	assert.False(t, ok, "another event")
	require.NoError(t, err)
}

func randomModel(rng *rand.Rand) model.ClockModel {
	c := model.ClockModel{
		Clock: fmt.Sprintf("host:%d/b/raw", rng.IntN(1000)), Timeline: "timeline:host:0/b/raw",
		From: int64(rng.Uint64()), At: int64(rng.Uint64()), Offset: int64(rng.Uint64()), Drift: 1e-6 * rng.NormFloat64(),
		Bound: model.NoBound, Sigma: rng.Float64(), Stepped: rng.IntN(2) == 0, Untrusted: rng.IntN(2) == 0,
	}
	c.Until = max(c.From, int64(rng.Uint64()))
	if rng.IntN(2) == 0 {
		c.Bound, c.Growth = rng.Int64(), 1e-6*rng.Float64()
	}
	return c
}

func equalModel(t *testing.T, want, got model.ClockModel) {
	t.Helper()
	assert.InEpsilon(t, 1+want.Drift*1e6, 1+got.Drift*1e6, 1e-9)
	assert.InEpsilon(t, 1+want.Growth*1e6, 1+got.Growth*1e6, 1e-12)
	assert.InEpsilon(t, 1+want.Sigma, 1+got.Sigma, 1e-12)
	got.Drift, got.Growth, got.Sigma = want.Drift, want.Growth, want.Sigma
	assert.Equal(t, want, got)
}

func TestModelRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		want := randomModel(rng)
		lr := plog.NewLogRecord()
		ModelToLog(&want, lr)
		got, ok, err := LogToModel(lr)
		require.NoError(t, err)
		require.True(t, ok)
		equalModel(t, want, got)
	}
}

func TestModelRecord(t *testing.T) {
	lr := plog.NewLogRecord()
	ModelToLog(&model.ClockModel{
		Clock: "a", Timeline: "timeline:r", From: 1000, Until: 2000, At: 1500, Offset: 500, Drift: 2e-6,
		Bound: 250, Growth: 1e-7, Sigma: 10, Stepped: true, Untrusted: false,
	}, lr)
	assert.Equal(t, "lockstep.clock.model", lr.EventName())
	assert.Equal(t, int64(2000), int64(lr.Timestamp()), "the time at which the offset holds")
	assert.Equal(t, "a: 500ns ± 250ns to timeline:r", lr.Body().Str())
	got := lr.Attributes().AsRaw()
	for name, want := range map[string]float64{
		"lockstep.clock.offset": 5e-7, "lockstep.clock.bound": 2.5e-7, "lockstep.clock.bound.growth": 0.1,
		"lockstep.clock.drift": 2, "lockstep.clock.sigma": 1e-8,
	} {
		assert.InEpsilon(t, want, got[name], 1e-12, name)
		delete(got, name)
	}
	assert.Equal(t, map[string]any{
		"lockstep.clock.id": "a", "lockstep.clock.timeline": "timeline:r", "lockstep.clock.at_nano": int64(1500),
		"lockstep.clock.from_nano": int64(1000), "lockstep.clock.until_nano": int64(2000), "lockstep.clock.offset_nano": int64(500),
		"lockstep.clock.bound_nano": int64(250), "lockstep.clock.step": true,
	}, got)
}

// Times of an undated model are not Unix time, so its event has none.
func TestModelToLog_Undated_HasNoTimestamp(t *testing.T) {
	want := model.ClockModel{Clock: "a", Timeline: "timeline:r", From: 1000, Until: 2000, At: 1500, Offset: 500, Bound: 250, Undated: true}
	lr := plog.NewLogRecord()
	ModelToLog(&want, lr)
	assert.Zero(t, lr.Timestamp())
	assert.Zero(t, lr.ObservedTimestamp())
	got, ok, err := LogToModel(lr)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, want, got)

	lr.Attributes().Remove("lockstep.clock.undated")
	got, _, err = LogToModel(lr)
	require.NoError(t, err)
	assert.False(t, got.Undated, "models of earlier versions")
}

func TestModelRefused(t *testing.T) {
	c := model.ClockModel{Clock: "a", Timeline: "timeline:r", From: 1000, Until: 2000, Bound: 250}
	for want, change := range map[string]func(plog.LogRecord){
		`read model of "a": check lockstep.clock.from_nano: got 2001 ns, above the end 2000 ns`: func(lr plog.LogRecord) { lr.Attributes().PutInt("lockstep.clock.from_nano", 2001) },
		`check lockstep.clock.bound_nano: got -1 ns; want 0 or more`:                            func(lr plog.LogRecord) { lr.Attributes().PutInt("lockstep.clock.bound_nano", -1) },
		`read attribute lockstep.clock.id: got no name; want a clock's`:                         func(lr plog.LogRecord) { lr.Attributes().Remove("lockstep.clock.id") },
		`lockstep.clock.timeline: got a name of 1000 bytes`:                                     func(lr plog.LogRecord) { lr.Attributes().PutStr("lockstep.clock.timeline", strings.Repeat("t", 1000)) },
		`read attribute lockstep.clock.drift: got type Str`:                                     func(lr plog.LogRecord) { lr.Attributes().PutStr("lockstep.clock.drift", "x") },
	} {
		lr := plog.NewLogRecord()
		ModelToLog(&c, lr)
		change(lr)
		_, ok, err := LogToModel(lr)
		assert.True(t, ok)
		require.ErrorContains(t, err, want)
	}
}
