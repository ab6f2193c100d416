// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// stepReport renders the analysis of one step.
func (j *job) stepReport(s *openStep, views []*rankView, rec *record) *StepReport {
	out := &StepReport{
		JobName: j.name, JobID: j.id, Incarnation: j.incarnation, Step: s.step,
		Start: rec.start, End: rec.end, Missing: rec.missing, MissingCount: rec.missingCount,
	}
	out.Ranks = make([]RankStep, 0, len(views))
	if j.e.meetings {
		out.Notes = map[model.SpanRef]Note{}
	}
	for i, v := range views {
		out.Ranks = append(out.Ranks, v.report(&rec.ranks[i]))
		if j.e.meetings {
			out.Ranks[i].Span = rec.ranks[i].rank.Ref(&model.Op{Kind: model.KindStep, Step: model.Some(s.step)})
		}
		if j.e.durations {
			out.Ranks[i].Durations = v.durations()
		}
	}
	if j.e.meetings {
		for _, mr := range rec.meets {
			shown := mr.show()
			out.Meetings = append(out.Meetings, *shown)
			out.note(shown)
		}
	}
	j.rhythm.reportStep(out)
	return out
}

func (v *rankView) report(r *rankRecord) RankStep {
	excess := map[string]time.Duration{model.ClassCompute: time.Duration(r.excess.busy()), model.ClassHost: time.Duration(r.excess.idle)}
	if r.wired {
		excess[model.ClassLink] = time.Duration(r.wire)
	}
	return RankStep{
		Rank: *r.rank, Start: r.start, End: r.end, Split: v.split(),
		Ops: v.size(), Collectives: len(v.comms), WaitCaused: time.Duration(r.caused), WaitSuffered: time.Duration(v.suffered),
		Met: len(v.met), LastArrivals: int(r.lasts), Excess: excess, Offset: v.offset, Phase: v.phase,
	}
}

// maxHistogramKeys bounds the histograms of one rank's step; operations beyond
// share the histogram otherKey. A training step has some tens of distinct keys.
const maxHistogramKeys = 256

func (v *rankView) durations() map[string]*stats.Histogram {
	out := map[string]*stats.Histogram{}
	add := func(key string, ns int64) {
		h := out[key]
		if h == nil && len(out) >= maxHistogramKeys {
			key = otherKey
			h = out[key]
		}
		if h == nil {
			h = stats.NewHistogram()
			out[key] = h
		}
		h.Add(float64(ns) / 1e9)
	}
	for i := range v.acts {
		if a := &v.acts[i]; a.kind != actScope {
			add(v.keys.name(a.key), a.end-a.start)
		}
	}
	for i := range v.comms {
		if v.comms[i].inferred {
			continue
		}
		add(v.comms[i].form.key, v.comms[i].duration())
	}
	return out
}

// note annotates the operations of a meeting.
func (rep *StepReport) note(m *Meeting) {
	if !m.Attributed {
		return
	}
	last := m.Awaited().Span
	for i := range m.Members {
		of := &m.Members[i]
		rep.Notes[of.Span] = Note{OwedTo: m.LastRank, LastSpan: last, Wait: of.Wait}
	}
}

// addTotals adds a step to the job's totals.
func (j *job) addTotals(rep *StepReport) {
	for i := range rep.Ranks {
		r := &rep.Ranks[i]
		t := j.totals[r.Rank.Rank]
		if t == nil {
			t = &RankTotal{Rank: r.Rank.Rank, Host: r.Rank.HostName, Excess: map[string]time.Duration{}}
			j.totals[r.Rank.Rank] = t
		}
		t.Steps++
		t.Split = t.Split.plus(r.Split)
		t.WaitCaused += r.WaitCaused
		t.WaitSuffered += r.WaitSuffered
		t.LastArrivals += r.LastArrivals
		t.Meetings += r.Collectives
		t.Met += r.Met
		t.Offset = r.Offset
		for class, x := range r.Excess {
			t.Excess[class] += x
		}
	}
}

func (s Split) plus(o Split) Split {
	return Split{
		Compute: s.Compute + o.Compute, ComputeOverlapped: s.ComputeOverlapped + o.ComputeOverlapped,
		Transfer: s.Transfer + o.Transfer, Wait: s.Wait + o.Wait,
		LaunchIdle: s.LaunchIdle + o.LaunchIdle, DependencyIdle: s.DependencyIdle + o.DependencyIdle,
		Copy: s.Copy + o.Copy,
	}
}
