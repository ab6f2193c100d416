// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// jobs knows what the files of each job say that others may contradict. Beyond
// the limit, further jobs and ranks are not compared.
type jobs struct {
	options kineto.Options
	limit   int // jobs, and ranks over all of them
	ranks   int
	byID    map[string]*job
}

type job struct {
	stated    int64 // world size of the first file that states one
	statedBy  string
	largest   int64 // world size that any file states
	largestBy string
	highest   int64 // rank that a file's name has; -1 none
	highestBy string
	ranks     map[int64]struct{}
	spans     []span
	told      map[string]struct{}
}

func newJobs(o kineto.Options, limit int) *jobs {
	return &jobs{options: o, limit: limit, byID: map[string]*job{}}
}

// of returns a file's job; nil beyond the limit.
func (j *jobs) of(id string) *job {
	b := j.byID[id]
	if b == nil && len(j.byID) < j.limit {
		b = &job{highest: -1, ranks: map[int64]struct{}{}, told: map[string]struct{}{}}
		j.byID[id] = b
	}
	return b
}

// name notes the rank that a file's name has.
func (j *jobs) name(path string) {
	rank, ok := kineto.RankOfName(j.options, path)
	if !ok {
		return
	}
	if b := j.of(kineto.JobID(j.options, path)); b != nil && rank > b.highest {
		b.highest, b.highestBy = rank, path
	}
}

// compare reports on the trace what it says against other files of its job, and
// raises a world size that is too small: steps would count as complete before
// all ranks have been seen.
func (j *jobs) compare(path string, trace *kineto.Trace) {
	if !trace.HasRank() {
		return
	}
	j.name(path)
	rank := trace.Rank()
	b := j.of(rank.JobID)
	if b == nil {
		return
	}
	if rank.WorldSize.OK {
		size, what := b.size(path, &rank, j.options.WorldSize > 0)
		b.tell(trace, what)
		rank.WorldSize.V = size
		trace.SetRank(rank)
	}
	if start, end, ok := trace.Extent(); ok {
		b.tell(trace, b.place(span{start, end, path}, j.seen(b, rank.Rank)))
	}
}

// seen reports whether there was a file of the rank before, and notes this one.
func (j *jobs) seen(b *job, rank int64) bool {
	if _, ok := b.ranks[rank]; ok || j.ranks >= j.limit {
		return true
	}
	b.ranks[rank] = struct{}{}
	j.ranks++
	return false
}

// maxTold bounds the texts that are remembered, so that what a thousand files
// share is told once.
const maxTold = 64

func (b *job) tell(trace *kineto.Trace, what string) {
	if _, ok := b.told[what]; ok || what == "" {
		return
	}
	if len(b.told) < maxTold {
		b.told[what] = struct{}{}
	}
	trace.Report(what)
}

// size returns the world size to be taken, and what contradicts the one that the
// file states. Of a configured size nothing is doubted but that ranks fit.
func (b *job) size(path string, r *model.Rank, configured bool) (size int64, what string) {
	own := r.WorldSize.V
	size, because := own, ""
	raise := func(to int64, why string) {
		if to > size {
			size, because = to, why
		}
	}
	if configured {
		raise(r.Rank+1, ownRank(r))
		return size, contradiction("the configured world size", own, size, because)
	}
	raise(b.highest+1, fmt.Sprintf("%s names rank %d", filepath.Base(b.highestBy), b.highest))
	raise(r.Rank+1, ownRank(r))
	raise(b.largest, fmt.Sprintf("%s states %d", filepath.Base(b.largestBy), b.largest))
	if own > b.largest {
		b.largest, b.largestBy = own, path
	}
	if b.statedBy == "" || b.statedBy == path {
		b.stated, b.statedBy = own, path
	}
	if because == "" && own != b.stated {
		because = fmt.Sprintf("%s states %d", filepath.Base(b.statedBy), b.stated)
	}
	return size, contradiction("distributedInfo.world_size", own, size, because)
}

func ownRank(r *model.Rank) string { return fmt.Sprintf("its own rank is %d", r.Rank) }

func contradiction(name string, got, taken int64, because string) string {
	if because == "" {
		return ""
	}
	return fmt.Sprintf("compare %s: got %d, but %s; want one size that fits all files of the job; %d is taken", name, got, because, taken)
}

// span is the time that a recording covers, or several that lie together.
type span struct {
	start, end int64 // Unix ns
	file       string
}

const (
	// maxApart is far more than the ranks of one job are started, or their
	// recordings triggered, apart.
	maxApart = time.Hour
	// maxSpans bounds the spans of one job: a profiler that records every hour
	// makes 64 in some days. The oldest is forgotten.
	maxSpans = 64
)

// place adds a recording. It is told where it is the first of its rank and lies
// apart from all others: it may be left over from another run. Further windows
// of one rank may follow hours later.
func (b *job) place(s span, again bool) (what string) {
	var nearest *span
	var least int64
	for i := range b.spans {
		o := &b.spans[i]
		gap := max(s.start-o.end, o.start-s.end)
		if gap <= int64(maxApart) {
			o.start, o.end = min(o.start, s.start), max(o.end, s.end)
			return ""
		}
		if nearest == nil || gap < least {
			nearest, least = o, gap
		}
	}
	if nearest != nil && !again {
		what = apart(&s, nearest, least)
	}
	if len(b.spans) == maxSpans {
		b.spans = append(b.spans[:0], b.spans[1:]...)
	}
	b.spans = append(b.spans, s)
	return what
}

func apart(s, o *span, gap int64) string {
	side := "before"
	if s.start > o.end {
		side = "after"
	}
	return fmt.Sprintf("compare times: got a recording %v %s that of %s; want at most %v between files of one job (one of the two may be of another run, or its clock is set wrong)",
		time.Duration(gap).Round(time.Second), side, filepath.Base(o.file), maxApart)
}
