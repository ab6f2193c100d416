// SPDX-License-Identifier: Apache-2.0

package sequencemap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// Number numbers the spans of td, and returns which numbers they got. A resource that another agent has numbered stays
// as it is.
func Number(td ptrace.Traces, n *sequence.Numberer) (given []sequence.Numbers) {
	for _, rs := range td.ResourceSpans().All() {
		spans := 0
		for _, ss := range rs.ScopeSpans().All() {
			spans += ss.Spans().Len()
		}
		if _, numbered := rs.Resource().Attributes().Get(semconv.SequenceSource); numbered || spans == 0 {
			continue
		}
		of := n.Take(otelmap.JobKey(rs.Resource()), spans)
		given = append(given, of)
		write(rs, &of)
	}
	return given
}

func write(rs ptrace.ResourceSpans, of *sequence.Numbers) {
	a := rs.Resource().Attributes()
	a.PutStr(semconv.SequenceSource, of.Source)
	if len(of.Void) > 0 {
		void := a.PutEmptySlice(semconv.SequenceVoid)
		void.EnsureCapacity(2 * len(of.Void))
		for _, r := range of.Void {
			void.AppendEmpty().SetInt(r.First)
			void.AppendEmpty().SetInt(r.Last)
		}
	}
	next := of.First
	for _, ss := range rs.ScopeSpans().All() {
		for _, s := range ss.Spans().All() {
			s.Attributes().PutInt(semconv.SequenceNumber, next)
			next++
		}
	}
}

// maxSource bounds the name of a stream, bytes.
const maxSource = 64

// Read returns the numbers of spans, by stream, and how many attributes it could not read. Spans without a number are
// left out.
func Read(td ptrace.Traces) (all []sequence.Arrival, unread int) {
	at := map[string]*reading{}
	var order []string
	for _, rs := range td.ResourceSpans().All() {
		v, ok := rs.Resource().Attributes().Get(semconv.SequenceSource)
		if !ok {
			continue
		}
		if v.Type() != pcommon.ValueTypeStr || v.Str() == "" || !cut.Fits(v.Str(), maxSource) {
			unread++
			continue
		}
		r := at[v.Str()]
		if r == nil {
			r = &reading{steps: map[sequence.Step][]sequence.Range{}}
			at[v.Str()] = r
			order = append(order, v.Str())
		}
		r.resource(rs)
	}
	for _, source := range order {
		r := at[source]
		unread += r.unread
		if a := r.arrival(source); len(a.Steps)+len(a.Loose)+len(a.Void) > 0 {
			all = append(all, a)
		}
	}
	return all, unread
}

// reading is what was read of one stream.
type reading struct {
	steps       map[sequence.Step][]sequence.Range
	loose, void []sequence.Range
	unread      int
}

func (r *reading) resource(rs ptrace.ResourceSpans) {
	r.readVoid(rs.Resource())
	rank, known := otelmap.ResourceToRank(rs.Resource(), nil)
	for _, ss := range rs.ScopeSpans().All() {
		for _, s := range ss.Spans().All() {
			v, ok := s.Attributes().Get(semconv.SequenceNumber)
			if !ok {
				continue
			}
			if v.Type() != pcommon.ValueTypeInt || !valid(v.Int()) {
				r.unread++
				continue
			}
			step, has := s.Attributes().Get(semconv.Step)
			key := sequence.Step{Job: rank.JobID, Incarnation: rank.Incarnation}
			if has && step.Type() == pcommon.ValueTypeInt {
				key.Step = step.Int()
			} else {
				has = false
			}
			if !known || !has || !key.Valid() || !otelmap.IsOp(s) {
				r.loose = extend(r.loose, v.Int())
				continue
			}
			r.steps[key] = extend(r.steps[key], v.Int())
		}
	}
}

func valid(n int64) bool { return n >= 0 && n <= sequence.MaxNumber }

// extend adds a number to ranges. Those of a batch mostly follow each other.
func extend(all []sequence.Range, n int64) []sequence.Range {
	if last := len(all) - 1; last >= 0 && all[last].Last+1 == n {
		all[last].Last = n
		return all
	}
	return append(all, sequence.Range{First: n, Last: n})
}

func (r *reading) readVoid(res pcommon.Resource) {
	v, ok := res.Attributes().Get(semconv.SequenceVoid)
	if !ok {
		return
	}
	if v.Type() != pcommon.ValueTypeSlice || v.Slice().Len()%2 != 0 || v.Slice().Len() > 2*sequence.MaxVoid {
		r.unread++
		return
	}
	for i := 0; i < v.Slice().Len(); i += 2 {
		of := sequence.Range{First: v.Slice().At(i).Int(), Last: v.Slice().At(i + 1).Int()}
		if !valid(of.First) || !valid(of.Last) || of.Last < of.First {
			r.unread++
			continue
		}
		r.void = append(r.void, of)
	}
}

func (r *reading) arrival(source string) sequence.Arrival {
	out := sequence.Arrival{Source: source, Loose: sequence.Of(r.loose), Void: sequence.Of(r.void)}
	if len(r.steps) > 0 {
		out.Steps = make(map[sequence.Step]sequence.Ranges, len(r.steps))
	}
	for step, numbers := range r.steps {
		out.Steps[step] = sequence.Of(numbers)
	}
	return out
}
