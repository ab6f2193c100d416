// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"iter"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
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

// cutFinding bounds a finding, and reports whether anything was too long.
func cutFinding(f *model.Finding) (changed bool) {
	for _, l := range [...]struct {
		limit int
		texts []*string
	}{
		{cut.MaxName, []*string{
			&f.JobName, &f.JobID, &f.Incarnation, &f.Kind, &f.Class, &f.Cause, &f.ID, &f.Status, &f.Host, &f.HWID, &f.Op, &f.CommID, &f.CommName,
			&f.Link, &f.Clock, &f.IncidentID,
		}},
		{cut.MaxLong, []*string{&f.Stack, &f.Action}},
	} {
		for _, text := range l.texts {
			if !cut.Fits(*text, l.limit) {
				*text, changed = cut.Text(*text, l.limit), true
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
	if arrived && cut.Fits(string(text), cut.MaxLong) || !arrived && evidence.Bytes(f.Evidence) <= cut.MaxLong {
		return false
	}
	f.Evidence = cut.Text(evidence.Text(evidence.Encode(f.Evidence)), cut.MaxLong)
	return true
}

// hold counts a new entry for its job.
func (e *Engine) hold(n *entry) {
	h := e.jobs[n.Finding.JobID]
	if h == nil {
		h = &holder{job: n.Finding.JobID}
		h.share = e.room.Enter(h)
		e.jobs[h.job] = h
	}
	n.Data.of, n.Data.open = h, n.IsOpen()
	*h.counter(n.Data.open)++
}

func (h *holder) counter(open bool) *int {
	if open {
		return &h.open
	}
	return &h.done
}

// weigh counts the bytes of an entry again.
func (e *Engine) weigh(n *entry) {
	size := n.Finding.Bytes() + entryBytes
	n.Data.of.share.Add(size - n.Data.size)
	n.Data.size = size
}

// count counts an entry that has changed, and keeps to the number of ended ones.
func (e *Engine) count(n *entry) {
	d := n.Data
	if open := n.IsOpen(); open != d.open {
		*d.of.counter(d.open)--
		*d.of.counter(open)++
		d.open = open
	}
	e.weigh(n)
	e.trim()
}

// trim keeps to the number of ended findings.
func (e *Engine) trim() {
	for e.book.EndedLen() > e.cfg.MaxOpen {
		e.forget(firstOf(e.book.Ended(), e.room.Fullest(e.cfg.MaxOpen, doneOf), nil))
	}
}

// forget drops an ended finding.
func (e *Engine) forget(n *entry) {
	e.book.Forget(n)
	n.Data.incident.remove(n)
	h := n.Data.of
	h.share.Add(-n.Data.size)
	if h.done--; h.open+h.done == 0 {
		h.share.Leave()
		delete(e.jobs, h.job)
	}
	e.stats.Forgotten++
}

// evict gives up an open finding. It may still be open where it comes from: it is not reported as closed,
// and opens again when it is reported.
func (e *Engine) evict(n *entry) {
	e.stats.Evicted++
	e.drop(n)
}

func (e *Engine) drop(n *entry) {
	e.book.Drop(n)
	e.count(n)
}

// Forget drops the open findings of some jobs, and does not report them as closed: another engine gets them.
func (e *Engine) Forget(jobs []string) {
	for _, n := range slices.Collect(e.book.All()) {
		if slices.Contains(jobs, n.Finding.JobID) {
			e.drop(n)
		}
	}
}

// limitOpen makes room for a finding that will open.
func (e *Engine) limitOpen(f *model.Finding) {
	if e.book.Len() < e.cfg.MaxOpen || !e.book.Opens(placeOf(f), f) {
		return
	}
	e.evict(firstOf(e.book.All(), e.room.Fullest(e.cfg.MaxOpen, openOf), nil))
}

// firstOf is the first entry of a job in a list, but for one; nil where there is none.
func firstOf(l iter.Seq[*entry], h *holder, but *entry) *entry {
	for n := range l {
		if n.Data.of == h && n != but {
			return n
		}
	}
	return nil
}

func openOf(h *holder) int { return h.open }
func doneOf(h *holder) int { return h.done }

// shrink keeps to MaxBytes after one entry was received: of the largest job, but for that entry, ended
// findings are forgotten first, and open ones given up then.
func (e *Engine) shrink(heard *entry) {
	for e.room.Bytes() > e.cfg.MaxBytes {
		largest := e.room.LargestOf(func(h *holder) bool { return h != heard.Data.of || h.open+h.done > 1 })
		if largest == nil {
			break // it alone is there
		}
		if n := firstOf(e.book.Ended(), largest, heard); n != nil {
			e.forget(n)
			continue
		}
		e.evict(firstOf(e.book.All(), largest, heard))
	}
}
