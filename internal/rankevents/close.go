// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// closeStep hands on the oldest open step.
func (r *Rank) closeStep() {
	n := r.steps.open[0].n
	r.flushGroupsOf(n)
	r.missing(n)
	s := r.steps.remove()
	r.gap.over(s)
	r.stats.StepsClosed++
	start, end := r.extent(s)
	if start != 0 {
		r.steps.prevEnd = end
		r.handOnStep(s, start, end)
	}
	// What was handed on refers to the step's histograms.
	r.flush()
	r.node.links.recycle(r.closing)
	r.steps.recycle(s)
}

func (r *Rank) handOnStep(s *step, start, end uint64) {
	defer func(was bool) { r.silent = was }(r.silent)
	r.silent = false
	op := r.next()
	op.Kind, op.Name = model.KindStep, "step"
	op.Step, op.StepOps = model.Some(s.n), model.Some(s.emitted)
	op.Start, op.End = r.unix(start), r.unix(end)
	op.Phase = phaseName(s.phase)
	op.Links, op.LinksDropped = s.links, s.linksDropped
	sum := Summary{Ops: s.ops, Collectives: s.comms, Lost: s.lost, Unmeasured: s.unmeasured, Bytes: int64(s.bytes)}
	for i, w := range s.waits {
		sum.Waits[i] = seconds(w)
	}
	s.divide(start, end, &sum)
	r.histograms = r.histograms[:0] // a batch has one step at most
	for i := range s.keys {
		if h := &s.keys[i].hist; h.Count > 0 {
			r.histograms = append(r.histograms, KeyHistogram{r.keys.names[i], h})
		}
	}
	sum.Histograms = r.histograms
	r.closing = r.node.links.take(r.global, r.closing[:0])
	sum.Links = r.closing
	r.batch.Summaries = append(r.batch.Summaries, sum)
}

func phaseName(p ring.Phase) string {
	if p == ring.PhaseNone || p > ring.PhaseInference {
		return ""
	}
	return p.String()
}
