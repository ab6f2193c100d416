// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

const (
	// moments of a recording, and the one from which on nothing is wrong.
	moments, removed = 100, 60
	// silence is longer than any component waits before it closes a finding.
	silence = 20 * time.Second
)

// begun is when a recording begins. A bubble's clock starts before it.
var begun = time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)

// replay is how a gateway receives a recording.
type replay struct {
	late  time.Duration // after the recording's own times
	batch int64         // moments in one message
	phase time.Duration // of the gateway's intervals
}

// recorded is a recording of all faults, and what a gateway concludes that receives it as it was recorded.
type recorded struct {
	lines []Line
	found []model.Finding
}

// reference makes the recording once for all tests.
func reference(t *testing.T) recorded {
	t.Helper()
	once.Do(func() {
		var file bytes.Buffer
		require.NoError(t, Record(&file, Faults(), begun, moments, removed))
		lines, err := Read(&file)
		require.NoError(t, err)
		made = recorded{lines, replay{batch: 1}.findings(t, lines)}
	})
	require.NotEmpty(t, made.found)
	return made
}

var (
	once sync.Once
	made recorded
)

// findings returns what a gateway concludes from a recording.
func (r replay) findings(t *testing.T, lines []Line) (all []model.Finding) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begun.Add(r.late - 10*time.Second + r.phase)))
		g := newGateway(t)
		time.Sleep(time.Until(begun.Add(r.late)))
		start := time.Now()
		td, ld := ptrace.NewTraces(), plog.NewLogs()
		for i, line := range lines {
			r.add(t, &line, td, ld)
			if i+1 < len(lines) && lines[i+1].Moment/r.batch == line.Moment/r.batch {
				continue
			}
			time.Sleep(time.Until(start.Add(time.Duration(line.Moment) * Period)))
			g.send(td, ld)
			td, ld = ptrace.NewTraces(), plog.NewLogs()
		}
		time.Sleep(silence)
		g.stop()
		all = g.findings()
	})
	return all
}

func (r replay) add(t *testing.T, line *Line, td ptrace.Traces, ld plog.Logs) {
	t.Helper()
	if line.Traces != nil {
		more, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line.Traces)
		require.NoError(t, err)
		more.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	if line.Logs != nil {
		more, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line.Logs)
		require.NoError(t, err)
		r.shift(more)
		more.ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
	}
}

// shift moves the times of versions to when the gateway receives them: it leaves out those that are late by more than
// a quarter of fleet::settle, since two versions that were not seen at once are no mixture.
func (r replay) shift(ld plog.Logs) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if lr.EventName() == semconv.EventHostFact {
					lr.SetTimestamp(pcommon.NewTimestampFromTime(lr.Timestamp().AsTime().Add(r.late)))
				}
			}
		}
	}
}

// identities are the findings by what they are about, and their ids.
func identities(all []model.Finding) (ids []string) {
	for i := range all {
		f := &all[i]
		id := fmt.Sprintf("%s %s %s: %s", f.Kind, f.Class, place(f), f.ID)
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func place(f *model.Finding) string {
	return cmp.Or(f.JobID, f.Clock) + " " + f.Op
}

// findingOf returns the last revision of the finding of a fault.
func findingOf(all []model.Finding, of *Fault) (last model.Finding, found bool) {
	for i := range all {
		f := &all[i]
		if f.Kind == of.Kind && f.Class == of.Class && (f.JobID == of.Name || of.Kind == model.FindingClock) && (of.Op == "" || f.Op == of.Op) {
			last, found = *f, true
		}
	}
	return last, found
}

func TestFaults_OfEveryKind_AreFoundAndEnd(t *testing.T) {
	all := reference(t).found
	for _, of := range Faults() {
		f, found := findingOf(all, &of)
		if assert.True(t, found, of.Name) {
			assert.Equal(t, model.StatusClosed, f.Status, of.Name)
		}
	}
	ids := identities(slices.DeleteFunc(slices.Clone(all), func(f model.Finding) bool { return f.Class == model.ClassStep }))
	assert.Len(t, ids, len(Faults()), "beside that a clock was set right: %v", ids)
}

// Neither the sizes of batches nor the phases of intervals change an id.
func TestGateways_SameInput_EqualIDs(t *testing.T) {
	r := reference(t)
	for n := range int64(tier.N(t, 1, 4)) {
		of := replay{batch: 3 + n, phase: 411 * time.Millisecond / time.Duration(1+n)}
		assert.Equal(t, identities(r.found), identities(of.findings(t, r.lines)), "%+v", of)
	}
}

func TestReplay_DayLater_EqualIDs(t *testing.T) {
	r := reference(t)
	assert.Equal(t, identities(r.found), identities(replay{late: 24 * time.Hour, batch: 1}.findings(t, r.lines)))
}
