// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Mapper reads spans into a batch, and writes what was found on them. It is not
// safe for concurrent use.
type Mapper struct {
	engine   *causality.Engine
	resolver Resolver

	batch   causality.Batch
	items   []item
	sources []source
	links   []model.SpanRef
	worst   []int32 // of each span: 1 + the number of its verdict; 0 none
	text    texts
}

// NewMapper returns a mapper for one engine.
func NewMapper(e *causality.Engine, r Resolver) *Mapper {
	return &Mapper{engine: e, resolver: r}
}

// item is a span and what a correction had written on it.
type item struct {
	span   ptrace.Span
	source int32
	note   note
}

// note is what stood on a span before.
type note struct {
	timeline, viaTimeline, clock              string
	offset, bound, viaOffset, viaBound, sigma float64
	rawStart, viaStart, launch, rawLaunch     int64
	has                                       present
	// moved: the span's times are a correction's, and not as they came.
	moved bool
}

// present says which attributes a span bears.
type present uint16

const (
	hasRawStart present = 1 << iota
	hasViaStart
	hasLaunch
	hasRawLaunch
	hasOffset
	hasBound
	hasViaOffset
	hasViaBound
	hasSigma
	hasStep
	hasUntrusted
	hasWithheld
	hasVerdict
)

// timelinePrefix is that of the names of timelines; other values of the attribute
// are clocks.
const timelinePrefix = "timeline:"

// Read fills the mapper's batch with all spans of td.
func (m *Mapper) Read(td ptrace.Traces) {
	m.Forget()
	for _, rs := range td.ResourceSpans().All() {
		m.sources = append(m.sources, m.source(rs.Resource()))
		at := int32(len(m.sources) - 1)
		for _, ss := range rs.ScopeSpans().All() {
			spans, made := ss.Spans(), afterwards(ss.Scope().Name())
			for i := range spans.Len() {
				m.read(spans.At(i), at, made)
			}
		}
	}
}

// Batch is what Read read.
func (m *Mapper) Batch() *causality.Batch { return &m.batch }

// Forget lets go of the spans that were read.
func (m *Mapper) Forget() {
	m.batch.Reset()
	clear(m.items)
	clear(m.sources)
	m.items, m.sources, m.links = m.items[:0], m.sources[:0], m.links[:0]
}

func (m *Mapper) read(s ptrace.Span, at int32, made causality.Trait) {
	m.items = append(m.items, item{span: s, source: at})
	it := &m.items[len(m.items)-1]
	src := &m.sources[at]
	m.batch.Spans = append(m.batch.Spans, causality.Span{
		Ref:    model.SpanRef{Trace: model.TraceID(s.TraceID()), Span: model.SpanID(s.SpanID())},
		Parent: model.SpanID(s.ParentSpanID()),
		Job:    src.job,
	})
	out := &m.batch.Spans[len(m.batch.Spans)-1]
	var op model.Op
	seen := scan(s, &it.note, &op)
	m.stand(it, out)
	if op.Kind != "" {
		out.Is = causality.Operation
		if op.Kind.IsComm() && src.isRank && out.Clock != nil {
			out.Meet = causality.MeetOf(&src.rank, &op)
		}
		return
	}
	out.Is = traits(s, seen) | made
	if out.Is&(causality.Consumer|causality.Receive|causality.Process) != 0 {
		m.link(s, out)
	}
}

// stand finds where the span's stamps came from, and on which clock they stood.
func (m *Mapper) stand(it *item, out *causality.Span) {
	n, src := &it.note, &m.sources[it.source]
	start, end := it.span.StartTimestamp(), it.span.EndTimestamp()
	begin := int64(start)
	clock := src.clock
	if n.clock != "" && n.clock != src.clockID {
		clock = m.clock(n.clock)
	}
	switch corrected := strings.HasPrefix(n.timeline, timelinePrefix); {
	case corrected && n.has&hasViaStart != 0:
		begin, n.moved = n.viaStart, true
		clock = m.clockNamed(n.viaTimeline, src)
	case corrected && n.has&hasRawStart != 0:
		begin, n.moved = n.rawStart, true
	case corrected || n.timeline == "":
	default:
		// Its source put it on another clock: that is where it stands.
		clock = m.clockNamed(n.timeline, src)
		n.viaTimeline, n.viaStart = n.timeline, begin
		n.viaOffset, n.viaBound = n.offset, n.bound
		n.has |= hasViaStart
		if n.has&hasOffset != 0 {
			n.has |= hasViaOffset
		}
		if n.has&hasBound != 0 {
			n.has |= hasViaBound
		}
	}
	if n.moved && n.has&hasRawLaunch != 0 {
		n.launch = n.rawLaunch
	}
	out.Begin = begin
	out.Until = begin + int64(end-start)
	if start == 0 || end == 0 || start > math.MaxInt64 || end > math.MaxInt64 {
		return // not a time
	}
	out.Clock = clock
	if clock != nil && clock == src.clock {
		out.Epoch = src.epoch
	}
}

func (m *Mapper) clockNamed(id string, src *source) *causality.Clock {
	if id == src.clockID {
		return src.clock
	}
	return m.clock(id)
}

// maxLinks bounds the links of a span that are followed: a batch of messages has
// some hundreds.
const maxLinks = 1024

func (m *Mapper) link(s ptrace.Span, out *causality.Span) {
	links := s.Links()
	first := len(m.links)
	for i := range min(links.Len(), maxLinks) {
		l := links.At(i)
		m.links = append(m.links, model.SpanRef{Trace: model.TraceID(l.TraceID()), Span: model.SpanID(l.SpanID())})
	}
	out.Links = m.links[first:len(m.links):len(m.links)]
}

func integer(v pcommon.Value, to *int64, n *note, bit present) {
	if v.Type() == pcommon.ValueTypeInt {
		*to = v.Int()
		n.has |= bit
	}
}

func number(v pcommon.Value, to *float64, n *note, bit present) {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		*to = v.Double()
	case pcommon.ValueTypeInt: // some SDKs write 0.0 as the integer 0
		*to = float64(v.Int())
	default:
		return
	}
	n.has |= bit
}

func known(v pcommon.Value) model.Optional[int64] {
	if v.Type() != pcommon.ValueTypeInt {
		return model.Optional[int64]{}
	}
	return model.Some(v.Int())
}
