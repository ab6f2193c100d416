// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/render"
	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ranklog"
)

// logReader reads logs of ranks.
type logReader struct {
	job   string         // all logs are of it; empty: those of several jobs are parted
	world int64          // 0: what the logs say
	rank  *regexp.Regexp // nil: by the usual names
}

func (logReader) format() sniff.Format { return sniff.RankLog }

func (r logReader) read(ctx context.Context, files []input, to *analysis) {
	set := ranklog.NewSet()
	last, left := lastAttempts(files)
	to.skipped += len(files) - len(last)
	sorted, names := ranklog.InOrder(last, func(f input) string { return f.path })
	for _, f := range sorted {
		if ctx.Err() != nil {
			return
		}
		switch err := r.readFile(r.fileOf(f.path, names), set, to.progress.reader); {
		case errors.Is(err, ranklog.ErrBlank):
			to.problems.add(f.path, -1, fmt.Errorf("read log: %w", ranklog.ErrBlank))
			continue
		case err != nil:
			to.problems.add(f.path, -1, fmt.Errorf("read log: %w; the lines in front of that are used", bare(err)))
			continue
		}
		to.files++
		to.bytes += f.size
	}
	defer r.noteLeftOut(ctx, left, to)
	switch {
	case r.job != "":
		r.judge(r.job, set, to)
	case set.Several():
		r.readJobs(ctx, set, to)
	default:
		r.judge(jobOfLogs(last, to.given), set, to)
	}
}

// readJobs reads the logs of each of several jobs again.
func (r logReader) readJobs(ctx context.Context, all *ranklog.Set, to *analysis) {
	jobs, strays, err := all.Jobs()
	if err != nil {
		to.problems.add(all.First(), -1, err)
		return
	}
	for _, path := range strays {
		to.problems.add(path, -1, errors.New("read log: got logs of several jobs, and none whose name or folder this one shares; want it beside the logs of its job"))
	}
	for _, job := range jobs {
		set := ranklog.NewSet()
		for _, f := range job.Files {
			if ctx.Err() != nil {
				return
			}
			_ = r.readFile(f, set, func(in io.Reader) io.Reader { return in }) // its errors are known
		}
		r.judge(job.Name, set, to)
	}
}

func (r logReader) judge(job string, set *ranklog.Set, to *analysis) {
	result := set.Judge(ranklog.Options{Job: job, WorldSize: r.world, Engine: desync.NewDefaultConfig()})
	to.logs = append(to.logs, result)
	for _, path := range result.Unknown {
		to.problems.add(path, -1, errors.New("find rank of log: got lines of the watchdog without a rank; want [rankN]: in the lines, rankN in the file's name, or --rank-pattern"))
	}
}

// absolute is a path from the root, or the path itself where that cannot be told.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (r logReader) readFile(f ranklog.File, set *ranklog.Set, wrap func(io.Reader) io.Reader) error {
	in, c, err := sniff.Open(f.Path, wrap)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return set.Read(f, in)
}

// fileOf finds the rank in a file's name.
func (r logReader) fileOf(path string, names ranklog.Names) ranklog.File {
	f := names.File(path)
	if r.rank == nil {
		return f
	}
	f.Rank, f.Certain = -1, false
	if rank, _, ok := (dumpReader{rank: r.rank}).rankOf(path); ok {
		f.Rank, f.Certain = rank, true
	}
	return f
}

// deadByLogs are ranks that ended, by their logs. Of logs of several jobs none is taken, since dumps do
// not say of which of them they are. Beside dumps an error that may be a result of another's end is no
// proof.
func (a *analysis) deadByLogs() (out []model.Absence) {
	if len(a.logs) != 1 {
		return nil
	}
	for rank, e := range a.logs[0].Errors {
		if e.Ended && !e.Unsure {
			out = append(out, model.Absence{Rank: rank, Reason: model.AbsentDead, Detail: e.Where + ": " + e.Text})
		}
	}
	slices.SortFunc(out, func(x, y model.Absence) int { return int(x.Rank - y.Rank) })
	return out
}

// concludeLogs adds to what dumps tell the last errors of the ranks. Where no dump tells anything,
// the logs decide.
func (a *analysis) concludeLogs() {
	if len(a.logs) == 0 {
		return
	}
	if a.dumps == nil {
		a.dumps = &dumpset.Result{}
	}
	told := slices.ContainsFunc(a.dumps.Hangs, func(h dumpset.Hang) bool { return h.Verdict != desync.NoData })
	if !told {
		var ofLogs []dumpset.Hang
		for _, l := range a.logs {
			ofLogs = append(ofLogs, hangOf(l))
		}
		a.dumps.Hangs = append(ofLogs, a.dumps.Hangs...)
		return
	}
	if len(a.logs) == 1 {
		for i := range a.dumps.Hangs {
			for k := range a.dumps.Hangs[i].Roots {
				ranklog.Note(&a.dumps.Hangs[i].Roots[k].Finding, a.logs[0].Errors)
			}
		}
	}
	found := dumpsVerdict(a.dumps) == render.Found
	for _, l := range a.logs {
		switch {
		case stuckByLogs(l) != "":
			a.timedOut(l, found)
		default:
			a.dumps.Hangs[0].Remarks = append(a.dumps.Hangs[0].Remarks, silentLogs(l))
		}
	}
}

// hangOf is the report on a job by its logs.
func hangOf(l *ranklog.Result) dumpset.Hang {
	return dumpset.Hang{Report: l.Report, Logs: true, Incidents: 1, Files: l.Files, Entries: l.Waiting, Remarks: slices.Concat(l.Remarks, earlierLives(l)), Unplaced: len(l.Unknown)}
}

// earlierLives says how lives of a job before the last one ended.
func earlierLives(l *ranklog.Result) []string {
	if l.Earlier == "" {
		return nil
	}
	return []string{strings.ToUpper(l.Earlier[:1]) + l.Earlier[1:] + "."}
}

// timedOut notes that logs say that operations timed out, or that a watchdog is stuck. Nothing is healthy
// beside that: where nothing else shows what hangs, the logs do. found: the dumps do.
func (a *analysis) timedOut(l *ranklog.Result, found bool) {
	what := stuckByLogs(l)
	for i := range a.dumps.Hangs {
		h := &a.dumps.Hangs[i]
		if h.Verdict == desync.Healthy && !found {
			h.Verdict = desync.Undecided
			h.MayRun = what + ", and nothing hangs by the rest of the input: it is of another moment or another job"
			continue
		}
		if !h.Logs {
			h.Remarks = append(h.Remarks, "T"+what[1:]+".")
		}
	}
	if !found {
		a.dumps.Hangs = append(a.dumps.Hangs, hangOf(l))
	}
}
