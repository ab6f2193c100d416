// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// MaxDocument bounds, in bytes, a JSON document on a rank's step. It is larger than the bounds of engines:
// no engine keeps such a document, and a part of a document is invalid.
const MaxDocument = 1 << 20

// Summary is [model.Summary].
type Summary = model.Summary

var summaryFields = newTable(
	float(semconv.SummaryCompute, func(s *Summary) *float64 { return &s.Compute }),
	float(semconv.SummaryComputeOverlapped, func(s *Summary) *float64 { return &s.ComputeOverlapped }),
	float(semconv.SummaryTransfer, func(s *Summary) *float64 { return &s.Transfer }),
	float(semconv.SummaryWait, func(s *Summary) *float64 { return &s.Wait }),
	float(semconv.SummaryLaunchIdle, func(s *Summary) *float64 { return &s.LaunchIdle }),
	float(semconv.SummaryDependencyIdle, func(s *Summary) *float64 { return &s.DependencyIdle }),
	float(semconv.SummaryCopy, func(s *Summary) *float64 { return &s.Copy }),
	num(semconv.SummaryOps, func(s *Summary) *int64 { return &s.Ops }),
	num(semconv.SummaryCollectives, func(s *Summary) *int64 { return &s.Collectives }),
	text(semconv.SummaryHistograms, MaxDocument, func(s *Summary) *string { return &s.Histograms }),
)

// WriteSummary writes a step's summary on its span.
func WriteSummary(sum *Summary, s ptrace.Span) { summaryFields.write(sum, s.Attributes()) }

// ReadSummary reads the summary on a step span; what is absent stays zero.
func ReadSummary(s ptrace.Span, p *Problems) Summary {
	var sum Summary
	summaryFields.read(&sum, s.Attributes(), p.notes(nil))
	return sum
}

// hasSummary reports whether a step span has any attribute of a summary.
func hasSummary(s ptrace.Span) bool {
	for name := range s.Attributes().All() {
		if summaryFields.byName[name] != nil {
			return true
		}
	}
	return false
}

var noteFields = newTable(
	str(semconv.StragglerClass, func(n *model.StragglerNote) *string { return &n.Class }),
	optFloat(semconv.StragglerExcess, func(n *model.StragglerNote) *optionalFloat { return &n.Excess }),
	optInt(semconv.WaitOwedTo, func(n *model.StragglerNote) *optionalInt { return &n.OwedTo }),
	optFloat(semconv.WaitSuffered, func(n *model.StragglerNote) *optionalFloat { return &n.Suffered }),
)

// WriteNote writes what the straggler analysis says of an operation on its span.
func WriteNote(n *model.StragglerNote, s ptrace.Span) { noteFields.write(n, s.Attributes()) }

// LinkOnce adds a link to ref, unless the span has it already.
func LinkOnce(s ptrace.Span, ref model.SpanRef, relation string) {
	for _, l := range s.Links().All() {
		if l.TraceID() == pcommon.TraceID(ref.Trace) && l.SpanID() == pcommon.SpanID(ref.Span) {
			return
		}
	}
	AddLink(s, ref, relation)
}
