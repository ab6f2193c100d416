// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"container/list"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Findings come from any analysis, and from whoever sends what looks like one: each is cut to a size, and
// all that are held keep to MaxBytes.

// maxListed bounds each list of a finding: all analyses of ours keep to it.
const maxListed = semconv.MaxFindingRanks

// entryBytes is what an entry takes beside its finding: itself, its places in the lists, maps and its
// incident.
const entryBytes = 512

// holder has the findings of one job, or those that have no job.
type holder struct {
	job        string
	open, done int
	share      *bounded.Share[*holder]
}

// cut bounds a finding, and reports whether anything was too long.
func cut(f *model.Finding) (changed bool) {
	for _, l := range [...]struct {
		limit int
		texts []*string
	}{
		{bounded.MaxName, []*string{
			&f.JobName, &f.JobID, &f.Incarnation, &f.Kind, &f.Class, &f.Cause, &f.ID, &f.Status, &f.Host, &f.HWID, &f.Op, &f.CommID, &f.CommName,
			&f.Link, &f.Clock, &f.IncidentID,
		}},
		{bounded.MaxLong, []*string{&f.Stack, &f.Action}},
	} {
		for _, text := range l.texts {
			if !bounded.Fits(*text, l.limit) {
				*text, changed = bounded.Text(*text, l.limit), true
			}
		}
	}
	for _, l := range [...]struct {
		ranks *[]int64
		count *model.Optional[int64]
	}{{&f.Ranks, &f.RanksCount}, {&f.Waiting, &f.WaitingCount}, {&f.Candidates, &f.CandidatesCount}} {
		n := len(*l.ranks)
		if n <= maxListed {
			continue
		}
		*l.ranks, changed = append([]int64(nil), (*l.ranks)[:maxListed]...), true
		if !l.count.OK {
			*l.count = model.Some(int64(n))
		}
	}
	if len(f.Links) > maxListed {
		f.Links, changed = append([]model.SpanRef(nil), f.Links[:maxListed]...), true
	}
	return cutEvidence(f) || changed
}

// cutEvidence bounds the evidence of a finding, and reports whether it was too long.
func cutEvidence(f *model.Finding) bool {
	text, arrived := f.Evidence.(evidence.Text)
	if arrived && bounded.Fits(string(text), bounded.MaxLong) || !arrived && evidence.Bytes(f.Evidence) <= bounded.MaxLong {
		return false
	}
	f.Evidence = bounded.Text(evidence.Text(evidence.Encode(f.Evidence)), bounded.MaxLong)
	return true
}

// hold counts a new entry for its job.
func (e *Engine) hold(n *entry) {
	h := e.jobs[n.finding.JobID]
	if h == nil {
		h = &holder{job: n.finding.JobID}
		h.share = e.room.Enter(h)
		e.jobs[h.job] = h
	}
	h.share.Hear()
	h.open++
	n.of, n.size = h, n.finding.Bytes()+entryBytes
	h.share.Add(n.size)
}

// resize counts an entry whose finding has changed.
func (n *entry) resize() {
	size := n.finding.Bytes() + entryBytes
	n.of.share.Add(size - n.size)
	n.size = size
}

// release gives back what a closed entry took.
func (e *Engine) release(n *entry) {
	n.of.share.Add(-n.size)
	if n.of.done--; n.of.open+n.of.done == 0 {
		n.of.share.Leave()
		delete(e.jobs, n.of.job)
	}
}

// leaver is the entry of a list that makes room, the one heard longest ago of the job that makes room.
func (e *Engine) leaver(l *list.List, count func(*holder) int) *entry {
	return firstOf(l, e.room.Fullest(e.cfg.MaxOpen, count), nil)
}

// firstOf is the entry of a job in a list that was heard longest ago, but for one; nil where there is
// none.
func firstOf(l *list.List, h *holder, but *entry) *entry {
	for at := l.Front(); at != nil; at = at.Next() {
		if n := at.Value.(*entry); n.of == h && n != but {
			return n
		}
	}
	return nil
}

func openOf(h *holder) int { return h.open }
func doneOf(h *holder) int { return h.done }

// shrink keeps to MaxBytes after one entry was heard: of the largest job, but for that entry, closed
// findings are forgotten first, and open ones closed then.
func (e *Engine) shrink(heard *entry) (events []Event) {
	for e.room.Bytes() > e.cfg.MaxBytes {
		largest := e.room.LargestOf(func(h *holder) bool { return h != heard.of || h.open+h.done > 1 })
		if largest == nil {
			break // it alone is there
		}
		if n := firstOf(e.done, largest, heard); n != nil {
			e.forget(n)
			continue
		}
		e.stats.Evicted++
		events = append(events, e.close(firstOf(e.open, largest, heard)))
	}
	return events
}
