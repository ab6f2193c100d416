// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/faulty"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// TestGateways_OneRecording_EqualIDs has two gateways receive one recording of all faults as it is made, in other batches and
// at another phase of their intervals, and in the full tier a third one that receives it from the file when the others are done.
func TestGateways_OneRecording_EqualIDs(t *testing.T) {
	t.Parallel()
	const moments, removed = 100, 60
	replays := []recordingReplay{{batch: 1}, {batch: 3, late: 411 * time.Millisecond}, {batch: 2, late: 2 * time.Minute}}
	replays = replays[:tier.N(t, 2, 3)]
	for i := range replays {
		replays[i].gateway = newFindingsGateway(t)
	}
	file := filepath.Join(t.TempDir(), "faults.jsonl")
	begun := time.Now()
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, faulty.Record(f, faulty.Faults(), begun, moments, removed))
	require.NoError(t, f.Close())

	var all sync.WaitGroup
	for i := range replays {
		all.Go(func() { assert.NoError(t, replays[i].run(t.Context(), file, begun)) })
	}
	all.Wait()
	for i := range replays {
		replays[i].settle(t)
	}
	want := replays[0].identities(t)
	assert.Len(t, want, len(faulty.Faults()), "one of each fault: %v", want)
	for i := range replays {
		assert.Equal(t, want, replays[i].identities(t), "gateway %d", i)
		assert.Zero(t, replays[i].gateway.gateway.end(t))
	}
}

// recordingReplay is how a gateway receives a recording.
type recordingReplay struct {
	gateway *findingsWorld
	batch   int64         // moments in one message
	late    time.Duration // after the recording's own times
}

// run sends the recording.
func (r *recordingReplay) run(ctx context.Context, file string, begun time.Time) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read recording: %w", err)
	}
	lines, err := faulty.Read(bytes.NewReader(content))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: requestLimit}
	defer client.CloseIdleConnections()
	td, ld := ptrace.NewTraces(), plog.NewLogs()
	for i, line := range lines {
		if err := r.add(&line, td, ld); err != nil {
			return err
		}
		if i+1 < len(lines) && lines[i+1].Moment/r.batch == line.Moment/r.batch {
			continue
		}
		time.Sleep(time.Until(begun.Add(r.late + time.Duration(line.Moment)*faulty.Period)))
		if err := r.send(ctx, client, td, ld); err != nil {
			return err
		}
		td, ld = ptrace.NewTraces(), plog.NewLogs()
	}
	time.Sleep(2 * openTime) // some findings come after the end of the input
	return nil
}

// settle waits until all findings are closed.
func (r *recordingReplay) settle(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(closeLimit); time.Now().Before(until) && len(openOf(r.gateway.out.read(t))) > 0; {
		time.Sleep(200 * time.Millisecond)
	}
	assert.Empty(t, openOf(r.gateway.out.read(t)), "findings that are left open")
}

func (r *recordingReplay) add(line *faulty.Line, td ptrace.Traces, ld plog.Logs) error {
	if line.Traces != nil {
		more, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line.Traces)
		if err != nil {
			return fmt.Errorf("read traces: %w", err)
		}
		more.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	if line.Logs != nil {
		more, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line.Logs)
		if err != nil {
			return fmt.Errorf("read logs: %w", err)
		}
		r.shift(more)
		more.ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
	}
	return nil
}

// shift moves the times of versions to when the gateway receives them: old ones count for none.
func (r *recordingReplay) shift(ld plog.Logs) {
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

func (r *recordingReplay) send(ctx context.Context, client *http.Client, td ptrace.Traces, ld plog.Logs) error {
	traces, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	if err != nil {
		return fmt.Errorf("write traces: %w", err)
	}
	logs, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	if err != nil {
		return fmt.Errorf("write logs: %w", err)
	}
	if td.SpanCount() > 0 && !accepted(ctx, client, r.gateway.url+"/v1/traces", traces) {
		return fmt.Errorf("send %d spans: the gateway refused them", td.SpanCount())
	}
	if ld.LogRecordCount() > 0 && !accepted(ctx, client, r.gateway.url+"/v1/logs", logs) {
		return fmt.Errorf("send %d log records: the gateway refused them", ld.LogRecordCount())
	}
	return nil
}

// identities are the findings by what they are about, and their ids. That a clock was set right is a finding of its own.
func (r *recordingReplay) identities(t *testing.T) (ids []string) {
	t.Helper()
	for _, f := range r.gateway.out.read(t) {
		if f["lockstep.finding.class"] == "step" {
			continue
		}
		var parts []string
		for _, key := range []string{"finding.kind", "finding.class", "job.id", "finding.clock", "finding.op", "finding.id"} {
			parts = append(parts, f["lockstep."+key])
		}
		if id := strings.Join(parts, " "); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// openOf returns the ids of findings whose last line does not close them.
func openOf(lines []finding) (ids []string) {
	closed := map[string]bool{}
	for _, f := range slices.Backward(lines) {
		id := f["lockstep.finding.id"]
		if _, known := closed[id]; known {
			continue
		}
		if closed[id] = f.closed(); !closed[id] {
			ids = append(ids, id)
		}
	}
	return ids
}
