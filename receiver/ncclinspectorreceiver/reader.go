// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/regular"
	"github.com/lockstep-otel/lockstep/internal/replay"
	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver/internal/metadata"
)

// reader reads the files of one configuration. One goroutine uses it, but for the
// consumers' fields, which are set before.
type reader struct {
	cfg       *Config
	set       receiver.Settings
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	traces    *deliver.Sender[ptrace.Traces] // nil where no pipeline takes them
	metrics   *deliver.Sender[pmetric.Metrics]
	host      component.Host
	store     *store

	//nolint:containedctx // a poll's calls have no context of their own
	ctx      context.Context
	cancel   context.CancelFunc // nil before begin
	finished chan struct{}
	replayed func() // tells a replay that this input is over

	files   []*file
	copies  map[string]os.FileInfo // paths of copies of files that are read
	first   bool                   // this is the first look
	trouble string
	passed  passedOver
	health  health.Status
	faulty  []*file // of whose faults this poll is to tell
	began   time.Time
	buf     []byte
	sink    sink
	series  *measures
	// interrupted: told to stop while something was being handed on, which the next
	// run does again; nothing that depends on it is kept.
	interrupted bool
	stopping    bool // end was called
	last        bool // what is refused now is not offered again
}

func newReader(set receiver.Settings, cfg *Config) (*reader, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{
		Transport: "file", Format: "nccl_inspector", Retry: cfg.RetryOnFailure, Retried: telemetry.ReceiverNcclInspectorDeliveryRetries.Add,
	})
	if err != nil {
		return nil, err
	}
	rd := &reader{
		cfg: cfg, set: set, log: set.Logger, telemetry: telemetry, out: out, finished: make(chan struct{}),
		replayed: func() {}, copies: map[string]os.FileInfo{}, first: true, buf: make([]byte, chunkBytes),
		series: newMeasures(cfg.MaxSeries),
	}
	rd.sink.rd = rd
	if cfg.Mode == modeOnce {
		rd.replayed = replay.Register(set.ID.String())
	}
	return rd, nil
}

// begin starts to read; calls after the first do nothing.
func (rd *reader) begin(ctx context.Context, host component.Host) error {
	if rd.cancel != nil {
		return nil
	}
	s, err := openStore(ctx, host, rd.cfg.StorageID, rd.set.ID)
	if err != nil {
		return err
	}
	rd.store, rd.host, rd.began = s, host, time.Now()
	rd.health.Start(host)
	rd.health.LogTo(rd.log)
	// The collector's context ends with the call, so reading has one of its own.
	rd.ctx, rd.cancel = context.WithCancel(context.Background())
	rd.load()
	go rd.run()
	return nil
}

// end stops reading and hands on what can be; calls after the first do nothing.
func (rd *reader) end(ctx context.Context) error {
	if rd.stopping {
		return nil
	}
	rd.stopping = true
	defer rd.telemetry.Shutdown()
	defer rd.replayed()
	if rd.cancel == nil {
		return nil
	}
	last, stopped := rd.out.Stop(ctx)
	rd.cancel()
	select {
	case <-rd.finished:
	case <-ctx.Done():
		return errors.Join(stopped(), fmt.Errorf("stop reading logs: %w", ctx.Err()))
	}
	rd.ctx, rd.last = last, true
	rd.finish()
	return errors.Join(stopped(), rd.store.close(ctx))
}

func (rd *reader) run() {
	defer close(rd.finished)
	if rd.cfg.Mode == modeOnce {
		rd.readOnce()
		return
	}
	ticker := time.NewTicker(rd.cfg.PollInterval)
	defer ticker.Stop()
	for {
		if rd.poll(time.Now()) {
			continue
		}
		select {
		case <-rd.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (rd *reader) readOnce() {
	defer rd.replayed()
	for more := true; more; {
		more = rd.poll(time.Now())
	}
	if rd.told() {
		return
	}
	if len(rd.files) == 0 {
		err := fmt.Errorf("find logs: got no file for include %q; want at least one", rd.cfg.Include)
		rd.log.Error("No log could be read", zap.Error(err))
		componentstatus.ReportStatus(rd.host, componentstatus.NewPermanentErrorEvent(err))
	}
	for _, f := range rd.files {
		rd.close(f)
	}
	rd.conclude()
}

// told reports whether the reader was told to stop.
func (rd *reader) told() bool { return rd.ctx.Err() != nil }

// finish is the last that a reader does.
func (rd *reader) finish() {
	for _, f := range rd.files {
		if !rd.store.lasting() && !rd.interrupted {
			rd.close(f)
		}
	}
	rd.conclude()
	for _, f := range rd.files {
		_ = f.f.Close() // it was only read
	}
	rd.files = nil
}

// poll reads what has come. It reports whether there is more.
func (rd *reader) poll(now time.Time) (more bool) {
	rd.look(now)
	for _, f := range slices.Clone(rd.files) {
		if rd.told() {
			return false
		}
		more = rd.read(f, now) || more
	}
	if rd.told() {
		return false // finish hands on what there is
	}
	rd.conclude()
	return more
}

// conclude hands on what a poll gathered, and keeps how far it came. What is kept
// goes last: what was not handed on is read again by the next run.
func (rd *reader) conclude() {
	rd.tellFaults()
	rd.sink.flush()
	if rd.told() && !rd.last {
		return // finish does it
	}
	if rd.interrupted || !rd.sendMetrics() {
		return
	}
	rd.telemetry.ReceiverNcclInspectorFiles.Record(rd.ctx, int64(len(rd.files)))
	rd.keep()
}

// look finds files that are new, renamed, or gone.
func (rd *reader) look(now time.Time) {
	l := rd.cfg.list()
	rd.health.Set("include", l.unreadable.Err())
	rd.tell(&l)
	rd.tellPassedOver(&l)
	was := rd.files
	for _, f := range was {
		f.gone = true
	}
	listed := map[string]bool{}
	var fresh []found
	for _, at := range l.files {
		listed[at.path] = true
		i := slices.IndexFunc(was, func(f *file) bool { return f.path == at.path && os.SameFile(f.info, at.info) })
		if i < 0 {
			i = slices.IndexFunc(was, func(f *file) bool { return os.SameFile(f.info, at.info) })
		}
		if i < 0 {
			fresh = append(fresh, at)
			continue
		}
		was[i].path, was[i].gone = at.path, false
	}
	for _, at := range fresh {
		if info := rd.copies[at.path]; info == nil || !os.SameFile(info, at.info) {
			rd.open(at, now)
		}
	}
	for path := range rd.copies { // not before: a renamed copy is known by its old path
		if !listed[path] {
			delete(rd.copies, path)
		}
	}
	rd.first = false
	rd.retire(now)
	rd.abandon(now)
}

func (rd *reader) tell(l *listing) {
	rd.telemetry.ReceiverNcclInspectorFilesIgnored.Add(rd.ctx, int64(l.ignored))
	said := ""
	switch {
	case l.ignored > 0:
		said = fmt.Sprintf("list files: got %d more than max_files, %d; want at most that, those last by name are not read", l.ignored, rd.cfg.MaxFiles)
	case len(l.nothing) > 0:
		said = fmt.Sprintf("list files: got none for %q; want at least one each", l.nothing)
	}
	if said != "" && said != rd.trouble {
		rd.log.Warn("Files to be read", zap.String("problem", said))
	}
	rd.trouble = said
}

// retire lets go of files that no path leads to and that do not grow any more: who
// renames a log does not keep its writer from writing on.
func (rd *reader) retire(now time.Time) {
	over := len(rd.files) - rd.cfg.MaxFiles
	rd.files = slices.DeleteFunc(rd.files, func(f *file) bool {
		idle := now.Sub(f.grew) >= rd.cfg.CloseAfter
		if !f.gone || (!idle && over <= 0) {
			return false
		}
		over--
		rd.read(f, now)
		rd.close(f)
		_ = f.f.Close() // it was only read
		rd.store.forget(f.id)
		return true
	})
}

// open begins to read a file.
func (rd *reader) open(at found, now time.Time) {
	if len(rd.files) >= 2*rd.cfg.MaxFiles {
		return // half of them are renamed files that still grow
	}
	opened, err := regular.Open(at.path)
	if err != nil {
		rd.log.Warn("File not read", zap.String("file", at.path), zap.Error(err))
		rd.odd("unreadable", 1)
		return
	}
	info, err := opened.Stat()
	var head []byte
	if err == nil {
		head, err = readHead(opened)
	}
	if err != nil {
		rd.log.Warn("File not read", zap.String("file", at.path), zap.Error(err))
		rd.odd("unreadable", 1)
		_ = opened.Close()
		return
	}
	if rd.otherPath(at.path, info) {
		_ = opened.Close()
		return
	}
	f := &file{path: at.path, f: opened, info: info, grew: now, head: head}
	if p, id, ok := rd.store.take(at.path, head); ok {
		f.id = id
		f.resume(&p, rd.cfg.MaxLineBytes)
		f.process = inspector.NewProcess(rd.cfg.engine(at.path), p.Proc, &rd.sink)
		rd.files = append(rd.files, f)
		return
	}
	if rd.undecided(head) {
		_ = opened.Close()
		return
	}
	if rd.isCopy(f) {
		_ = opened.Close()
		rd.copies[at.path] = info
		rd.odd("copy", 1)
		rd.log.Info("File is a copy of one that is read", zap.String("file", at.path))
		return
	}
	f.id, f.changed = rd.store.next(), true
	start := inspector.SplitState{}
	if rd.first && rd.cfg.StartAt == startEnd && info.Size() > 0 {
		// The byte before decides whether a line begins at the end.
		start = inspector.SplitState{Place: inspector.Place{Offset: info.Size() - 1}, Skipping: true}
	}
	f.split = inspector.NewSplitter(rd.cfg.MaxLineBytes, start)
	f.process = inspector.NewProcess(rd.cfg.engine(at.path), inspector.State{}, &rd.sink)
	rd.files = append(rd.files, f)
	rd.log.Debug("File found", zap.String("file", at.path))
}

// otherPath reports whether a path leads to a file that was found by another in the
// same look: links make two of one. The number of a file is given again once it is
// gone, so that a copy, which grows no more, is known by its size and time, too.
func (rd *reader) otherPath(path string, info os.FileInfo) bool {
	if slices.ContainsFunc(rd.files, func(f *file) bool { return os.SameFile(f.info, info) }) {
		return true
	}
	for _, c := range rd.copies {
		if os.SameFile(c, info) && c.Size() == info.Size() && c.ModTime().Equal(info.ModTime()) {
			rd.copies[path] = info
			return true
		}
	}
	return false
}

// read reads what has come of a file, up to its turn. It reports whether there is
// more.
func (rd *reader) read(f *file, now time.Time) (more bool) {
	info, err := f.f.Stat()
	if err != nil {
		return false
	}
	head, err := readHead(f.f)
	if err != nil {
		rd.odd("unreadable", 1)
		return false
	}
	if f.replaced(info.Size(), head) {
		rd.truncated(f, head)
	}
	f.head = head
	if f.split.Next() < info.Size() {
		f.grew, f.changed, f.closed = now, true, false
		if more, err = rd.feed(f, f.f); err != nil {
			rd.log.Warn("File not read on", zap.String("file", f.path), zap.Error(err))
			rd.odd("unreadable", 1)
		}
	}
	if more {
		return true
	}
	f.process.Settle()
	idle := now.Sub(f.grew)
	if idle >= rd.cfg.WorldWait && f.process.World == "" && len(f.process.Held) > 0 {
		f.process.Decide()
		f.changed = true
	}
	if idle >= rd.cfg.CloseAfter {
		rd.close(f)
	}
	return false
}

// feed reads on to the end, or for one turn.
func (rd *reader) feed(f *file, from io.ReaderAt) (more bool, err error) {
	for done := 0; done < turnBytes; {
		n, err := from.ReadAt(rd.buf, f.split.Next())
		f.split.Feed(rd.buf[:n], func(l inspector.Line) { rd.line(f, &l) })
		done += n
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read file: %w", err)
		}
		if rd.told() {
			return false, nil
		}
	}
	return true, nil
}

func (rd *reader) line(f *file, l *inspector.Line) {
	rec, faults := f.parser.Parse(l)
	for _, x := range faults {
		rd.fault(f, x)
	}
	if rec == nil {
		return
	}
	rd.telemetry.ReceiverNcclInspectorLinesRead.Add(rd.ctx, 1)
	f.process.Add(rec)
}

// cut gives up a line that will not be ended.
func (rd *reader) cut(f *file) { rd.cutAt(f, f.split.State().Place, f.split.Pending()) }

func (rd *reader) cutAt(f *file, at inspector.Place, n int64) {
	if n > 0 {
		rd.fault(f, &inspector.Fault{Reason: inspector.Cut, Place: at, What: fmt.Sprintf("find end of line: got %d bytes without one", n)})
	}
}

// close hands on what is held of a file that is not written any more.
func (rd *reader) close(f *file) {
	if f.closed {
		return
	}
	rd.giveUp(f)
	rd.cut(f)
	f.process.End()
	f.closed, f.changed = true, true
}

// abandon hands on what was kept of files that are not there any more.
func (rd *reader) abandon(now time.Time) {
	if rd.store == nil || len(rd.store.old) == 0 || now.Sub(rd.began) < rd.cfg.CloseAfter {
		return
	}
	for id, p := range rd.store.old {
		inspector.NewProcess(rd.cfg.engine(rd.store.known[id].Path), p.Proc, &rd.sink).End()
		rd.store.forget(id)
	}
	clear(rd.store.old)
}

func (rd *reader) odd(why string, n int64) {
	rd.telemetry.ReceiverNcclInspectorOddities.Add(rd.ctx, n, reason(why))
}

func (*reader) now() time.Time { return time.Now() }

func reason(r string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", r)))
}
