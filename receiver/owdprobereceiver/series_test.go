// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/probe"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// window is what a window says of one direction and of the round trips of a path.
func window(counters map[string]int64, stamps string, delays ...int64) *probe.Outcome {
	return &probe.Outcome{
		Counters: counters,
		Paths:    []probe.PathStats{{Src: "a", Dst: "b", Stamps: stamps, Lost: 1, Delays: delays, Bound: 5}},
		Trips:    []probe.TripStats{{Src: "a", Dst: "b", Stamps: stamps, Sent: 10, Unanswered: 2, RoundTrips: delays}},
	}
}

// written are the series by metric and kind of stamps, with their sums or counts.
func written(s *measures, now time.Time) map[string]float64 {
	md := pmetric.NewMetrics()
	s.write(md, now)
	out := map[string]float64{}
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range metrics.Len() {
		m := metrics.At(i)
		name := func(attrs interface{ AsRaw() map[string]any }) string {
			return fmt.Sprint(m.Name(), " ", attrs.AsRaw()[semconv.PointStamps])
		}
		switch m.Type() {
		case pmetric.MetricTypeExponentialHistogram:
			for j := range m.ExponentialHistogram().DataPoints().Len() {
				p := m.ExponentialHistogram().DataPoints().At(j)
				out[name(p.Attributes())] = float64(p.Count())
			}
		case pmetric.MetricTypeSum:
			for j := range m.Sum().DataPoints().Len() {
				p := m.Sum().DataPoints().At(j)
				out[name(p.Attributes())] = float64(p.IntValue())
			}
		default:
			for j := range m.Gauge().DataPoints().Len() {
				p := m.Gauge().DataPoints().At(j)
				out[name(p.Attributes())] = p.DoubleValue()
			}
		}
	}
	return out
}

func TestASeriesStaysOne(t *testing.T) {
	s := newMeasures(100)
	now := time.Unix(1_700_000_000, 0)
	nothing := map[string]int64{}
	kernel := map[string]int64{"socket.sent_stamps.user": 1, "socket.sent_stamps.kernel": 40}
	s.record(now, window(nothing, ""))
	assert.Empty(t, written(s, now), "nothing was stamped yet")

	// A peer that does not answer has no stamps, and is what these are for.
	s.record(now, window(kernel, ""))
	counts := map[string]float64{
		"lockstep.owd.sent kernel": 10, "lockstep.owd.unanswered kernel": 2, "lockstep.owd.loss kernel": 1, "lockstep.owd.reordered kernel": 0,
	}
	assert.Equal(t, counts, written(s, now))

	s.record(now, window(kernel, model.StampKernel, 7, 8))
	s.record(now, window(kernel, "", 9))
	s.record(now, window(kernel, model.StampHardware, 9))
	want := map[string]float64{
		"lockstep.owd.sent kernel": 40, "lockstep.owd.unanswered kernel": 8, "lockstep.owd.loss kernel": 4, "lockstep.owd.reordered kernel": 0,
		"lockstep.owd.delay kernel": 4, "lockstep.owd.round_trip kernel": 4, "lockstep.owd.bound kernel": 5e-9,
	}
	assert.Equal(t, want, written(s, now), "better stamps do not make the worse ones good")

	now = now.Add(2 * expireGauges)
	s.record(now, window(map[string]int64{"socket.sent_stamps.user": 100, "socket.sent_stamps.kernel": 50}, model.StampUser, 9))
	s.record(now, window(kernel, model.StampKernel, 9))
	got := written(s, now)
	assert.InDelta(t, 4, got["lockstep.owd.delay kernel"], 0)
	assert.InDelta(t, 2, got["lockstep.owd.delay user"], 0)
	assert.InDelta(t, 60, got["lockstep.owd.sent kernel"], 0, "what does not rest on stamps stays")
	assert.NotContains(t, got, "lockstep.owd.sent user")
	assert.NotContains(t, got, "lockstep.owd.bound kernel", "a gauge is of the present")
	assert.InDelta(t, 5e-9, got["lockstep.owd.bound user"], 0)
}

// A window may bring delays that waited for an estimate, and no round trips.
func TestTheProberIsKnownWithoutRoundTrips(t *testing.T) {
	s := newMeasures(100)
	now := time.Unix(1_700_000_000, 0)
	first := window(map[string]int64{"socket.sent_stamps.kernel": 1}, model.StampKernel, 7)
	first.Paths = append(first.Paths, probe.PathStats{Src: "b", Dst: "a", Stamps: model.StampKernel, Delays: []int64{8}})
	s.record(now, first)
	s.record(now, &probe.Outcome{Paths: first.Paths})
	md := pmetric.NewMetrics()
	s.write(md, now)
	delay := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram().DataPoints()
	require.Equal(t, 2, delay.Len())
	for i := range delay.Len() {
		assert.Equal(t, "a", delay.At(i).Attributes().AsRaw()[semconv.PointProber])
		assert.Equal(t, uint64(2), delay.At(i).Count())
	}
}

func TestKindsAreBoundedAndForgotten(t *testing.T) {
	k := newKinds(2)
	now := time.Unix(1_700_000_000, 0)
	for i := range 5 {
		assert.Equal(t, model.StampKernel, k.worst(now, track{path: i}, model.StampKernel))
	}
	assert.Equal(t, 2, k.paths.Len())
	k.expire(now)
	assert.Equal(t, 2, k.paths.Len())
	k.expire(now.Add(1))
	assert.Zero(t, k.paths.Len())
}

func TestKinds_ExpiredBehindOneInUse_IsForgotten(t *testing.T) {
	k := newKinds(2)
	now := time.Unix(1_700_000_000, 0)
	inUse, expired := track{path: 1}, track{path: 2}
	k.worst(now, inUse, model.StampKernel)
	k.worst(now, expired, model.StampKernel)
	k.worst(now.Add(1), inUse, model.StampKernel)
	k.expire(now.Add(1))
	assert.True(t, k.paths.Has(inUse))
	assert.False(t, k.paths.Has(expired))
}

func TestWhatGoesOnIsToldNowAndThen(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	told := newTeller(zap.New(core))
	now := time.Unix(1_700_000_000, 0)
	no := errors.New("no")
	for range 20 { // windows
		told.refused(now, "Edges refused by the timeline", 3, no)
		told.counted(now, &probe.Outcome{Counters: map[string]int64{"node.send_errors": now.Unix(), "reflector.full": 5}})
		now = now.Add(2 * time.Second)
	}
	require.Equal(t, 3, logs.Len())
	assert.Equal(t, map[string]any{"count": int64(3), "error": "no"}, logs.All()[0].ContextMap())
	assert.Equal(t, "node.send_errors", logs.All()[1].ContextMap()["reason"])
	assert.Equal(t, "reflector.full", logs.All()[2].ContextMap()["reason"])
	logs.TakeAll()

	now = now.Add(tellAgain)
	told.refused(now, "Edges refused by the timeline", 3, no)
	told.counted(now, &probe.Outcome{Counters: map[string]int64{"node.send_errors": now.Unix(), "reflector.full": 5}})
	require.Equal(t, 2, logs.Len(), "of sessions, none was refused since")
	logs.TakeAll()

	at := netip.MustParseAddr("10.0.0.7")
	told.counted(now, &probe.Outcome{Refused: map[string][]netip.Addr{"reflector.forged": {at}}})
	assert.Zero(t, logs.Len(), "it is not counted yet")
	told.counted(now, &probe.Outcome{Counters: map[string]int64{"reflector.forged": 1}})
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, []any{"10.0.0.7"}, logs.All()[0].ContextMap()["from"])
	assert.Empty(t, told.from)
}

func TestMembersThatDoNotAnswerAreNamed(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	told := newTeller(zap.New(core))
	now := time.Unix(1_700_000_000, 0)
	end := now.Add(silentAfter)
	for ; !now.After(end); now = now.Add(2 * time.Second) {
		require.Zero(t, logs.Len())
		trips := []probe.TripStats{
			{Src: "a", Dst: "mute", Path: 0, Sent: 5, Unanswered: 5},
			{Src: "a", Dst: "mute", Path: 1, Sent: 5, Unanswered: 5},
			{Src: "a", Dst: "one path", Path: 0, Sent: 5, Unanswered: 5},
			{Src: "a", Dst: "one path", Path: 1, Sent: 5, Unanswered: 4},
			{Src: "a", Dst: "was mute", Sent: 5, Unanswered: 5},
		}
		if now.Add(4 * time.Second).After(end) {
			trips[4].Unanswered = 4
		}
		told.silent(now, trips)
	}
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, map[string]any{"count": int64(1), "members": []any{"mute"}}, logs.All()[0].ContextMap())
	told.silent(now, nil)
	assert.Empty(t, told.mute, "of members that left nothing is kept")
}

// list is a source whose list may change.
type list struct{ mesh.List }

func (l *list) Members(context.Context) (mesh.List, error) { return l.List, nil }

func TestEndPointsThatAreNoMembersAreTold(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	own := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.1.1:1")}
	source := &list{}
	p := &present{Source: source, own: own, log: zap.New(core)}
	for i, members := range [][]mesh.Member{
		{{Node: "x", Addr: own[0]}},
		{{Node: "x", Addr: own[0]}}, // told once
		{{Node: "x", Addr: own[0]}, {Node: "x", Addr: own[1]}},
		nil,
	} {
		source.List.Members = members
		got, err := p.Members(t.Context())
		require.NoError(t, err)
		assert.Equal(t, members, got.Members)
		assert.Equal(t, []int{1, 1, 1, 2}[i], logs.Len())
	}
	assert.Equal(t, map[string]any{"endpoints": []any{"10.0.1.1:1"}}, logs.All()[0].ContextMap())
}
