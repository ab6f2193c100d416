// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/inspector"
)

const (
	// toldEach is how many files with faults have a line of their own in one poll. The
	// rest share one: a collector's log drops lines of one message beyond ten in ten
	// seconds, and is to stay readable.
	toldEach = 16
	// maxNamed bounds the files that are named together.
	maxNamed = 64
	// toldAgain is how many times as many faults of a file as were told of are told of
	// again.
	toldAgain = 10
)

// tally is what was wrong with a file's lines.
type tally struct {
	total int64
	by    map[inspector.Reason]int64
	next  int64            // told of again at so many
	first *inspector.Fault // not told of yet
}

// add reports whether it is to be told of: the first of its reason, or there are many
// more than were told of.
func (t *tally) add(x *inspector.Fault) bool {
	if t.by == nil {
		t.by = map[inspector.Reason]int64{}
	}
	t.total++
	t.by[x.Reason]++
	if t.first != nil || t.by[x.Reason] > 1 && t.total < t.next {
		return false
	}
	first := *x
	t.first = &first
	return true
}

func (t *tally) told() { t.first, t.next = nil, toldAgain*t.total }

func (rd *reader) fault(f *file, x *inspector.Fault) {
	rd.telemetry.ReceiverNcclInspectorFaults.Add(rd.ctx, 1, reason(string(x.Reason)))
	rd.series.lostLine(rd.now(), inspector.JobID(rd.cfg.JobID, f.path), x)
	if f.faults.add(x) {
		rd.faulty = append(rd.faulty, f)
	}
}

// tellFaults tells of the faults of this poll.
func (rd *reader) tellFaults() {
	each := rd.faulty[:min(len(rd.faulty), toldEach)]
	for _, f := range each {
		// The message names the file, so that those of one do not push out others.
		rd.log.Warn(fmt.Sprintf("Faults of %q", f.path), append(firstFault(f),
			zap.Int64("faults", f.faults.total), zap.String("by_reason", reasons(f.faults.by)), zap.Int64("told_again_at", toldAgain*f.faults.total))...)
	}
	if rest := rd.faulty[len(each):]; len(rest) > 0 {
		rd.tellTogether(rest)
	}
	for _, f := range rd.faulty {
		f.faults.told()
	}
	rd.faulty = nil
}

func (rd *reader) tellTogether(files []*file) {
	var names []string
	by := map[inspector.Reason]int64{}
	for _, f := range files {
		if len(names) < maxNamed {
			names = append(names, f.path)
		}
		for r, n := range f.faults.by {
			by[r] += n
		}
	}
	rd.log.Warn(fmt.Sprintf("Faults of %d files more than those above", len(files)),
		append(firstFault(files[0]), zap.String("by_reason", reasons(by)), zap.Strings("files", names))...)
}

// firstFault is where and what the first fault is that was not told of.
func firstFault(f *file) []zap.Field {
	x := f.faults.first
	return []zap.Field{
		zap.String("file", f.path), zap.Int64("line", x.Place.Number), zap.Int64("offset", x.Place.Offset),
		zap.String("reason", string(x.Reason)), zap.String("problem", x.What),
	}
}

// reasons renders how many there were of each.
func reasons(by map[inspector.Reason]int64) string {
	var parts []string
	for r, n := range by {
		parts = append(parts, fmt.Sprintf("%s %d", r, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
