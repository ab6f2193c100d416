// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// rankVerdicts finds the worst verdict of each span: it bears one.
func (m *Mapper) rankVerdicts() {
	m.worst = slices.Grow(m.worst[:0], len(m.items))[:len(m.items)]
	clear(m.worst)
	for i := range m.batch.Verdicts {
		v := &m.batch.Verdicts[i]
		for _, span := range [...]int{v.First, v.Second} {
			if span < 0 {
				continue
			}
			if j := m.worst[span]; j == 0 || worse(v, &m.batch.Verdicts[j-1]) {
				m.worst[span] = int32(i + 1)
			}
		}
	}
}

func worse(a, b *causality.Verdict) bool {
	if a.Class != b.Class {
		return a.Class > b.Class
	}
	return a.Magnitude > b.Magnitude
}

func (m *Mapper) verdict(i int, it *item) {
	attrs := it.span.Attributes()
	at := m.worst[i]
	if at == 0 {
		if it.note.has&hasVerdict != 0 {
			for _, name := range [...]string{
				semconv.CausalityVerdict, semconv.CausalityMagnitude, semconv.CausalityRelation, semconv.CausalityOther, semconv.CausalityOrder,
			} {
				attrs.Remove(name)
			}
		}
		return
	}
	v := &m.batch.Verdicts[at-1]
	other := v.SecondRef
	if v.Second == i {
		other = v.FirstRef
	}
	attrs.PutStr(semconv.CausalityVerdict, causality.ClassName(v.Class))
	attrs.PutDouble(semconv.CausalityMagnitude, seconds(v.Magnitude))
	attrs.PutStr(semconv.CausalityRelation, v.Row.Name)
	attrs.PutStr(semconv.CausalityOther, m.text.of(&other))
	switch {
	case !v.OrderKnown:
		if it.note.has&hasVerdict != 0 {
			attrs.Remove(semconv.CausalityOrder)
		}
	case v.Ordered:
		attrs.PutStr(semconv.CausalityOrder, semconv.OrderMessages)
	default:
		attrs.PutStr(semconv.CausalityOrder, semconv.OrderConcurrent)
	}
}

// texts makes the names of spans, many in one piece of memory. Who keeps one of them
// keeps the piece, which is no larger than a page.
type texts struct{ strings.Builder }

const (
	textPiece = 4096
	textSize  = 2*len(model.TraceID{}) + 1 + 2*len(model.SpanID{})
)

// of is [model.SpanRef.String].
func (t *texts) of(ref *model.SpanRef) string {
	if t.Cap()-t.Len() < textSize {
		t.Reset()
		t.Grow(textPiece)
	}
	var b [textSize]byte
	hex.Encode(b[:], ref.Trace[:])
	b[2*len(ref.Trace)] = '-'
	hex.Encode(b[2*len(ref.Trace)+1:], ref.Span[:])
	from := t.Len()
	t.Write(b[:])
	return t.String()[from:]
}
