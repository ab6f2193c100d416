// SPDX-License-Identifier: Apache-2.0

package epochmap

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/strict"
)

func full() model.EpochObservation {
	return model.EpochObservation{
		Time: 7, JobID: "job", Generation: "4 ranks", Save: 100, Domain: model.Domain{Kind: model.DomainModel, ID: "rank 3"}, Of: 4, Parts: 9,
		Epoch: model.Some[int64](99), State: model.DomainCommitted, Witness: "iteration in x.pt", Confidence: 0.5, Observer: "node1 12", Life: 5, Revision: 9, Blind: true, FirstWrite: 3,
	}
}

func written(o *model.EpochObservation) (pcommon.Resource, plog.LogRecord) {
	r, lr := pcommon.NewResource(), plog.NewLogRecord()
	JobToResource(o.JobID, "llama", r)
	ObservationToLog(o, lr)
	return r, lr
}

func TestRoundTrip(t *testing.T) {
	least := model.EpochObservation{JobID: "j", Domain: model.Domain{Kind: model.DomainCommit}, State: model.DomainAbsent, Observer: "o"}
	for body, want := range map[string]model.EpochObservation{
		"save 100: model of rank 3: committed, holds 99": full(),
		"save 0: commit: absent":                         least,
	} {
		got, ok, err := LogToObservation(written(&want))
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, want, got)
		_, lr := written(&want)
		assert.Equal(t, body, lr.Body().Str())
		assert.Equal(t, "lockstep.epoch.observation", lr.EventName())
	}
	lost := full()
	lost.State = model.DomainAbsent
	_, lr := written(&lost)
	assert.Equal(t, "save 100: model of rank 3: absent, it held 99", lr.Body().Str())
}

func TestOtherEventsAreNobodys(t *testing.T) {
	_, ok, err := LogToObservation(pcommon.NewResource(), plog.NewLogRecord())
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestWhatIsNotRightIsRefused(t *testing.T) {
	for want, change := range map[string]func(job, m pcommon.Map){
		"read attribute lockstep.job.id: got none; want one":                                                          func(job, _ pcommon.Map) { job.Remove("lockstep.job.id") },
		"read attribute lockstep.epoch.save: got none; want one":                                                      func(_, m pcommon.Map) { m.Remove("lockstep.epoch.save") },
		"read attribute lockstep.epoch.save: got type Str; want Int":                                                  func(_, m pcommon.Map) { m.PutStr("lockstep.epoch.save", "100") },
		"read attribute lockstep.epoch.domain.kind: got none; want one":                                               func(_, m pcommon.Map) { m.Remove("lockstep.epoch.domain.kind") },
		"read attribute lockstep.epoch.observer: got none; want one":                                                  func(_, m pcommon.Map) { m.Remove("lockstep.epoch.observer") },
		`read attribute lockstep.epoch.state: got "done"; want tentative, reflecting, committed, absent or withdrawn`: func(_, m pcommon.Map) { m.PutStr("lockstep.epoch.state", "done") },
		"read attribute lockstep.epoch.domain.of: got -1; want 0 or more":                                             func(_, m pcommon.Map) { m.PutInt("lockstep.epoch.domain.of", -1) },
		"read attribute lockstep.epoch.blind: got type Str; want Bool":                                                func(_, m pcommon.Map) { m.PutStr("lockstep.epoch.blind", "yes") },
		"read attribute lockstep.epoch.first_write: got -1; want 0 or more":                                           func(_, m pcommon.Map) { m.PutInt("lockstep.epoch.first_write", -1) },
		"read attribute lockstep.epoch.parts: got -1; want 0 or more":                                                 func(_, m pcommon.Map) { m.PutInt("lockstep.epoch.parts", -1) },
		"read attribute lockstep.epoch.confidence: got NaN; want 0 to 1":                                              func(_, m pcommon.Map) { m.PutDouble("lockstep.epoch.confidence", math.NaN()) },
		"read attribute lockstep.epoch.confidence: got type Bool; want Double":                                        func(_, m pcommon.Map) { m.PutBool("lockstep.epoch.confidence", true) },
		"read attribute lockstep.epoch.domain.id: got 4097 bytes; want at most 4096":                                  func(_, m pcommon.Map) { m.PutStr("lockstep.epoch.domain.id", strings.Repeat("x", strict.MaxText+1)) },
		`read attribute lockstep.epoch.generation: got what is no text: "\xff"`:                                       func(_, m pcommon.Map) { m.PutStr("lockstep.epoch.generation", "\xff") },
	} {
		o := full()
		job, lr := written(&o)
		change(job.Attributes(), lr.Attributes())
		_, ok, err := LogToObservation(job, lr)
		assert.True(t, ok, want)
		require.EqualError(t, err, want)
	}
	o := full()
	job, lr := written(&o)
	lr.Attributes().PutInt("lockstep.epoch.confidence", 1)
	got, _, err := LogToObservation(job, lr)
	require.NoError(t, err)
	assert.InDelta(t, 1, got.Confidence, 0)
}

// Whatever record comes, reading it fails nowhere, and what was read survives being written and
// read again.
func FuzzObservation(f *testing.F) {
	o := full()
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	JobToResource("job", "llama", rl.Resource())
	ObservationToLog(&o, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	seed, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
		if err != nil {
			return
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					want, ok, err := LogToObservation(rl.Resource(), lr)
					if !ok || err != nil {
						continue
					}
					got, ok, err := LogToObservation(written(&want))
					require.NoError(t, err)
					require.True(t, ok)
					require.Equal(t, want, got)
				}
			}
		}
	})
}
