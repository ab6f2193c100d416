// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/ranklog"
)

// leftOut is an attempt of a job before the last one, which torchrun keeps in a folder of its own.
type leftOut struct {
	folder string
	last   int64 // the attempt that is judged
	files  []input
}

// lastAttempts parts the logs of the last attempt of each job from those of earlier ones.
func lastAttempts(files []input) (out []input, left []leftOut) {
	last := map[string]int64{}
	for _, f := range files {
		if dir, n, ok := ranklog.Attempt(f.path); ok {
			last[dir] = max(last[dir], n)
		}
	}
	at := map[string]int{}
	for _, f := range files {
		dir, n, ok := ranklog.Attempt(f.path)
		if !ok || n == last[dir] {
			out = append(out, f)
			continue
		}
		folder := filepath.Join(dir, fmt.Sprintf("attempt_%d", n))
		i, seen := at[folder]
		if !seen {
			i = len(left)
			at[folder], left = i, append(left, leftOut{folder: folder, last: last[dir]})
		}
		left[i].files = append(left[i].files, f)
	}
	return out, left
}

// maxLeftOut bounds the attempts that are read to say that they timed out: the latest ones.
const maxLeftOut = 16

// noteLeftOut adds to what the logs came to which earlier attempts timed out. Without a time-out in
// the last attempt the answer says that it may go on.
func (r logReader) noteLeftOut(ctx context.Context, left []leftOut, to *analysis) {
	if len(to.logs) == 0 {
		return
	}
	result := to.logs[0] // of several jobs; the remark names the folder
	for _, l := range left[max(0, len(left)-maxLeftOut):] {
		if ctx.Err() != nil || !r.timedOut(l.files) {
			continue
		}
		result.Remarks = append(result.Remarks, fmt.Sprintf("%s timed out and was left out: attempt %d is the last one.", l.folder, l.last))
		if len(to.logs) == 1 && result.Verdict == desync.NoData && result.Waiting == 0 && result.Alarms == 0 && len(result.Errors) == 0 {
			result.MayRun = fmt.Sprintf("the time-outs are of an earlier attempt of the job; attempt %d has none: it may run, have ended, or hang since less than a time-out", l.last)
		}
	}
}

// timedOut reports whether logs say that an operation timed out.
func (r logReader) timedOut(files []input) bool {
	set := ranklog.NewSet()
	sorted, names := ranklog.InOrder(files, func(f input) string { return f.path })
	for _, f := range sorted {
		_ = r.readFile(r.fileOf(f.path, names), set, func(in io.Reader) io.Reader { return in }) // what was read decides
	}
	return set.Judge(ranklog.Options{WorldSize: r.world, Engine: desync.NewDefaultConfig()}).Waiting > 0
}
