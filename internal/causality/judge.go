// SPDX-License-Identifier: Apache-2.0

package causality

// judgement is what is known of one relation.
type judgement struct {
	class     Class
	magnitude int64
	// visible: the stamps have it right, and what would be given out has it wrong.
	visible bool
}

// judge judges the batch's relations, withholding what must not be applied.
func (e *Engine) judge(b *Batch) {
	b.Verdicts = b.Verdicts[:0]
	visible := false
	for i := range e.pairs {
		p := &e.pairs[i]
		p.judged = e.of(b, p)
		visible = visible || p.judged.visible || p.kept()
	}
	if visible {
		e.withhold(b)
	}
	e.doubt()
	undecided := 0
	for i := range e.pairs {
		p := &e.pairs[i]
		j := p.judged
		e.stats.Relations++
		if p.second.Job != nil {
			p.second.Job.count(j.class, e.second)
		}
		if j.class == Right {
			continue
		}
		if j.class == Undecided {
			undecided++
		}
		p.verdict = int32(len(b.Verdicts))
		b.Verdicts = append(b.Verdicts, Verdict{
			Row: p.row, First: int(p.a), Second: int(p.b), FirstRef: p.first.Ref, SecondRef: p.second.Ref,
			Class: j.class, Magnitude: j.magnitude,
		})
	}
	if undecided > 0 {
		e.order(b, undecided)
	}
}

// kept reports whether the clock's correction was withheld when the other one of
// the trace was given out.
func (p *pairing) kept() bool {
	return p.was != nil && p.was.State == Withheld && p.first.Clock == p.second.Clock && p.first.Ref.Trace == p.second.Ref.Trace
}

// of judges one relation.
func (e *Engine) of(b *Batch, p *pairing) judgement {
	first, second := p.first.At(p.row.From), p.second.At(p.row.To)
	raw := second - first
	x, steppedX := p.shift(b, p.a)
	y, steppedY := p.shift(b, p.b)
	shown := raw + y - x
	if raw >= 0 && shown >= 0 && p.clearly(shown, steppedX || steppedY) {
		return judgement{}
	}
	return e.exactly(b, p, first, second, raw, shown)
}

// shift is by how much one of both is moved, or was, and whether its clock was stepped
// near it.
func (p *pairing) shift(b *Batch, at int32) (by int64, stepped bool) {
	if at < 0 {
		return p.was.Shift, p.was.Stepped
	}
	return b.Places[at].Shift, b.Places[at].Stepped
}

// out is how one of both is given out, or was.
func (p *pairing) out(b *Batch, at int32) emitted {
	if at < 0 {
		return *p.was
	}
	return b.Places[at].emitted()
}

// rateShift is the binary logarithm of the least rate, about 1e-3, at which no
// clock departs from another while a span lasts.
const rateShift = 10

// clearly reports whether what is right by where the starts stand is so by where
// the ends do, without asking the timeline: they cannot have drifted so far since.
func (p *pairing) clearly(shown int64, stepped bool) bool {
	if p.first.Clock == p.second.Clock && p.first.Epoch == p.second.Epoch {
		return true
	}
	margin := int64(0)
	if p.row.From == Finish {
		margin += max(0, p.first.Until-p.first.Begin) >> rateShift
	}
	if p.row.To == Finish {
		margin += max(0, p.second.Until-p.second.Begin) >> rateShift
	}
	return shown >= margin && !stepped
}

// exactly judges a relation by where each end stands, and by where it is shown: a
// span is moved as a whole, by where its start stands.
func (e *Engine) exactly(b *Batch, p *pairing, first, second, raw, shown int64) judgement {
	x, y := e.stands(b, p, p.first, p.a, p.row.From, first), e.stands(b, p, p.second, p.b, p.row.To, second)
	corrected := raw + y.Shift - x.Shift
	if raw >= 0 && corrected >= 0 && shown >= 0 {
		return judgement{}
	}
	j := judgement{class: Undecided, magnitude: max(-corrected, 0)}
	if corrected >= 0 {
		j.magnitude = max(-raw, -shown)
	}
	if p.row.Usual {
		return j
	}
	bound, ok := e.bound(p, first, second, &x, &y, corrected)
	switch {
	case raw >= 0:
		// What stands on no common timeline cannot be compared: who moves one of
		// both must not make a fault.
		if shown < 0 && (!ok || shown < -p.bore(&x, &y, bound)) || p.was == nil && ok && corrected < -bound {
			j.class, j.visible = Introduced, true
			j.magnitude = max(-shown, -corrected)
		}
	case !ok:
	case corrected >= bound:
		j.class, j.magnitude = Artefact, -raw
	case corrected < -bound:
		j.class = Violation
	}
	return j
}

// bore is the bound within which two spans are shown: those that they bear, where one
// was given out before with what was known then.
func (p *pairing) bore(x, y *Place, bound int64) int64 {
	if p.was == nil || !p.was.Bounded || p.first.Clock == p.second.Clock {
		return bound
	}
	now := x.Bound
	if p.a < 0 {
		now = y.Bound
	}
	return min(p.was.Bound, mostBound) + min(now, mostBound)
}

// stands is where an end stands.
func (e *Engine) stands(b *Batch, p *pairing, s *Span, at int32, end End, stamp int64) Place {
	switch {
	case at < 0 && p.was.State != Placed:
		return Place{State: p.was.State, Shift: p.was.Shift}
	case at >= 0 && (end == Start || b.Places[at].State != Placed):
		return b.Places[at]
	}
	q := e.placeAt(s.Clock, stamp, s.Epoch)
	if q.State != Placed {
		q.Shift = 0
		if at < 0 {
			q.Shift = p.was.Shift
		}
	}
	return q
}

// mostBound, 36 years, says nothing, and two of them can be added.
const mostBound = 1 << 60

// bound is by how much the comparison of two ends can be wrong; false where
// nothing says.
func (e *Engine) bound(p *pairing, first, second int64, x, y *Place, corrected int64) (int64, bool) {
	if p.first.Clock == p.second.Clock {
		return coarse(first, second, true), !x.Stepped && !y.Stepped
	}
	if x.State != Placed || y.State != Placed || x.Timeline != y.Timeline || !x.Bounded || !y.Bounded || max(x.Bound, y.Bound) > mostBound {
		return 0, false
	}
	rounding := coarse(first, second, false)
	// The sum of both bounds is never less than that of the pair, and cheaper.
	if sum := x.Bound + y.Bound + rounding; corrected >= sum || corrected < -sum {
		return sum, true
	}
	b, ok := e.timeline.Between(p.first.Clock.ID, first-p.first.Epoch, p.second.Clock.ID, second-p.second.Epoch)
	return b + rounding, ok
}

// order says of the undecided relations whether other messages order their ends,
// trace by trace.
func (e *Engine) order(b *Batch, undecided int) {
	o := &e.orders
	o.begin(len(b.Spans), undecided)
	for i := range e.pairs {
		if p := &e.pairs[i]; p.judged.class == Undecided {
			o.want(p.second.Ref.Trace)
		}
	}
	for i := range e.pairs {
		o.file(&e.pairs[i], int32(i))
	}
	for i := range o.traces {
		e.orderTrace(b, &o.traces[i])
	}
}

// orderTrace answers for the undecided relations of one trace. The vector times are
// computed where a chain is possible at all.
func (e *Engine) orderTrace(b *Batch, t *traceParts) {
	o := &e.orders
	solved, tooBig := false, false
	o.chains.gather(e.pairs, t.pairs)
	for _, j := range t.verdicts {
		v := &b.Verdicts[j.verdict]
		if !o.chains.possible(&e.pairs[j.pair], j.pair) || !o.chains.leads(e.pairs, t.pairs, j.pair) {
			v.OrderKnown = true
			continue
		}
		if !solved && !tooBig {
			solved = o.solve(e.pairs, t.pairs)
			tooBig = !solved
		}
		if v.OrderKnown = solved; solved {
			v.Ordered = o.Before(Event{o.numberOf(int32(v.First), v.FirstRef), v.Row.From}, Event{o.numberOf(int32(v.Second), v.SecondRef), v.Row.To})
		}
	}
	if tooBig {
		e.stats.OrderTooBig++
	}
}
