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

// Problems collects what could not be read, equal faults as one with a count.
// The zero value is ready; a nil *Problems drops what it is told.
type Problems struct {
	counts   map[problemKey]int64
	order    []problemKey
	overflow int64
}

type problemKey struct {
	rank model.Optional[int64]
	what string
}

// Count returns how many faults were met in all.
func (p *Problems) Count() int64 {
	n := p.overflow
	for _, c := range p.counts {
		n += c
	}
	return n
}

// List returns the distinct problems in order of first sight.
func (p *Problems) List() []model.Problem {
	var list []model.Problem
	for _, k := range p.order {
		pr := model.Problem{Offset: -1, What: fmt.Sprintf("%s (%d times)", k.what, p.counts[k])}
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
	if p == nil {
		return
	}
	k := problemKey{what: what}
	if rank != nil {
		k.rank = model.Some(*rank)
	}
	if p.counts[k] == 0 {
		if len(p.order) >= maxProblems {
			p.overflow++
			return
		}
		if p.counts == nil {
			p.counts = map[problemKey]int64{}
		}
		p.order = append(p.order, k)
	}
	p.counts[k]++
}

func (p *Problems) badAttribute(rank *int64) func(string, pcommon.ValueType) {
	return func(name string, got pcommon.ValueType) {
		p.add(rank, fmt.Sprintf("read attribute %s: got type %s", name, got))
	}
}

// foreign notes a span that is no operation, unless it is one that we write
// ourselves: a step's root or a finding.
func (p *Problems) foreign(s ptrace.Span) {
	for _, own := range []string{semconv.StoryLimit, semconv.FindingKind} {
		if _, ok := s.Attributes().Get(own); ok {
			return
		}
	}
	if v, ok := s.Attributes().Get(semconv.OpKind); ok {
		p.badAttribute(nil)(semconv.OpKind, v.Type())
		return
	}
	p.add(nil, "span without "+semconv.OpKind+" is no operation and was passed over")
}
