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

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ranklog"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// logReader reads logs of ranks. All logs of one call are of one job.
type logReader struct {
	job   string
	world int64          // 0: what the logs say
	rank  *regexp.Regexp // nil: by the usual names
}

func (logReader) format() sniff.Format { return sniff.RankLog }

func (r logReader) read(ctx context.Context, files []input, to *analysis) {
	set := ranklog.NewSet()
	for _, f := range lastAttempts(files, to) {
		if ctx.Err() != nil {
			return
		}
		if err := r.readFile(f.path, set, to); err != nil {
			to.problems.add(f.path, -1, fmt.Errorf("read log: %w; the lines in front of that are used", bare(err)))
			continue
		}
		to.files++
		to.bytes += f.size
	}
	job := r.job
	if job == "" {
		job = filepath.Base(filepath.Dir(absolute(files[0].path)))
	}
	to.logs = set.Judge(ranklog.Options{Job: job, WorldSize: r.world, Engine: desync.NewDefaultConfig()})
	for _, path := range to.logs.Unknown {
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

func (r logReader) readFile(path string, set *ranklog.Set, to *analysis) error {
	in, c, err := sniff.Open(path, to.progress.reader)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	f := ranklog.FileOf(path)
	if r.rank != nil {
		rank, _, ok := dumpReader{rank: r.rank}.rankOf(path)
		if f = (ranklog.File{Path: path, Rank: -1}); ok {
			f.Rank, f.Certain = rank, true
		}
	}
	return set.Read(f, in)
}

// lastAttempts leaves out the logs of earlier attempts of a job, which torchrun keeps in folders of
// their own.
func lastAttempts(files []input, to *analysis) (out []input) {
	last := map[string]int64{}
	for _, f := range files {
		if dir, n, ok := ranklog.Attempt(f.path); ok {
			last[dir] = max(last[dir], n)
		}
	}
	for _, f := range files {
		dir, n, ok := ranklog.Attempt(f.path)
		if ok && n != last[dir] {
			to.skipped++
			continue
		}
		out = append(out, f)
	}
	return out
}

// deadByLogs are ranks that ended, by their logs.
func (a *analysis) deadByLogs() (out []model.Absence) {
	if a.logs == nil {
		return nil
	}
	for rank, e := range a.logs.Errors {
		if e.Ended {
			out = append(out, model.Absence{Rank: rank, Reason: model.AbsentDead, Detail: e.Where + ": " + e.Text})
		}
	}
	slices.SortFunc(out, func(x, y model.Absence) int { return int(x.Rank - y.Rank) })
	return out
}

// concludeLogs adds to what dumps tell the last errors of the ranks. Where no dump tells anything,
// the logs decide.
func (a *analysis) concludeLogs() {
	if a.logs == nil {
		return
	}
	if a.dumps == nil {
		a.dumps = &dumpset.Result{}
	}
	ofLogs := dumpset.Hang{Report: a.logs.Report, Logs: true, Incidents: 1, Files: a.logs.Files, Entries: a.logs.Waiting}
	told := slices.ContainsFunc(a.dumps.Hangs, func(h dumpset.Hang) bool { return h.Verdict != desync.NoData })
	if !told {
		a.dumps.Hangs = append([]dumpset.Hang{ofLogs}, a.dumps.Hangs...)
		return
	}
	for i := range a.dumps.Hangs {
		for k := range a.dumps.Hangs[i].Roots {
			ranklog.Note(&a.dumps.Hangs[i].Roots[k].Finding, a.logs.Errors)
		}
	}
	if a.logs.Waiting > 0 {
		a.timedOut(ofLogs)
	}
}

// timedOut notes that logs say that operations timed out. Nothing is healthy beside that: where
// nothing else tells what hangs, the logs do.
func (a *analysis) timedOut(ofLogs dumpset.Hang) {
	what := fmt.Sprintf("the logs say that %d operations timed out", a.logs.Waiting)
	if a.logs.Waiting == 1 {
		what = "the logs say that an operation timed out"
	}
	found := dumpsVerdict(a.dumps) == report.Found
	for i := range a.dumps.Hangs {
		h := &a.dumps.Hangs[i]
		if h.Verdict == desync.Healthy && !found {
			h.Verdict = desync.Undecided
			h.MayRun = what + ", and nothing hangs by the rest of the input: it is of another moment or another job"
			continue
		}
		h.Remarks = append(h.Remarks, "T"+what[1:]+".")
	}
	if !found {
		a.dumps.Hangs = append(a.dumps.Hangs, ofLogs)
	}
}
