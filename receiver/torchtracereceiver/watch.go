// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// version is how two contents of one file are told apart.
type version struct {
	size  int64
	mtime time.Time
}

// tracked is what is remembered of a file.
type tracked struct {
	seen version // at the last poll
	read version // zero before the first reading
}

// tracker says which files are due. It remembers the files of the last poll and
// no others, so that max_files bounds it.
type tracker struct{ files map[string]tracked }

// due takes what a poll found and returns the files to read: those unchanged
// since the poll before, since a profiler may still be writing the others, and
// not read in this version. Gone are those that were there at the poll before.
func (tr *tracker) due(found []string, versions map[string]version) (ready, gone []string) {
	next := make(map[string]tracked, len(found))
	for _, path := range found {
		now := versions[path]
		t, known := tr.files[path]
		if known && t.seen == now && t.read != now {
			ready = append(ready, path)
			t.read = now
		}
		t.seen = now
		next[path] = t
	}
	for path := range tr.files {
		if _, ok := next[path]; !ok {
			gone = append(gone, path)
		}
	}
	tr.files = next
	return ready, gone
}

// again makes a file due at the next poll that was due at this one.
func (tr *tracker) again(path string) {
	t := tr.files[path]
	t.read = version{}
	tr.files[path] = t
}

// watch reads files as they are written, until told to stop.
func (rd *reader) watch(ctx context.Context, s *status) {
	w := &watcher{reader: rd, status: s}
	ticker := time.NewTicker(rd.cfg.PollInterval)
	defer ticker.Stop()
	for {
		w.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

type watcher struct {
	*reader
	status  *status
	tracker tracker
	noted   []model.Problem // of the last look, so that each is noted once
}

func (w *watcher) poll(ctx context.Context) {
	l := w.list()
	w.note(ctx, slices.DeleteFunc(slices.Clone(l.problems), func(p model.Problem) bool {
		return slices.ContainsFunc(w.noted, func(q model.Problem) bool { return describe(&p) == describe(&q) })
	}))
	w.noted = l.problems
	w.telemetry.ReceiverTorchTraceFilesIgnored.Add(ctx, int64(l.ignored))
	found, versions := stat(l.files)
	ready, gone := w.tracker.due(found, versions)
	for _, path := range gone {
		w.intake.Forget(path)
	}
	w.status.Set("include", health.Readable(w.cfg.Include...))
	if len(found) == 0 {
		w.status.nothing(l.nothing(w.cfg.Include))
		return
	}
	w.status.nothing(nil)
	for _, path := range ready {
		if ctx.Err() != nil {
			return
		}
		if err := w.read(ctx, path); noDescriptors(err) {
			w.tracker.again(path)
		}
	}
}

// noDescriptors reports whether a file was not opened because this process or the system had
// too many open: the file is not at fault, and will not change.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// stat returns the files that are still there, in the same order.
func stat(files []kineto.File) (found []string, versions map[string]version) {
	versions = make(map[string]version, len(files))
	for _, f := range files {
		info, err := os.Stat(f.Path)
		if err != nil {
			continue // gone since it was listed; the next poll tells
		}
		found = append(found, f.Path)
		versions[f.Path] = version{size: info.Size(), mtime: info.ModTime()}
	}
	return found, versions
}
