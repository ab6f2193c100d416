package stepmap

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Annotator writes on spans what the reports say of them.
type Annotator struct {
	// Histograms adds the durations per operation key to step spans.
	Histograms bool

	notes map[model.SpanRef]straggler.Note
	ranks map[model.SpanRef]*straggler.RankStep // by step span
	found map[place]*model.Finding
}

type place struct {
	incarnation string
	rank        int64
}

// NewAnnotator indexes reports and the findings that stand.
func NewAnnotator(reports []*straggler.StepReport, findings []model.Finding, histograms bool) *Annotator {
	a := &Annotator{
		Histograms: histograms,
		notes:      map[model.SpanRef]straggler.Note{},
		ranks:      map[model.SpanRef]*straggler.RankStep{},
		found:      map[place]*model.Finding{},
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
		if f := &findings[i]; f.Rank.OK {
			a.found[place{f.Incarnation, f.Rank.V}] = f
		}
	}
	return a
}

// Annotate writes on every span of td that the reports know. Spans of others
// are left as they are.
func (a *Annotator) Annotate(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		rank, ok := otelmap.ResourceToRank(rs.Resource(), nil)
		if !ok {
			continue
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				a.annotate(&rank, s)
			}
		}
	}
}

func (a *Annotator) annotate(rank *model.Rank, s ptrace.Span) {
	kind, ok := otelmap.KindOf(s)
	if !ok || (kind != model.KindStep && !kind.IsComm()) {
		return
	}
	op := otelmap.SpanToOp(s, rank, nil)
	ref := rank.Ref(&op)
	if kind == model.KindStep {
		a.annotateStep(ref, s)
	} else if n, ok := a.notes[ref]; ok {
		annotateMember(n, ref, s)
	}
}

func annotateMember(n straggler.Note, self model.SpanRef, s ptrace.Span) {
	note := model.StragglerNote{OwedTo: model.Some(n.OwedTo), Suffered: model.Some(n.Wait.Seconds())}
	otelmap.WriteNote(&note, s)
	if n.LastSpan != self {
		otelmap.LinkOnce(s, n.LastSpan, semconv.LinkLastArriver)
	}
}

// annotateStep writes the summary, unless the source wrote one of more operations
// than reached us: it saw all of them, and sent some. And, where a finding stands against the
// rank, its id, class and the excess of this step. Without a finding nothing
// accuses: half of all ranks are above the median.
func (a *Annotator) annotateStep(ref model.SpanRef, s ptrace.Span) {
	r := a.ranks[ref]
	if r == nil {
		return
	}
	if sum := a.summary(r); otelmap.ReadSummary(s, nil).Ops <= sum.Ops {
		otelmap.WriteSummary(&sum, s)
	}
	if f := a.found[place{r.Rank.Incarnation, r.Rank.Rank}]; f != nil {
		note := model.StragglerNote{Class: f.Class}
		if x, ok := r.Excess[f.Class]; ok {
			note.Excess = model.Some(x.Seconds())
		}
		otelmap.WriteNote(&note, s)
		s.Attributes().PutStr(semconv.FindingID, f.ID)
	}
}

func (a *Annotator) summary(r *straggler.RankStep) otelmap.Summary {
	sec := time.Duration.Seconds
	sum := otelmap.Summary{
		Compute: sec(r.Split.Compute), ComputeOverlapped: sec(r.Split.ComputeOverlapped),
		Transfer: sec(r.Split.Transfer), Wait: sec(r.Split.Wait),
		LaunchIdle: sec(r.Split.LaunchIdle), DependencyIdle: sec(r.Split.DependencyIdle), Copy: sec(r.Split.Copy),
		Ops: int64(r.Ops), Collectives: int64(r.Collectives),
	}
	if a.Histograms {
		sum.Histograms = MarshalHistograms(r.Durations)
	}
	return sum
}
