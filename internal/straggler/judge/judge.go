// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Judge keeps a compact history of a job's steps, and judges it. It is not safe for
// concurrent use.
type Judge struct {
	cfg     Config
	places  placeTable
	comp    comparer
	history history
	links   linkHistory
	stats   Stats

	rows  []*Row
	seen  map[int64]struct{}
	v     []float64
	order []int32
	swept uint32 // the last frame in which ranks that left were looked for
}

// Judgement is what a history amounts to.
type Judgement struct {
	Conclusions []Conclusion // the largest share first
	Abstained   *Abstention  // the strongest of those that were not named
	Looks       int          // for which chances are corrected
	Memory      float64      // correlation of neighbouring steps of what ranks exceed their peers by
}

// New returns a judge. It asks places for what a cell's place is, once for each.
func New(cfg Config, places func(PlaceID) Place) *Judge {
	cfg.setDefaults()
	j := &Judge{cfg: cfg, history: newHistory(cfg.Window), seen: map[int64]struct{}{}}
	j.places = newPlaceTable(places, cfg.MaxPlaces)
	j.comp.places = &j.places
	j.links.init(cfg)
	return j
}

// Stats returns what was refused or forgotten.
func (j *Judge) Stats() Stats {
	s := j.stats
	s.LinksRefused += j.links.refused
	return s
}

// mostSeconds is longer than any step or operation: a week.
const mostSeconds = 7 * 24 * 3600

func sane(x float64) bool { return x >= 0 && x <= mostSeconds }

func amount(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// Add takes a step. It keeps nothing of the sheet.
func (j *Judge) Add(s *Sheet) {
	if !sane(s.Seconds) || s.Seconds == 0 {
		j.stats.StepsRefused++
		return
	}
	j.accept(s)
	f := j.history.begin()
	f.step, f.seconds, f.ranks, f.lost = s.Step, s.Seconds, len(j.rows), lost(j.rows)
	j.comp.lossy = j.history.lost() > sameAmount
	out := j.comp.compare(j.rows)
	j.order = grown(j.order, len(j.rows))
	for i, r := range j.rows {
		j.order[i] = j.meet(f, r, &out[i])
	}
	alone := j.comp.common(out) < 2
	for i := range out {
		j.learn(j.order[i], &out[i], alone)
		out[i].hollow = j.rows[i].Hollow
		j.keep(j.order[i], f, &out[i])
	}
	for _, d := range j.comp.details {
		if n := j.order[d.row]; n >= 0 {
			d.row = n
			f.details = append(f.details, d)
		}
	}
	j.summarise(f, out)
	f.stages = j.comp.stageKernels(f.stages)
	moved := j.links.add(s, f.number)
	j.history.remember(longStep{
		step: s.Step, seconds: float32(s.Seconds), device: float32(f.device), host: float32(f.host), waited: float32(moved),
	})
	if j.history.count%uint32(j.cfg.Window) == 0 {
		j.stats.Forgotten += j.history.forget()
	}
}

// accept fills the rows that can be judged.
func (j *Judge) accept(s *Sheet) {
	j.rows = j.rows[:0]
	clear(j.seen)
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Seat == nil {
			j.stats.RowsRefused++
			continue
		}
		if _, twice := j.seen[r.Rank]; twice || len(j.rows) >= j.cfg.MaxRanks || !saneRow(r) {
			j.stats.RowsRefused++
			continue
		}
		j.seen[r.Rank] = struct{}{}
		j.rows = append(j.rows, j.washed(r))
		j.stats.Rows++
	}
}

func saneRow(r *Row) bool {
	for _, x := range r.Excess {
		if !sane(math.Abs(float64(x))) {
			return false
		}
	}
	return sane(float64(r.Seconds)) && sane(float64(r.Idle)) && sane(float64(r.Lost))
}

// washed returns the row without cells that cannot be.
func (j *Judge) washed(r *Row) *Row {
	bad := func(c *Cell) bool {
		if _, ok := j.places.info(c.Place); !ok {
			j.stats.PlacesRefused++
			return true
		}
		if !sane(float64(c.Own)) || !sane(float64(c.Typical)) || !sane(float64(c.Longest)) || !amount(c.Work) || !amount(c.Sent) {
			j.stats.CellsRefused++
			return true
		}
		return false
	}
	for i := range r.Cells {
		if bad(&r.Cells[i]) {
			clean := *r
			clean.Cells = slices.Clone(r.Cells[:i])
			for k := i + 1; k < len(r.Cells); k++ {
				if !bad(&r.Cells[k]) {
					clean.Cells = append(clean.Cells, r.Cells[k])
				}
			}
			return &clean
		}
	}
	return r
}

// meet notes that a rank was seen, and compares it with its own past where it has no
// peers. It returns the rank's number, -1 where there are too many ranks.
func (j *Judge) meet(f *frame, r *Row, o *outcome) int32 {
	h := &j.history
	n, ok := h.number(r.Seat, j.cfg.MaxRanks)
	if !ok && j.swept != f.number {
		// Those that left make room, once a step.
		j.swept = f.number
		j.stats.Forgotten += h.forget()
		n, ok = h.number(r.Seat, j.cfg.MaxRanks)
	}
	if !ok {
		j.stats.RowsRefused++
		return -1
	}
	m := &h.members[n]
	m.last, m.device, m.host, m.cohort = f.number, o.basis, o.host, o.cohort
	if o.lonely && !o.given && !o.host.pair {
		j.ownHistory(n, f, r, o)
	}
	return n
}

// keep enters a row's outcome into the history.
func (j *Judge) keep(n int32, f *frame, o *outcome) {
	if n < 0 {
		return
	}
	h := &j.history
	if o.past.known {
		o.base = max(leastBase, o.all()-o.net())
	}
	e := entry{
		seen: f.number + 1, work: float32(o.work), choice: float32(o.choice), device: float32(o.device),
		own: float32(o.all()), base: float32(o.base), pause: float32(o.pause),
		unknown: float32(o.unknown), fed: float32(o.fed),
	}
	for k, x := range o.excess {
		e.excess[k] = float32(x)
	}
	if o.compared {
		e.flags |= entryCompared
	}
	if o.given {
		e.flags |= entryGiven
	}
	if o.hollow {
		e.flags |= entryHollow
	}
	h.entries[n][int(f.number)%h.window] = e
	if n < passRanks {
		h.passes[int(n)*h.window+int(f.number)%h.window] = o.passes.over(max(o.base, leastBase))
	}
}

// Excess returns the rank's own time beyond its peers' for the same work, by whatever
// kernels, in the step that was added last, s; false where that is another step, or the
// rank was compared with nobody.
func (j *Judge) Excess(step, rank int64) (float32, bool) {
	h := &j.history
	n, ok := h.index[rank]
	if !ok || h.count == 0 {
		return 0, false
	}
	f := &h.frames[int(h.count-1)%h.window]
	e := h.at(n, f)
	if f.step != step || e == nil || e.flags&entryCompared == 0 {
		return 0, false
	}
	return float32(e.net() + float64(e.choice)), true
}

// summarise fills the frame's numbers about all ranks.
func (j *Judge) summarise(f *frame, out []outcome) {
	of := func(x func(i int) float64) float64 {
		j.v = j.v[:0]
		for i := range out {
			if y := x(i); !math.IsNaN(y) {
				j.v = append(j.v, y)
			}
		}
		if len(j.v) == 0 {
			return math.NaN()
		}
		return stats.SelectMedian(j.v)
	}
	f.device = zeroIfNaN(of(func(i int) float64 { return out[i].device }))
	f.host = zeroIfNaN(of(func(i int) float64 { return out[i].own[Host] }))
	f.correlation = of(func(i int) float64 { return float64(j.rows[i].Correlation) })
	f.variation = of(func(i int) float64 { return float64(j.rows[i].Variation) })
}

func zeroIfNaN(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}
