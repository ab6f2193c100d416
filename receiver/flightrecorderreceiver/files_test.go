// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func allStates(n int) func(events) bool {
	return func(e events) bool { return len(e.states) == n }
}

// What is expected is reckoned by hand from dumpOf.
func TestIncidentOfFourRanks(t *testing.T) {
	dir := jobDir(t)
	cfg := config(dir)
	cfg.AllRanks, cfg.Wait, cfg.MaxWait = true, time.Hour, time.Hour
	b := start(t, cfg, nil)
	for rank := range int64(4) {
		writeDump(t, dumpPath(dir, rank), frwrite.Pickle(dumpOf(rank)))
	}
	e := b.waitFor(t, "four states, without waiting", allStates(4))
	b.shutdown()

	for rank := range int64(4) {
		require.Len(t, e.states[rank], 1)
		s := e.states[rank][0]
		assert.Equal(t, "run-17", s.Rank.JobID)
		assert.Equal(t, model.StateFlightRecorder, s.Source)
		assert.Equal(t, dumpPath(dir, rank), s.Name)
		assert.Zero(t, s.Time, "a dump that came by itself does not say when")
		assert.Empty(t, s.Partial)
		require.Len(t, s.Comms, 1)
		assert.Equal(t, []int64{0, 1, 2, 3}, s.Comms[0].Members)
	}
	assert.Empty(t, e.absent)

	e = b.events(t)
	require.Len(t, e.open, 3, "rank 3 has nothing open")
	for _, o := range e.open {
		assert.Equal(t, "all_reduce", o.Op.Collective.Name)
		assert.Equal(t, int64(2), o.Op.Collective.Seq.V)
		assert.Equal(t, "scheduled", o.Op.Collective.State)
		assert.Contains(t, o.Op.Stack, "train_step")
		assert.Equal(t, int64(1), o.InFlight)
	}

	require.Equal(t, 4, b.traces.SpanCount())
	for _, td := range b.traces.AllTraces() {
		ranks, problems := otelmap.TracesToOps(td)
		require.Empty(t, problems)
		op := ranks[0].Ops[0]
		rank := ranks[0].Rank.Rank
		assert.Equal(t, epoch+(rank+80)*ms, op.Start, "20 ms before its end was seen")
		assert.Equal(t, epoch+(rank+100)*ms, op.End)
		assert.Equal(t, model.Some(epoch+rank*ms), op.Launch)
		assert.Equal(t, model.Some(int64(8192)), op.Collective.Bytes)
		assert.Equal(t, "completed", op.Collective.State)
		assert.Equal(t, model.ScopeComm, op.Collective.SeqScope)
	}
	assert.Equal(t, map[string][2]float64{
		semconv.MetricCollectiveDuration:          {4, 0.080},
		semconv.MetricCollectiveSchedulingLatency: {4, 0.020},
	}, sums(t, b.metrics))
	assert.EqualValues(t, 4, b.counter(t, "states_emitted"))
	assert.EqualValues(t, 7, b.counter(t, "entries_read"))
}

// sums returns count and sum of the histograms that came last.
func sums(t *testing.T, sink *consumertest.MetricsSink) map[string][2]float64 {
	t.Helper()
	require.NotEmpty(t, sink.AllMetrics())
	out := map[string][2]float64{}
	md := sink.AllMetrics()[len(sink.AllMetrics())-1]
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		var v [2]float64
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			v[0] += float64(dp.Count())
			v[1] += dp.Sum()
		}
		v[1] = float64(int64(v[1]*1e6+0.5)) * 1e-6
		out[m.Name()] = v
	}
	return out
}

func TestDumpWrittenInPieces(t *testing.T) {
	dir := jobDir(t)
	cfg := config(dir)
	cfg.Settle = patience // it is whole before it has settled
	b := start(t, cfg, nil)
	data := frwrite.Pickle(dumpOf(0))
	f, err := os.Create(dumpPath(dir, 0))
	require.NoError(t, err)
	for len(data) > 0 {
		n := min(len(data), 200)
		_, err := f.Write(data[:n])
		require.NoError(t, err)
		data = data[n:]
		time.Sleep(20 * time.Millisecond)
	}
	require.NoError(t, f.Close())
	e := b.waitFor(t, "the state", allStates(1))
	assert.Empty(t, e.states[0][0].Partial)
	assert.EqualValues(t, 1, b.counter(t, "dumps_read"))
	assert.Zero(t, b.counter(t, "dumps_failed"))
}

func TestTornDumpIsReadAsFarAsItGoes(t *testing.T) {
	dir := jobDir(t)
	b := start(t, config(dir), nil)
	data := frwrite.Pickle(dumpOf(0))
	writeDump(t, dumpPath(dir, 0), data[:len(data)-20])
	e := b.waitFor(t, "the state", allStates(1))
	assert.NotEmpty(t, e.states[0][0].Partial)
	assert.EqualValues(t, 1, b.counter(t, "dumps_partial"))
}

// The next incident's dump overwrites the last one's. What is over in both is told once.
func TestRewrittenDump(t *testing.T) {
	dir := jobDir(t)
	cfg := config(dir)
	cfg.Keep.Directory = filepath.Join(t.TempDir(), "kept")
	b := start(t, cfg, nil)
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(dumpOf(0)))
	b.waitFor(t, "the first", func(e events) bool { return len(e.states[0]) == 1 })
	next := dumpOf(0)
	next.Entries[1].State, next.Entries[1].Completed, next.Entries[1].Retired = frwrite.Completed, epoch+2*sec, true
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(next))
	b.waitFor(t, "the second", func(e events) bool { return len(e.states[0]) == 2 })
	b.shutdown()
	assert.Equal(t, 2, b.traces.SpanCount(), "one of each dump")
	assert.EqualValues(t, 2, b.counter(t, "copies_written"))
	assert.Equal(t, [2]float64{1, 0.005}, sums(t, b.metrics)[semconv.MetricCollectiveSchedulingLatency], "the second was not seen to start")
}

func TestUnusableFiles(t *testing.T) {
	dir := jobDir(t)
	cfg := config(dir)
	cfg.MaxFileBytes = 100_000
	b := start(t, cfg, nil)
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(dumpOf(0)))
	writeDump(t, dumpPath(dir, 1), nil)
	// A pickle that would run a command: GLOBAL os.system, its argument, REDUCE.
	writeDump(t, dumpPath(dir, 2), []byte("\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueq\x00\x85R."))
	writeDump(t, dumpPath(dir, 4), []byte("PK\x03\x04 a checkpoint"))
	writeDump(t, dumpPath(dir, 5), make([]byte, 100_001))
	require.NoError(t, os.Symlink("/etc/passwd", dumpPath(dir, 6)))
	b.waitCount(t, 1, "dumps_failed", failedEmpty)
	b.waitCount(t, 1, "dumps_failed", failedDamaged)
	b.waitCount(t, 1, "dumps_failed", failedNoDump)
	b.waitCount(t, 1, "dumps_failed", failedTooLarge)
	b.waitCount(t, 1, "dumps_failed", failedNotRegular)
	b.waitFor(t, "rank 0, and who is absent", func(e events) bool { return len(e.states) == 1 && len(e.absent) == 3 })
	b.shutdown()
	e := b.events(t)
	for _, rank := range []int64{1, 2, 5} {
		require.Len(t, e.absent[rank], 1, "rank %d", rank)
		assert.Equal(t, model.AbsentUnreadable, e.absent[rank][0].Reason)
		assert.NotZero(t, e.absent[rank][0].Time)
	}
	assert.Equal(t, "run-17", e.ranks[0].JobID)
	assert.Empty(t, e.ranks[0].HostName, "nobody says where it runs")
	assert.EqualValues(t, 5, b.counter(t, "dumps_failed"))
}

func TestExpectedRanksThatDoNotComeAreAbsent(t *testing.T) {
	dir := jobDir(t)
	cfg := config(dir)
	cfg.Ranks = []string{"0-1"}
	b := start(t, cfg, nil)
	writeDump(t, dumpPath(dir, 0), frwrite.JSON(dumpOf(0)))
	e := b.waitFor(t, "rank 1 to be absent", func(e events) bool { return len(e.absent) == 1 })
	assert.Equal(t, model.AbsentMissing, e.absent[1][0].Reason)
	assert.NotEmpty(t, e.ranks[0].HostName, "it is expected here")
	assert.Len(t, e.states, 1)
}

func TestOldDumpsAreNoIncident(t *testing.T) {
	dir := jobDir(t)
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(dumpOf(0)))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dumpPath(dir, 0), old, old))
	b := start(t, config(dir), nil)
	b.waitCount(t, 1, "files_ignored", ignoredOld)
	writeDump(t, dumpPath(dir, 1), frwrite.Pickle(dumpOf(1)))
	b.waitFor(t, "rank 1 only", allStates(1))
	require.NoError(t, os.Remove(dumpPath(dir, 1)))
	b.shutdown()
	assert.Len(t, b.events(t).states[1], 1, "one that vanishes costs nothing")
}

func TestTwoJobsInOneFolder(t *testing.T) {
	dir := jobDir(t)
	for _, name := range []string{"a_rank_0", "b_rank_0", "b_rank_1"} {
		writeDump(t, filepath.Join(dir, name), frwrite.Pickle(dumpOf(int64(name[len(name)-1]-'0'))))
	}
	b := start(t, config(dir), nil)
	e := b.waitFor(t, "three states", func(e events) bool { return len(e.states[0]) == 2 && len(e.states[1]) == 1 })
	jobs := []string{e.states[0][0].Rank.JobID, e.states[0][1].Rank.JobID}
	assert.ElementsMatch(t, []string{"run-17/a_rank", "run-17/b_rank"}, jobs)
	assert.Equal(t, "run-17/b_rank", e.states[1][0].Rank.JobID)
}

func TestRefusedEventsAreCounted(t *testing.T) {
	dir := jobDir(t)
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(dumpOf(0)))
	b := start(t, config(dir), consumertest.NewErr(consumererror.NewPermanent(os.ErrInvalid)))
	b.waitCount(t, 2, "events_dropped")
	assert.Zero(t, b.counter(t, "states_emitted"))
	assert.True(t, b.saidThat("Events refused"))
}

// What has come is handed on at the end; nobody is absent who could still have come.
func TestShutdownHandsOn(t *testing.T) {
	dir := jobDir(t)
	cfg := config(dir)
	cfg.AllRanks, cfg.Wait, cfg.MaxWait = true, time.Hour, time.Hour
	b := start(t, cfg, nil)
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(dumpOf(0)))
	b.waitCount(t, 1, "dumps_read")
	b.shutdown()
	e := b.events(t)
	assert.Len(t, e.states, 1)
	assert.Empty(t, e.absent)
}

// forNow refuses the first batches, and takes those after.
type forNow struct {
	consumertest.LogsSink
	left atomic.Int64
}

func (f *forNow) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if f.left.Add(-1) >= 0 {
		return errors.New("no room for now")
	}
	return f.LogsSink.ConsumeLogs(ctx, ld)
}

func TestWhatIsRefusedForNowIsOfferedAgain(t *testing.T) {
	dir := jobDir(t)
	next := &forNow{}
	next.left.Store(3)
	b := start(t, config(dir), next)
	writeDump(t, dumpPath(dir, 3), frwrite.Pickle(dumpOf(3)))
	b.waitCount(t, 1, "states_emitted")
	assert.EqualValues(t, 3, b.counter(t, "delivery_retries"))
	assert.Equal(t, 1, next.LogRecordCount())
	assert.Zero(t, b.counter(t, "events_dropped"))
}

// inParts takes one event at a time, and gives the others back.
type inParts struct{ consumertest.LogsSink }

func (p *inParts) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	first, rest := plog.NewLogs(), plog.NewLogs()
	ld.CopyTo(first)
	ld.CopyTo(rest)
	n := 0
	keep := func(of plog.Logs, one bool) {
		n = 0
		of.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
			rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
				sl.LogRecords().RemoveIf(func(plog.LogRecord) bool { n++; return (n == 1) != one })
				return sl.LogRecords().Len() == 0
			})
			return rl.ScopeLogs().Len() == 0
		})
	}
	keep(first, true)
	keep(rest, false)
	if err := p.LogsSink.ConsumeLogs(ctx, first); err != nil || rest.LogRecordCount() == 0 {
		return err
	}
	return consumererror.NewLogs(errors.New("one at a time"), rest)
}

func TestWhatIsTakenInPartsIsTakenOnce(t *testing.T) {
	dir := jobDir(t)
	whole, parts := &consumertest.LogsSink{}, &inParts{}
	for rank := range int64(2) {
		writeDump(t, dumpPath(dir, rank), frwrite.Pickle(dumpOf(rank)))
	}
	a, b := start(t, config(dir), whole), start(t, config(dir), parts)
	a.waitCount(t, 2, "states_emitted")
	b.waitCount(t, 2, "states_emitted")
	a.shutdown()
	b.shutdown()
	assert.Equal(t, whole.LogRecordCount(), parts.LogRecordCount())
}
