// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// MaxPieceSpans is the most spans to hand on at once of what was held back: what
// OpenTelemetry's batch processor sends by default, so that an exporter's limits
// meet what they are made for. At 1 KiB each they are 8 MiB.
const MaxPieceSpans = 8192

// Pieces divides td into pieces of at most limit spans, in order; td itself is
// the only piece where it is small enough, none where it has no spans. Spans are
// moved out of td, and a resource or scope that is divided is copied.
func Pieces(td ptrace.Traces, limit int) iter.Seq[ptrace.Traces] {
	return func(yield func(ptrace.Traces) bool) {
		switch n := td.SpanCount(); {
		case n == 0:
		case n <= limit:
			yield(td)
		default:
			divide(td, limit, yield)
		}
	}
}

func divide(td ptrace.Traces, limit int, yield func(ptrace.Traces) bool) {
	piece, room := ptrace.NewTraces(), limit
	for _, rs := range td.ResourceSpans().All() {
		var to ptrace.ResourceSpans
		inPiece := false
		for _, ss := range rs.ScopeSpans().All() {
			for from := 0; from < ss.Spans().Len(); {
				if room == 0 {
					if !yield(piece) {
						return
					}
					piece, room, inPiece = ptrace.NewTraces(), limit, false
				}
				if !inPiece {
					to, inPiece = sameResource(rs, piece), true
				}
				n := min(room, ss.Spans().Len()-from)
				moveSpans(ss, from, n, to)
				from, room = from+n, room-n
			}
		}
	}
	if room < limit {
		yield(piece)
	}
}

// sameResource adds a place for spans of the resource of rs to td.
func sameResource(rs ptrace.ResourceSpans, td ptrace.Traces) ptrace.ResourceSpans {
	to := td.ResourceSpans().AppendEmpty()
	rs.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(rs.SchemaUrl())
	return to
}

// moveSpans moves n spans of ss, the first being from, under the same scope of to.
func moveSpans(ss ptrace.ScopeSpans, from, n int, to ptrace.ResourceSpans) {
	scope := to.ScopeSpans().AppendEmpty()
	ss.Scope().CopyTo(scope.Scope())
	scope.SetSchemaUrl(ss.SchemaUrl())
	scope.Spans().EnsureCapacity(n)
	for i := range n {
		ss.Spans().At(from + i).MoveTo(scope.Spans().AppendEmpty())
	}
}
