// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// annotator has the reports and findings of one call by the spans and ranks that they are about.
type annotator struct {
	histograms bool // adds the durations per operation key to step spans

	notes map[model.SpanRef]straggler.Note
	ranks map[model.SpanRef]*straggler.RankStep // by step span
	found map[place]*accusation
}

type place struct {
	incarnation string
	rank        int64
}

// Annotate writes on every span of td what the reports and the open findings have about it; with
// histograms, it adds the durations per operation key to step spans. Spans that are no operations are left
// as they are.
func Annotate(td ptrace.Traces, reports []*straggler.StepReport, findings []model.Finding, histograms bool) {
	newAnnotator(reports, findings, histograms).annotateAll(td)
}

func newAnnotator(reports []*straggler.StepReport, findings []model.Finding, histograms bool) *annotator {
	a := &annotator{
		histograms: histograms,
		notes:      map[model.SpanRef]straggler.Note{},
		ranks:      map[model.SpanRef]*straggler.RankStep{},
		found:      map[place]*accusation{},
	}
	for _, r := range reports {
		for ref, n := range r.Notes {
			a.notes[ref] = n
		}
		for i := range r.Ranks {
			a.ranks[r.Ranks[i].Span] = &r.Ranks[i]
		}
	}
	for i := range findings {
		a.find(&findings[i])
	}
	return a
}

// find notes a finding for every rank that it names or lists. Of several about one
// rank, the most pointed is told, and of these the most costly.
func (a *annotator) find(f *model.Finding) {
	if f.Kind != model.FindingStraggler {
		return
	}
	told := &accusation{Finding: f, typical: typicalExcess(f)}
	note := func(rank int64) {
		at := place{f.Incarnation, rank}
		if old := a.found[at]; old == nil || morePointed(f, old.Finding) {
			a.found[at] = told
		}
	}
	if f.Rank.OK {
		note(f.Rank.V)
	}
	for _, r := range f.Ranks {
		note(r)
	}
}

// accusation is a finding, and the excess that it found typical, s per step.
type accusation struct {
	*model.Finding
	typical model.Optional[float64]
}

func typicalExcess(f *model.Finding) (s model.Optional[float64]) {
	if ev, ok := evidence.As[evidence.Straggler](f.Evidence); ok {
		s = model.Some(ev.Excess)
	}
	return s
}

func morePointed(f, than *model.Finding) bool {
	return cmp.Or(cmp.Compare(pointed(f), pointed(than)), cmp.Compare(f.CostSeconds.V, than.CostSeconds.V)) > 0
}

// pointed is how close a finding comes to saying that a rank is at fault.
func pointed(f *model.Finding) int {
	switch {
	case f.Blameless():
		return 0
	case !f.Rank.OK:
		return 1
	}
	return 2
}

func (a *annotator) annotateAll(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		rank, ok := otelmap.ResourceToRank(rs.Resource(), nil)
		if !ok {
			continue
		}
		found := a.found[place{rank.Incarnation, rank.Rank}]
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				a.annotate(&rank, found, s)
			}
		}
	}
}

func (a *annotator) annotate(rank *model.Rank, found *accusation, s ptrace.Span) {
	kind, ok := otelmap.KindOf(s)
	if !ok {
		return
	}
	if found != nil && kind != model.KindStep && keyOf(s) == found.Op {
		otelmap.WriteNote(&model.StragglerNote{Class: found.Class}, s)
	}
	ref := func() model.SpanRef {
		op := otelmap.SpanToOp(s, rank, nil)
		return rank.Ref(&op)
	}
	switch {
	case kind == model.KindStep && (found != nil || len(a.ranks) > 0):
		a.annotateStep(ref(), found, s)
	case kind.IsComm() && len(a.notes) > 0:
		self := ref()
		if n, ok := a.notes[self]; ok {
			annotateMember(n, self, s)
		}
	}
}

// keyOf is the operation's comparison key; it is omitted where it is the name.
func keyOf(s ptrace.Span) string {
	if key, ok := s.Attributes().Get(semconv.OpKey); ok && key.Str() != "" {
		return cut.Bytes(key.Str(), cut.MaxName) // as the finding has it
	}
	return cut.Bytes(s.Name(), cut.MaxName)
}

func annotateMember(n straggler.Note, self model.SpanRef, s ptrace.Span) {
	note := model.StragglerNote{OwedTo: model.Some(n.OwedTo), Suffered: model.Some(n.Wait.Seconds())}
	otelmap.WriteNote(&note, s)
	if n.LastSpan != self {
		otelmap.LinkOnce(s, n.LastSpan, semconv.LinkLastArriver)
	}
}

// annotateStep writes the summary, unless the source wrote one of more operations
// than reached us: it saw all of them, and sent some. And, where a finding stands that
// names or lists the rank, its id, class and the excess: of this step once it was
// analysed, else what the finding found typical. Without a finding nothing accuses: half
// of all ranks are above the median.
func (a *annotator) annotateStep(ref model.SpanRef, found *accusation, s ptrace.Span) {
	r := a.ranks[ref]
	if r != nil {
		if sum := a.summary(r); otelmap.ReadSummary(s, nil).Ops <= sum.Ops {
			otelmap.WriteSummary(&sum, s)
		}
	}
	if found == nil {
		return
	}
	note := model.StragglerNote{Class: found.Class, Excess: found.typical}
	if x := excessOf(found.Class, r); x.OK {
		note.Excess = x
	}
	otelmap.WriteNote(&note, s)
	s.Attributes().PutStr(semconv.FindingID, found.ID)
}

// excessOf returns the part of a rank's excess in a step that a class speaks of, if the
// step was analysed. That of a stage is over other stages, and not in it.
func excessOf(class string, r *straggler.RankStep) (sum model.Optional[float64]) {
	if r == nil {
		return sum
	}
	parts := []string{class}
	switch class {
	case model.ClassKernelChoice, model.ClassWorkImbalance:
		parts = []string{model.ClassCompute}
	case model.ClassNode:
		parts = []string{model.ClassCompute, model.ClassHost}
	}
	for _, part := range parts {
		if x, ok := r.Excess[part]; ok {
			sum = model.Some(sum.V + x.Seconds())
		}
	}
	return sum
}

func (a *annotator) summary(r *straggler.RankStep) otelmap.Summary {
	sec := time.Duration.Seconds
	sum := otelmap.Summary{
		Compute: sec(r.Split.Compute), ComputeOverlapped: sec(r.Split.ComputeOverlapped),
		Transfer: sec(r.Split.Transfer), Wait: sec(r.Split.Wait),
		LaunchIdle: sec(r.Split.LaunchIdle), DependencyIdle: sec(r.Split.DependencyIdle), Copy: sec(r.Split.Copy),
		Ops: int64(r.Ops), Collectives: int64(r.Collectives),
	}
	if a.histograms {
		sum.Histograms = otelmap.MarshalHistograms(r.Durations)
	}
	return sum
}
