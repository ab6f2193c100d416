// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// book is the extension sequence, of which a test says what it knows.
type book struct {
	component.StartFunc
	component.ShutdownFunc
	verdict func(step int64) sequence.Verdict
	lost    []sequence.Loss

	joined, left int
	begun, ended []int64
}

func (b *book) Join() func() {
	b.joined++
	return func() { b.left++ }
}

func (b *book) Begin(step sequence.Step) sequence.Verdict {
	b.begun = append(b.begun, step.Step)
	return b.verdict(step.Step)
}

func (b *book) End(steps []sequence.Step) {
	for _, s := range steps {
		b.ended = append(b.ended, s.Step)
	}
}

func (b *book) Losses() (lost []sequence.Loss) {
	lost, b.lost = b.lost, nil
	return lost
}
func (*book) Arriving([]sequence.Arrival) {}
func (*book) Refused([]sequence.Arrival)  {}
func (*book) Arrived([]sequence.Arrival)  {}

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

func bookRig(t *testing.T, b *book) *rig {
	t.Helper()
	id := component.MustNewID("sequence")
	cfg := newDefaultConfig()
	cfg.SequenceID = &id
	r := &rig{}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), cfg, &r.logs)
	r.start(t, extensions{id: b})
	return r
}

func TestSequence_StepsLostSpans_SayItAndAccuseNoRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{
			verdict: func(int64) sequence.Verdict { return sequence.Verdict{Lost: 3} },
			lost:    []sequence.Loss{{Step: sequence.Step{Job: "job", Incarnation: "inc", Step: 2}, Last: 4, Spans: 9, Reason: sequence.ReasonRestart}},
		}
		r := bookRig(t, b)
		r.run(t, 8)
		time.Sleep(time.Minute)
		r.stop(t)
		assert.Empty(t, r.findings())
		all := []int64{0, 1, 2, 3, 4, 5, 6, 7}
		assert.Equal(t, all, b.begun)
		assert.Equal(t, all, b.ended)
		assert.Equal(t, []int{1, 1}, []int{b.joined, b.left})
		flagged := 0
		for _, td := range r.traces.AllTraces() {
			for _, rs := range td.ResourceSpans().All() {
				for _, s := range rs.ScopeSpans().At(0).Spans().All() {
					if why, ok := s.Attributes().Get("lockstep.step.incomplete"); ok {
						lost, _ := s.Attributes().Get("lockstep.step.lost")
						assert.Equal(t, "gateway_ended", why.Str())
						assert.EqualValues(t, 3, lost.Int())
						flagged++
					}
				}
			}
		}
		assert.Equal(t, 8, flagged, "each root")
		require.Equal(t, 1, r.logs.LogRecordCount(), "the loss, once")
		lr := r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		assert.Equal(t, "lockstep.steps.lost", lr.EventName())
		assert.Equal(t, "job job: 9 spans of steps 2 to 4 were lost when the gateway ended", lr.Body().Str())
		for _, md := range r.metrics.AllMetrics() {
			assert.Zero(t, md.DataPointCount(), "no measure of such a step")
		}
	})
}

func TestSequence_NothingIsLost_FindingsAreAsWithout(t *testing.T) {
	b := &book{verdict: func(int64) (v sequence.Verdict) { return v }}
	r := bookRig(t, b)
	r.run(t, 8)
	r.stop(t)
	require.NotEmpty(t, r.findings())
	for _, td := range r.traces.AllTraces() {
		_, ok := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("lockstep.step.incomplete")
		assert.False(t, ok)
	}
}

func TestSequence_NoExtension_DoesNotStart(t *testing.T) {
	id := component.MustNewID("sequence")
	cfg := newDefaultConfig()
	cfg.SequenceID = &id
	r := &rig{}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), cfg, &r.logs)
	require.EqualError(t, r.faces[0].Start(t.Context(), componenttest.NewNopHost()), "find extension sequence: got none; want it in service::extensions")
	r.stop(t)
}
