// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap/zapcore"

	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestAGrowingFile(t *testing.T) {
	l := newLog(t, logPath(t))
	b := start(t, config(l.path), host{})
	l.write(lines(0, 0, 3) + line(0, 3)[:100])
	b.await(3)
	time.Sleep(10 * time.Millisecond) // polls of a line that is not whole
	assert.Equal(t, int64(3), b.counter("lines_read"))
	l.write(line(0, 3)[100:])
	b.await(4)
	b.stop()
	b.once(0, 4)
	assert.Equal(t, int64(4), b.counted())
	assert.Zero(t, b.counter("faults"))
}

func TestSpansAndMetrics(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nccl-inspector-77")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for rank := range 2 {
		text := lines(rank, 0, 10) + "{" + header("v4.1", rank, 200) + `,"dump_stats":{"coll_dropped_since_last_dump":3}}` + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "n-pid"+string(rune('0'+rank))+".log"), []byte(text), 0o600))
	}
	cfg := config(dir)
	cfg.Mode, cfg.JobID = modeOnce, ""
	b := start(t, cfg, host{})
	b.await(22)
	b.stop()
	require.Len(t, b.ops(), 20)
	res := b.spans.AllTraces()[0].ResourceSpans().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, map[string]any{
		"service.name": "77", "service.instance.id": "77/" + model.Incarnation(model.World{CommHash: "0x0000000000000abc"}) + "/0",
		"host.name": "n", "lockstep.job.id": "77", "lockstep.job.incarnation": model.Incarnation(model.World{CommHash: "0x0000000000000abc"}),
		"lockstep.rank": int64(0), "lockstep.world_size": int64(4), "process.pid": int64(100), "lockstep.clock.id": "host:n/?/realtime",
	}, res)
	attrs := map[string]any{
		"lockstep.job.id": "77", "lockstep.rank": int64(1), "lockstep.comm.size": int64(4),
		"lockstep.collective.name": "all_reduce", "lockstep.timing.source": "kernel_gpu",
	}
	m := b.latest()
	h := m["lockstep.collective.duration"].ExponentialHistogram().DataPoints().At(1)
	assert.Equal(t, attrs, h.Attributes().AsRaw())
	assert.Equal(t, uint64(10), h.Count())
	assert.InDelta(t, 0.010, h.Sum(), 1e-9)
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, m["lockstep.collective.duration"].ExponentialHistogram().AggregationTemporality())
	io := m["lockstep.collective.io"].Sum().DataPoints().At(1)
	assert.Equal(t, attrs, io.Attributes().AsRaw())
	assert.Equal(t, int64(10_000_000), io.IntValue())
	bw := m["lockstep.collective.bus_bandwidth"].Gauge().DataPoints().At(1)
	assert.Equal(t, attrs, bw.Attributes().AsRaw())
	assert.InDelta(t, 1.5e9, bw.DoubleValue(), 1)
	lost := m["lockstep.events.lost"].Sum().DataPoints().At(1)
	assert.Equal(t, int64(3), lost.IntValue())
	assert.Equal(t, map[string]any{
		"lockstep.job.id": "77", "lockstep.rank": int64(1), "lockstep.hop": "nccl_inspector", "lockstep.reason": "coll_ring",
	}, lost.Attributes().AsRaw())
}

func TestStepsByAnAnchor(t *testing.T) {
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 40)), 0o600))
	cfg := config(path)
	cfg.Mode, cfg.Anchor = modeOnce, AnchorConfig{Function: "all_reduce", Every: 4}
	b := start(t, cfg, host{})
	b.await(40)
	b.stop()
	steps := 0
	for _, op := range b.ops() {
		require.True(t, op.Step.OK)
		if op.Kind == model.KindStep {
			steps++
			continue
		}
		assert.Equal(t, op.Collective.Seq.V/4, op.Step.V)
	}
	assert.Equal(t, 10, steps)
}

func TestRenamedAndCreatedAnew(t *testing.T) {
	l := newLog(t, logPath(t))
	b := start(t, config(l.path), host{})
	l.write(lines(0, 0, 3))
	b.await(3)
	l.write(lines(0, 3, 5)) // not read when it is renamed, perhaps
	require.NoError(t, os.Rename(l.path, l.path+".1"))
	second := newLog(t, l.path)
	second.write(lines(0, 5, 7))
	l.write(lines(0, 7, 9)) // who had the file open goes on
	b.await(9)
	b.stop()
	b.once(0, 9)
}

func TestRenamedWithinWhatIsRead(t *testing.T) {
	l := newLog(t, logPath(t))
	b := start(t, config(l.path+"*"), host{})
	l.write(lines(0, 0, 3))
	b.await(3)
	require.NoError(t, os.Rename(l.path, l.path+".1"))
	newLog(t, l.path).write(lines(0, 3, 6))
	b.await(6)
	b.stop()
	b.once(0, 6)
}

// A copy is written piece by piece, and looked at in between.
func TestCopyInPieces(t *testing.T) {
	l := newLog(t, logPath(t))
	b := start(t, config(l.path+"*"), host{})
	l.write(lines(0, 0, 3))
	b.await(3)
	c := newLog(t, l.path+".1")
	text := lines(0, 0, 3)
	for i, part := range []string{"", text[:40], text[40:80], text[80:]} {
		c.write(part)
		// Once another file was read, the copy was looked at.
		newLog(t, fmt.Sprintf("%s.%d", l.path, 2+i)).write(line(i, int64(3+i)))
		b.await(int64(4 + i))
	}
	b.stop()
	b.once(0, 7)
}

// byHand is a receiver that looks and reads when the test says so.
func byHand(t *testing.T, cfg *Config) *bench {
	t.Helper()
	cfg.PollInterval = time.Hour
	b := build(t, cfg, nil)
	b.begin(host{})
	b.rd.cancel()
	<-b.rd.finished
	b.rd.ctx = t.Context()
	return b
}

// A link to a folder makes two paths of each file, whether the file holds nothing when
// it is found, less than tells it from others, or all.
func TestAFileWithTwoPathsIsReadOnce(t *testing.T) {
	for name, first := range map[string]string{"empty": "", "short": line(0, 0)[:20], "whole": line(0, 0)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := filepath.Join(dir, "run1")
			require.NoError(t, os.Mkdir(run, 0o755))
			require.NoError(t, os.Symlink("run1", filepath.Join(dir, "latest")))
			l := newLog(t, filepath.Join(run, "n-pid100.log"))
			l.write(first)
			b := byHand(t, config(filepath.Join(dir, "*")))
			b.rd.poll(time.Now())
			l.write((line(0, 0) + lines(0, 1, 5))[len(first):])
			for range 2 {
				b.rd.poll(time.Now())
			}
			assert.Len(t, b.rd.files, 1)
			assert.Equal(t, int64(5), b.counter("lines_read"))
			b.once(0, 5)
		})
	}
}

// A copy, too, may be found by two paths at once, and be renamed for the next one.
func TestACopyWithTwoPathsIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	l := newLog(t, filepath.Join(dir, "n.log"))
	b := byHand(t, config(l.path+"*"))
	l.write(lines(0, 0, 3))
	b.rd.poll(time.Now())
	l.write(lines(0, 3, 5))
	copied, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(l.path, 0))
	l = &log{t, l.path, appending(t, l.path)}
	l.write(lines(0, 5, 7))
	b.rd.poll(time.Now())
	require.NoError(t, os.WriteFile(l.path+".1", copied, 0o600))
	require.NoError(t, os.Symlink("n.log.1", l.path+".last"))
	b.rd.poll(time.Now())
	require.NoError(t, os.Rename(l.path+".1", l.path+".2"))
	require.NoError(t, os.Remove(l.path+".last"))
	b.rd.poll(time.Now())
	b.once(0, 7)
}

func appending(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// A tool copies the log and cuts it to nothing. The writer goes on at its old place,
// which leaves a hole.
func TestCopiedAndCut(t *testing.T) {
	for _, seen := range []bool{true, false} {
		l := newLog(t, logPath(t))
		b := start(t, config(l.path+"*"), host{})
		l.write(lines(0, 0, 3))
		b.await(3)
		b.stop()
		b = start(t, config(l.path+"*"), host{})
		b.await(3)
		copied, err := os.ReadFile(l.path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(l.path+".1", copied, 0o600))
		if seen {
			time.Sleep(20 * time.Millisecond)
		}
		require.NoError(t, os.Truncate(l.path, 0))
		if seen {
			require.Eventually(t, func() bool { return b.counter("oddities", "truncated") == 1 }, patience, time.Millisecond)
		}
		l.write(lines(0, 3, 5))
		b.await(5)
		l.write(lines(0, 5, 6))
		b.await(6)
		b.stop()
		b.once(0, 6)
		assert.Equal(t, int64(1), b.counter("faults", "gap"))
		assert.Equal(t, int64(1), b.counter("faults"))
	}
}

// What was written between the last look and the cut is read of the copy, whether it
// is found before the cut is, or after.
func TestTheEndOfACopyIsRead(t *testing.T) {
	for _, late := range []bool{false, true} {
		l := newLog(t, logPath(t))
		cfg := config(l.path + "*")
		b := byHand(t, cfg)
		l.write(lines(0, 0, 3))
		b.rd.poll(time.Now())
		l.write(lines(0, 3, 6) + line(0, 6)[:50])
		copied, err := os.ReadFile(l.path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(l.path, 0))
		l.write(line(0, 6)[50:] + line(0, 7))
		if late {
			b.rd.poll(time.Now())
		}
		require.NoError(t, os.WriteFile(l.path+".1", copied, 0o600))
		b.rd.poll(time.Now())
		b.rd.poll(time.Now())
		assert.Equal(t, int64(7), b.counter("lines_read"))
		assert.Equal(t, map[int64]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 7: 1}, b.seqs(), "line 6 was cut in two")
		assert.Equal(t, int64(1), b.counter("oddities", "copy"))
		assert.Equal(t, int64(1), b.counter("faults", "cut"))
	}
}

func TestAFileThatShrinksIsBegunAnew(t *testing.T) {
	l := newLog(t, logPath(t))
	b := start(t, config(l.path), host{})
	l.write(lines(0, 0, 5))
	b.await(5)
	require.NoError(t, os.Truncate(l.path, int64(len(lines(0, 0, 2)))))
	b.await(7)
	b.stop()
	assert.Equal(t, int64(1), b.counter("oddities", "truncated"))
}

// While the collector was down, the log was copied, and has grown.
func TestARestartWithACopy(t *testing.T) {
	d := &disk{}
	l := newLog(t, logPath(t))
	b := start(t, withStorage(config(l.path+"*")), host{disk: d})
	l.write(lines(0, 0, 4))
	b.await(4)
	b.stop()
	l.write(lines(0, 4, 6))
	copied, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(l.path+".1", copied, 0o600))
	b = start(t, withStorage(config(l.path+"*")), host{disk: d})
	l.write(lines(0, 6, 8))
	b.await(4)
	b.stop()
	b.once(4, 8)
}

// While the collector was down, the file was written anew and begins as it did.
func TestARestartAfterAFileShrank(t *testing.T) {
	d := &disk{}
	l := newLog(t, logPath(t))
	b := start(t, withStorage(config(l.path)), host{disk: d})
	l.write(lines(0, 0, 4))
	b.await(4)
	b.stop()
	require.NoError(t, os.Truncate(l.path, int64(len(lines(0, 0, 2)))))
	b = start(t, withStorage(config(l.path)), host{disk: d})
	b.await(2)
	b.stop()
	b.once(0, 2)
	assert.Equal(t, int64(1), b.counter("oddities", "truncated"))
}

func TestAFileBegunAnewByANewProcess(t *testing.T) {
	l := newLog(t, logPath(t))
	b := start(t, config(l.path), host{})
	l.write(lines(0, 0, 3) + line(0, 3)[:80]) // killed in the middle of a line
	b.await(3)
	second := newLog(t, l.path) // cut, since it is opened for writing
	second.write(lines(1, 3, 9))
	b.await(9)
	b.stop()
	b.once(0, 9)
	assert.Equal(t, int64(1), b.counter("oddities", "truncated"))
	assert.Equal(t, int64(1), b.counter("faults", "cut"))
	assert.Equal(t, int64(1), b.lost("cut"))
}

func TestALineCutByACrash(t *testing.T) {
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 2)+line(0, 2)[:99]), 0o600))
	cfg := config(path)
	cfg.Mode = modeOnce
	b := start(t, cfg, host{})
	b.await(2)
	b.stop()
	assert.Equal(t, int64(1), b.counter("faults", "cut"))
	b.once(0, 2)
}

func TestFaultsAreToldOf(t *testing.T) {
	path := logPath(t)
	text := line(0, 0) + "garbage\n" + strings.Repeat("x", 5000) + "\n" + strings.Replace(line(0, 1), "v4.0", "v7.1", 1) + line(0, 2)
	require.NoError(t, os.WriteFile(path, []byte(text+strings.Repeat("garbage\n", 100)), 0o600))
	cfg := config(path)
	cfg.Mode, cfg.MaxLineBytes = modeOnce, 4096
	b := start(t, cfg, host{})
	b.await(2)
	b.stop()
	assert.Equal(t, int64(101), b.counter("faults", "not_json"))
	assert.Equal(t, int64(1), b.counter("faults", "too_long"))
	assert.Equal(t, int64(1), b.counter("faults", "unknown_version"))
	assert.Equal(t, int64(101), b.lost("not_json"))
	said := b.logs.FilterMessage(fmt.Sprintf("Faults of %q", path))
	require.Equal(t, 1, said.Len())
	fields := said.All()[0].ContextMap()
	assert.Equal(t, path, fields["file"])
	assert.Equal(t, int64(2), fields["line"])
	assert.Equal(t, int64(len(line(0, 0))), fields["offset"])
	assert.Equal(t, int64(103), fields["faults"])
	assert.Equal(t, "not_json 101, too_long 1, unknown_version 1", fields["by_reason"])
}

// The lines of one file do not push out those of another.
func TestTheFaultsOfNoFileAreHidden(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range toldEach + 20 {
		path := filepath.Join(dir, fmt.Sprintf("%03d.log", i))
		want = append(want, path)
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(fmt.Sprintf("garbage %d\n", i), 9)), 0o600))
	}
	cfg := config(dir)
	cfg.Mode = modeOnce
	b := start(t, cfg, host{})
	<-b.rd.finished
	var got []string
	for _, e := range b.logs.FilterLevelExact(zapcore.WarnLevel).All() {
		fields := e.ContextMap()
		if names, ok := fields["files"].([]any); ok {
			for _, name := range names {
				got = append(got, name.(string))
			}
			assert.Equal(t, "Faults of 20 files more than those above", e.Message)
			continue
		}
		got = append(got, fields["file"].(string))
	}
	assert.ElementsMatch(t, want, got)
}

// A file that goes on being faulty is told of again, and ever more rarely.
func TestFaultsThatGoOnAreToldOfAgain(t *testing.T) {
	b := build(t, config("x"), nil)
	b.rd.ctx = t.Context()
	f := &file{path: "n.log"}
	var told []int64
	for range 1000 {
		b.rd.fault(f, &inspector.Fault{Reason: inspector.NotJSON})
		b.rd.tellFaults()
	}
	b.rd.fault(f, &inspector.Fault{Reason: inspector.Cut})
	b.rd.tellFaults()
	for _, e := range b.logs.FilterMessage(`Faults of "n.log"`).All() {
		told = append(told, e.ContextMap()["faults"].(int64))
	}
	assert.Equal(t, []int64{1, 10, 100, 1000, 1001}, told)
}

// What is named as a log and cannot be one is told of and counted, once.
func TestWhatIsNoRegularFileIsToldOf(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "a-pipe.log"), 0o600))
	require.NoError(t, os.Symlink("/dev/null", filepath.Join(dir, "b-device.log")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "c-folder.log"), 0o700))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "d-dangling.log")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "e-other"), 0o700))
	b := build(t, config(dir), nil)
	b.rd.ctx = t.Context()
	for range 3 {
		b.rd.look(time.Now())
	}
	assert.Equal(t, int64(4), b.counter("oddities", "not_regular"))
	said := b.logs.FilterMessage("Not read, since no regular file: 4 paths")
	require.Equal(t, 1, said.Len())
	assert.Len(t, said.All()[0].ContextMap()["first"], 4)
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "f-late.log"), 0o600))
	b.rd.look(time.Now())
	assert.Equal(t, int64(5), b.counter("oddities", "not_regular"))
}

func TestIrregularPathsBeyondMemoryAreCounted(t *testing.T) {
	b := build(t, config("x"), nil)
	b.rd.ctx = t.Context()
	l := &listing{}
	for i := range maxIrregular + 3 {
		l.add(found{path: fmt.Sprint(i)})
	}
	for range 2 {
		b.rd.tellPassedOver(l)
	}
	assert.Equal(t, int64(maxIrregular+3), b.counter("oddities", "not_regular"))
	assert.Len(t, b.rd.passed.paths, maxIrregular)
}

func withStorage(cfg *Config) *Config {
	cfg.StorageID = &storageID
	return cfg
}

func TestARestartReadsOn(t *testing.T) {
	d := &disk{}
	l := newLog(t, logPath(t))
	cfg := func() *Config {
		c := withStorage(config(l.path))
		c.Anchor = AnchorConfig{Function: "all_reduce", Every: 2}
		c.StepWait = time.Second
		return c
	}
	var all []model.Op
	seq := int64(0)
	for round := range 5 {
		b := start(t, cfg(), host{disk: d})
		l.write(lines(0, seq, seq+7))
		seq += 7
		half := line(0, seq)[:40+round]
		l.write(half)
		whole := int64(7 + min(round, 1)) // and that which the round before began
		b.await(whole)
		b.stop()
		assert.Equal(t, whole, b.counter("lines_read"))
		all = append(all, b.ops()...)
		l.write(line(0, seq)[40+round:])
		seq++
	}
	c := cfg()
	c.Mode = modeOnce
	b := start(t, c, host{disk: d})
	<-b.rd.finished // stopped before, it leaves the open steps to the next run
	b.stop()
	all = append(all, b.ops()...)
	steps, colls := map[int64]int{}, map[int64]int{}
	for _, op := range all {
		if op.Kind == model.KindStep {
			steps[op.Step.V]++
		} else {
			colls[op.Collective.Seq.V]++
		}
	}
	assert.Len(t, colls, 40)
	assert.Len(t, steps, 20)
	for n := range int64(20) {
		assert.Equal(t, []int{1, 1, 1}, []int{steps[n], colls[2*n], colls[2*n+1]}, "step %d", n)
	}
}

func TestARestartAfterARename(t *testing.T) {
	d := &disk{}
	l := newLog(t, logPath(t))
	b := start(t, withStorage(config(l.path+"*")), host{disk: d})
	l.write(lines(0, 0, 4))
	b.await(4)
	b.stop()
	require.NoError(t, os.Rename(l.path, l.path+".1"))
	l.write(lines(0, 4, 6))
	newLog(t, l.path).write(lines(0, 6, 9))
	b = start(t, withStorage(config(l.path+"*")), host{disk: d})
	b.await(5)
	b.stop()
	b.once(4, 9)
}

func TestAStorageThatFailsIsToldOf(t *testing.T) {
	d := &disk{fail: true}
	l := newLog(t, logPath(t))
	l.write(lines(0, 0, 4))
	said := &statuses{}
	b := start(t, withStorage(config(l.path)), host{disk: d, statuses: said})
	b.await(4)
	b.stop()
	assert.Contains(t, strings.Join(said.all, "\n"), "write storage: the disk is full")
	assert.Positive(t, b.counter("storage_errors"))
	b.once(0, 4)
}

func TestAStorageMustBeThere(t *testing.T) {
	b := build(t, withStorage(config("x")), nil)
	require.ErrorContains(t, b.faces[0].Start(t.Context(), host{}), `find storage: got no extension "file_storage"`)
}

func TestStartAtTheEnd(t *testing.T) {
	l := newLog(t, logPath(t))
	l.write(lines(0, 0, 3) + line(0, 3)[:60])
	cfg := config(filepath.Dir(l.path))
	cfg.StartAt = startEnd
	b := start(t, cfg, host{})
	require.Eventually(t, func() bool { return b.logs.FilterMessage("File found").Len() == 1 }, patience, time.Millisecond)
	l.write(line(0, 3)[60:] + line(0, 4))
	newLog(t, filepath.Join(filepath.Dir(l.path), "later.log")).write(lines(1, 5, 6))
	b.await(2)
	b.stop()
	b.once(4, 6)
	assert.Zero(t, b.counter("faults"))
}

func TestStartAtTheEndOfALine(t *testing.T) {
	l := newLog(t, logPath(t))
	l.write(lines(0, 0, 3))
	cfg := config(l.path)
	cfg.StartAt = startEnd
	b := start(t, cfg, host{})
	require.Eventually(t, func() bool { return b.logs.FilterMessage("File found").Len() == 1 }, patience, time.Millisecond)
	l.write(line(0, 3))
	b.await(1)
	b.stop()
	b.once(3, 4)
}

func TestFilesBeyondTheLimit(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".log"), []byte(lines(i, int64(i), int64(i)+1)), 0o600))
	}
	cfg := config(dir)
	cfg.Mode, cfg.MaxFiles = modeOnce, 2
	b := start(t, cfg, host{})
	b.await(2)
	b.stop()
	assert.Equal(t, int64(1), b.counter("files_ignored"))
	b.once(0, 2)
}

func TestRefusedForNowAndForGood(t *testing.T) {
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	for name, tc := range map[string]struct {
		err                       error
		retried, dropped, emitted int64
	}{
		"for now":  {io.ErrClosedPipe, 1, 0, 4},
		"for good": {consumererror.NewPermanent(io.ErrClosedPipe), 0, 4, 0},
	} {
		left := 1
		refuse, err := newRefuser(func() error {
			if left--; left >= 0 {
				return tc.err
			}
			return nil
		})
		require.NoError(t, err)
		cfg := config(path)
		cfg.Mode = modeOnce
		b := build(t, cfg, refuse)
		b.begin(host{})
		b.await(4)
		<-b.rd.finished
		b.stop()
		assert.Equal(t, []int64{tc.retried, tc.dropped, tc.emitted},
			[]int64{b.counter("delivery_retries"), b.counter("operations_dropped"), b.counter("operations_emitted")}, name)
	}
}

// Told to stop while it is refused, what was not taken is read again by the next.
func TestRefusedAtTheEnd(t *testing.T) {
	for name, refusal := range map[string]error{
		"by all":                       io.ErrClosedPipe,
		"by one branch, and one never": errors.Join(io.ErrClosedPipe, consumererror.NewPermanent(io.ErrClosedPipe)),
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{}
			path := logPath(t)
			require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
			b := build(t, withStorage(config(path)), consumertest.NewErr(refusal))
			b.begin(host{disk: d})
			b.await(4)
			b.stop()
			assert.Zero(t, b.counter("operations_dropped"))
			b = start(t, withStorage(config(path)), host{disk: d})
			b.await(4)
			b.stop()
			b.once(0, 4)
			assert.Equal(t, int64(4), b.counted())
		})
	}
}

func TestAFileThatIsWrittenNoMore(t *testing.T) {
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	cfg := config(path)
	cfg.WorldWait, cfg.StepWait, cfg.CloseAfter = time.Hour, time.Hour, 20*time.Millisecond
	cfg.Anchor = AnchorConfig{Function: "all_reduce", Every: 2}
	b := start(t, cfg, host{})
	require.Eventually(t, func() bool { return len(b.ops()) == 6 }, patience, time.Millisecond)
}

func TestNothingToRead(t *testing.T) {
	cfg := config(filepath.Join(t.TempDir(), "*.log"))
	cfg.Mode = modeOnce
	b := start(t, cfg, host{})
	<-b.rd.finished
	assert.Equal(t, 1, b.logs.FilterMessage("No log could be read").Len())
}

func TestFoldersOfManyNodes(t *testing.T) {
	root := t.TempDir()
	for i, node := range []string{"a", "b"} {
		dir := filepath.Join(root, node)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "n.log"), []byte(lines(i, int64(i), int64(i)+1)), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "n.prom"), []byte("garbage\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.log"), []byte("garbage\n"), 0o600))
	}
	cfg := config(filepath.Join(root, "*"))
	cfg.Mode, cfg.Exclude = modeOnce, []string{"x.*"}
	b := start(t, cfg, host{})
	b.await(2)
	b.stop()
	b.once(0, 2)
	assert.Zero(t, b.counter("faults"))
}
