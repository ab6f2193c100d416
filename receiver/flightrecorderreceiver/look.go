// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Reasons for which nothing is taken of a dump, beside those of incidents.
const (
	failedDamaged    = "damaged"
	failedEmpty      = "empty"
	failedUnreadable = "unreadable"
	failedTooLarge   = "too_large"
	failedNotRegular = "not_regular"
	failedNoDump     = "not_a_dump"
	failedNoRank     = "no_rank"
)

// Reasons for which files are left alone.
const (
	ignoredMaxFiles = "max_files"
	ignoredOld      = "old"
	ignoredOutside  = "rank_out_of_range"
)

// look reads the files that are due.
func (h *dumpCollector) look(now time.Time) {
	l := h.list()
	if l.Ignored > 0 {
		h.telemetry.ReceiverFlightRecorderFilesIgnored.Add(h.out.ctx, int64(l.Ignored), reason(ignoredMaxFiles))
	}
	if l.Outside > 0 {
		h.telemetry.ReceiverFlightRecorderFilesIgnored.Add(h.out.ctx, int64(l.Outside), reason(ignoredOutside))
	}
	if l.Cut > 0 {
		h.telemetry.ReceiverFlightRecorderFoldersCut.Add(h.out.ctx, int64(l.Cut))
	}
	for _, dir := range h.jobs.Learn(l.Files) {
		h.telemetry.ReceiverFlightRecorderProblems.Add(h.out.ctx, 1)
		h.log.Warn("Folder holds dumps of several jobs: what is in front of the rank in their names tells them apart", zap.String("folder", dir))
	}
	due, old := h.tracker.Look(now, l.Files)
	if old > 0 {
		h.telemetry.ReceiverFlightRecorderFilesIgnored.Add(h.out.ctx, int64(old), reason(ignoredOld))
	}
	h.index(l.Files)
	for i := range due {
		if h.out.ctx.Err() != nil {
			return
		}
		if err := h.read(&due[i]); err != nil {
			l.Problems = append(l.Problems, err.Error())
		}
	}
	h.note(l.Problems)
}

// list looks for dumps. Of a pattern whose file system does not answer counts what it last told.
func (h *dumpCollector) list() frwatch.Listing {
	all := make([]frwatch.Listing, len(h.finder.Include))
	var wait sync.WaitGroup
	for i, pattern := range h.finder.Include {
		wait.Go(func() { // so that several that are silent are waited for once
			l, err := frwatch.Do(h.out.ctx, &h.disk, pattern, frwatch.ListLimit, func() frwatch.Listing { return h.of(pattern) })
			if err != nil {
				l = frwatch.Listing{Files: h.listed[i].Files, Problems: []string{err.Error()}, Unreadable: []error{err}}
			}
			all[i] = l
		})
	}
	wait.Wait()
	if h.out.ctx.Err() == nil {
		for i, pattern := range h.cfg.Include {
			h.health.Set(pattern, errors.Join(all[i].Unreadable...))
		}
	}
	h.listed = all
	return h.finder.Join(all)
}

// of lists the dumps of one pattern, and why folders of it cannot be read.
func (h *dumpCollector) of(pattern string) frwatch.Listing {
	l := h.finder.Of(pattern)
	missing := health.Readable(pattern)
	if errors.Is(missing, fs.ErrNotExist) {
		l.Problems = append(l.Problems, missing.Error())
	}
	var all health.List
	all.Add(missing)
	for _, err := range l.Unreadable {
		if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
			err = health.Explain(bad.Path, bad)
		}
		all.Add(err)
	}
	l.Unreadable = nil
	if err := all.Err(); err != nil {
		l.Unreadable = []error{err}
	}
	return l
}

// note tells of problems that the last look did not have.
func (h *dumpCollector) note(problems []string) {
	is := make(map[string]bool, len(problems))
	for _, p := range problems {
		is[p] = true
		if !h.noted[p] {
			h.telemetry.ReceiverFlightRecorderProblems.Add(h.out.ctx, 1)
			h.log.Warn("Dumps can not be looked for", zap.String("problem", p))
		}
	}
	h.noted = is
}

// index remembers the newest file of each rank.
func (h *dumpCollector) index(files []frwatch.File) {
	h.newest = make(map[rankKey]frwatch.File, len(files))
	for i := range files {
		k := rankKey{h.jobs.Of(&files[i]), files[i].Rank}
		if of, ok := h.newest[k]; !ok || files[i].Time.After(of.Time) {
			h.newest[k] = files[i]
		}
	}
}

// known says what is known of a rank of which nothing was read.
func (h *dumpCollector) known(job string, rank int64) (written time.Time, writing, ok bool) {
	f, ok := h.newest[rankKey{job, rank}]
	return f.Time, ok && h.tracker.Unsettled(f.Path), ok
}

// read reads one file, and gives it to its incident. A file that is not whole is looked at
// again, unless nobody writes it any more. One whose file system does not answer, too: that is
// the error.
func (h *dumpCollector) read(due *frwatch.Due) error {
	f := &due.File
	if !f.Regular {
		if due.Settled {
			h.tracker.Done(f)
			h.fail(failedNotRegular, f.Path, f.Rank, errors.New("open dump: got a link, a pipe or the like; want a regular file"))
		}
		return nil
	}
	data, err := h.content(f.Path)
	if errors.As(err, new(*silentError)) {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) { // else the next look tells
		h.got(due, data, err)
	}
	return nil
}

// got takes what a file holds, or why it could not be read.
func (h *dumpCollector) got(due *frwatch.Due, data []byte, err error) {
	f := &due.File
	var dump *flightrecorder.Dump
	if err == nil {
		dump, err = flightrecorder.Decode(data, h.options)
	}
	if !due.Settled && (err != nil || dump.Partial != "") {
		return
	}
	h.tracker.Done(f)
	job := h.jobs.Of(f)
	h.keep(job, f.Path, data)
	if err != nil {
		h.unreadable(job, f, data, err)
		return
	}
	h.take(dump, &source{job: job, name: f.Path, rank: f.Rank, time: f.Time, inFile: true, asked: h.askedFor(f.Time)})
}

// silentError is that a file system does not answer.
type silentError struct{ error }

func (h *dumpCollector) content(path string) ([]byte, error) {
	type content struct {
		data []byte
		err  error
	}
	c, err := frwatch.Do(h.out.ctx, &h.disk, filepath.Dir(path), frwatch.ReadLimit, func() content {
		data, err := h.readFile(path, h.cfg.MaxFileBytes)
		return content{data, err}
	})
	if err != nil {
		return nil, &silentError{err}
	}
	return c.data, c.err
}

// unreadable tells of a file of which nothing can be read. One that is no dump at all says
// nothing of the rank in its name.
func (h *dumpCollector) unreadable(job string, f *frwatch.File, data []byte, err error) {
	why := failedDamaged
	switch {
	case errors.Is(err, frwatch.ErrTooLarge):
		why = failedTooLarge
	case errors.Is(err, frwatch.ErrNotRegular):
		why = failedNotRegular
	case errors.Is(err, flightrecorder.ErrEmpty):
		why = failedEmpty
	case data == nil:
		why = failedUnreadable
	case !frwatch.MayBeDump(data):
		why = failedNoDump
	}
	h.fail(why, f.Path, f.Rank, err)
	if why != failedNoDump && why != failedNotRegular {
		h.incidents.Add(time.Now(), frwatch.Dump{Job: job, Source: f.Path, Rank: f.Rank, Time: f.Time, Fault: err.Error()})
	}
}

func (h *dumpCollector) keep(job, path string, data []byte) {
	if h.keeper == nil || len(data) == 0 {
		return
	}
	type kept struct {
		removed, overwritten int64
		err                  error
	}
	k, err := frwatch.Do(h.out.ctx, &h.disk, h.keeper.Directory, frwatch.ReadLimit, func() (k kept) {
		removed, overwritten := h.keeper.Removed, h.keeper.Overwritten
		k.err = h.keeper.Keep(time.Now(), job, path, data)
		k.removed, k.overwritten = h.keeper.Removed-removed, h.keeper.Overwritten-overwritten
		return k
	})
	if err = errors.Join(err, k.err); err != nil {
		h.telemetry.ReceiverFlightRecorderCopiesFailed.Add(h.out.ctx, 1)
		h.log.Error("No copy of a dump could be kept", zap.String("file", path), zap.Error(err))
	} else {
		h.telemetry.ReceiverFlightRecorderCopiesWritten.Add(h.out.ctx, 1)
	}
	if k.overwritten > 0 {
		h.telemetry.ReceiverFlightRecorderCopiesOverwritten.Add(h.out.ctx, k.overwritten)
	}
	if k.removed > 0 {
		h.telemetry.ReceiverFlightRecorderCopiesRemoved.Add(h.out.ctx, k.removed)
	}
}

// source is where a dump came from.
type source struct {
	job, name string
	rank      int64
	time      time.Time
	inFile    bool
	// asked is when it was asked for, so that it does not say that anything is wrong; zero where
	// it was not.
	asked time.Time
	host  string // where the process's main thread is
}

// take gives a dump to its incident, and what is over in it to the pipelines.
func (h *dumpCollector) take(dump *flightrecorder.Dump, s *source) *model.RankState {
	tel, ctx := h.telemetry, h.out.ctx
	tel.ReceiverFlightRecorderDumpsRead.Add(ctx, 1)
	tel.ReceiverFlightRecorderEntriesRead.Add(ctx, dump.Stats.Entries)
	if n := dump.Stats.BadEntries + dump.Stats.EntriesDropped + dump.Stats.EntriesCut; n > 0 {
		tel.ReceiverFlightRecorderEntriesSkipped.Add(ctx, n)
	}
	if dump.Partial != "" {
		tel.ReceiverFlightRecorderDumpsPartial.Add(ctx, 1)
	}
	h.problems(dump, s.name)
	state := h.state(dump, s)
	ops := h.recorded.add(time.Now(), &state, dump)
	h.out.ops(&state.Rank, ops)
	if s.inFile {
		h.incidents.Add(time.Now(), frwatch.Dump{Job: s.job, Source: s.name, Rank: s.rank, Time: s.time, State: &state})
	}
	return &state
}

// maxLoggedProblems bounds the log lines of one dump; the rest is counted.
const maxLoggedProblems = 10

func (h *dumpCollector) problems(dump *flightrecorder.Dump, name string) {
	h.telemetry.ReceiverFlightRecorderProblems.Add(h.out.ctx, int64(len(dump.Problems)))
	for i, p := range dump.Problems {
		if i == maxLoggedProblems {
			h.log.Warn("Further problems of a dump", zap.String("source", name), zap.Int("count", len(dump.Problems)-i))
			return
		}
		h.log.Warn("Problem of a dump", zap.String("source", name), zap.String("problem", p))
	}
}
