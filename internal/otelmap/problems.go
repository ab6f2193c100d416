// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// maxProblems bounds the distinct problems of one batch: 256 are 50 attributes
// on 5 ranks, more than a person reads. What is beyond is still counted.
const maxProblems = 256

// Problems collects what could not be read, equal faults as one with a count. It is the caller's, who
// decides over how much input it collects; at most maxProblems faults are kept apart. The zero value is
// ready; a nil *Problems drops what is added.
type Problems struct {
	kinds    map[problemKey]*problemKind
	order    []problemKey
	overflow int64 // beyond maxProblems
	doubted  int64 // of these, what was read all the same
	cut      int64 // texts
}

type problemKey struct {
	rank model.Optional[int64]
	kind string
	read bool // it was read all the same
}

type problemKind struct {
	count int64
	what  string // of the first
}

// Count returns how many faults were met in all: what was doubted and read is none.
func (p *Problems) Count() int64 {
	n := p.overflow - p.doubted
	for key, k := range p.kinds {
		if !key.read {
			n += k.count
		}
	}
	return n
}

// TextsCut returns how many texts and lists were longer than their limits, and were cut.
func (p *Problems) TextsCut() int64 { return p.cut }

// List returns the distinct problems in order of first sight.
func (p *Problems) List() []model.Problem {
	var list []model.Problem
	for _, k := range p.order {
		pr := model.Problem{Offset: -1, What: fmt.Sprintf("%s (%d times)", p.kinds[k].what, p.kinds[k].count)}
		if k.rank.OK {
			pr.Rank = &k.rank.V
		}
		list = append(list, pr)
	}
	if p.overflow > 0 {
		what := fmt.Sprintf("further problems beyond %d kinds (%d times)", maxProblems, p.overflow)
		list = append(list, model.Problem{Offset: -1, What: what})
	}
	return list
}

func (p *Problems) add(rank *int64, what string) {
	if k := p.kind(rank, what, false); k != nil {
		k.what = what
		k.count++
	}
}

// fault counts a span that is left out.
func (p *Problems) fault(rank *int64, f *fault) {
	p.kind(rank, f.what+f.want, false).first("leave out span: " + f.String())
}

// doubt counts a span that is read although something of it is hardly so.
func (p *Problems) doubt(rank *int64, f *fault) {
	p.kind(rank, f.what+f.want, true).first("doubt span: " + f.String())
}

// first counts a fault of which the first is told.
func (k *problemKind) first(what string) {
	if k == nil {
		return
	}
	if k.count == 0 {
		k.what = what
	}
	k.count++
}

// kind returns where equal faults are counted; nil where there is no room.
func (p *Problems) kind(rank *int64, kind string, read bool) *problemKind {
	if p == nil {
		return nil
	}
	key := problemKey{kind: kind, read: read}
	if rank != nil {
		key.rank = model.Some(*rank)
	}
	if k := p.kinds[key]; k != nil {
		return k
	}
	if len(p.order) >= maxProblems {
		p.overflow++
		if read {
			p.doubted++
		}
		return nil
	}
	if p.kinds == nil {
		p.kinds = map[problemKey]*problemKind{}
	}
	k := &problemKind{}
	p.kinds[key] = k
	p.order = append(p.order, key)
	return k
}

// notes records the problems of the attributes of one record.
type notes struct {
	p    *Problems
	rank *int64
	of   string // the record's attribute that is noted elsewhere, "" for none
}

func (p *Problems) notes(rank *int64) notes { return notes{p: p, rank: rank} }

// opNotes leaves the step aside: it is noted with the span that is left out for it.
func (p *Problems) opNotes(rank *int64) notes { return notes{p, rank, semconv.Step} }

// note notes a value that was not taken as it is.
func (n *notes) note(name string, got pcommon.ValueType, o outcome) {
	switch {
	case o == shortened:
		n.shortened(name)
	case n.p != nil && name != n.of:
		n.p.add(n.rank, fmt.Sprintf("read attribute %s: got type %s", name, got))
	}
}

// shortened notes a text that is read as its beginning and a digest, or a list of which the beginning is read.
func (n *notes) shortened(name string) {
	if n.p == nil {
		return
	}
	n.p.cut++
	n.p.kind(n.rank, "cut "+name, true).first("cut " + name + ": it is longer than the limit; its beginning is read, and of a text a digest")
}

// foreign notes a span that is no operation, unless it is one that we write
// ourselves: a step's root, a step in the trace of a request, or a finding.
func (p *Problems) foreign(s ptrace.Span) {
	for _, own := range []string{semconv.StoryLimit, semconv.RequestSpan, semconv.FindingKind} {
		if _, ok := s.Attributes().Get(own); ok {
			return
		}
	}
	if v, ok := s.Attributes().Get(semconv.OpKind); ok {
		p.fault(nil, attributeFault(semconv.OpKind, v, wantKind))
		return
	}
	p.add(nil, "span without "+semconv.OpKind+" is no operation and was passed over")
}
