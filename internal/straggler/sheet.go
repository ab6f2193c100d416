// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// sheetDrawer turns an analysed step into a sheet. Everything that it fills is used
// again for the next step.
type sheetDrawer struct {
	sheet  judge.Sheet
	places placeTable
	cells  []judge.Cell // of all rows
	rows   []int        // where each row's cells end
	slots  []int32      // by place, its cell in the present row; -1 for none
	timed  []timed      // operations of the present row by place
	sizes  []int32      // of the groups of timed
	by     []float32
	passes microbatches
	busy   spans
	swaps  exchanges
	links  linkDrawer
}

// timed is how long one operation ran.
type timed struct {
	cell    int32
	seconds float32
}

// drawSheet adds what a step showed to what is judged.
func (j *job) drawSheet(rec *record, views []*rankView, meetings []*meeting) {
	if j.sheets == nil {
		return
	}
	d := &j.sheet
	d.sheet.Step, d.sheet.World = rec.step, int(j.world)
	d.sheet.Seconds = seconds(rec.end - rec.start)
	d.sheet.Rows = slices.Grow(d.sheet.Rows[:0], len(views))
	d.cells, d.rows = d.cells[:0], d.rows[:0]
	for i, v := range views {
		d.sheet.Rows = append(d.sheet.Rows, d.row(v, &rec.ranks[i], j.seat(v)))
		d.rows = append(d.rows, len(d.cells))
	}
	from := 0
	for i, to := range d.rows {
		d.sheet.Rows[i].Cells = d.cells[from:to:to]
		from = to
	}
	d.sheet.Links = d.links.draw(rec, views, meetings)
	j.sheets(&d.sheet)
	for i := range rec.ranks {
		r := &rec.ranks[i]
		r.beyond, r.judged = j.judgement.Excess(rec.step, r.rank.Rank)
	}
}

// placeOf tells what a number of a sheet stands for.
func (j *job) placeOf(id judge.PlaceID) judge.Place { return j.sheet.places.place(id, j.keys) }

func seconds(ns int64) float64 { return float64(ns) * 1e-9 }

// seat returns the rank's place in the job. It is made anew where the rank moved.
func (j *job) seat(v *rankView) *judge.Seat {
	p := &v.rank.Parallel
	at := func(known bool, x int64) int32 {
		if !known || x < 0 || x > math.MaxInt32 {
			return -1
		}
		return int32(x)
	}
	s := judge.Seat{
		Rank: v.rank.Rank, Host: v.rank.HostName,
		DP: at(p.DP.OK, p.DP.V), PP: at(p.PP.OK, p.PP.V), TP: at(p.TP.OK, p.TP.V), CP: at(p.CP.OK, p.CP.V), EP: at(p.EP.OK, p.EP.V),
	}
	if old := j.seats[s.Rank]; old != nil && *old == s {
		return old
	}
	moved := s
	j.seats[s.Rank] = &moved
	return &moved
}

// row draws one rank's share.
func (d *sheetDrawer) row(v *rankView, r *rankRecord, seat *judge.Seat) judge.Row {
	from := len(d.cells)
	d.own(v, from)
	d.durations(v, from)
	for i := from; i < len(d.cells); i++ {
		d.slots[d.cells[i].Place] = -1
	}
	row := judge.Row{
		Seat: seat, Role: uint64(r.role), Seconds: float32(seconds(v.end - v.start)),
		Idle: float32(seconds(v.parts[partLaunchIdle] + v.parts[partDependencyIdle])), Undivided: v.unlaunched, Hollow: v.undivided > 0,
		Lost: float32(v.lostShare()), Caused: float32(seconds(r.caused)), Suffered: float32(seconds(v.suffered)),
	}
	row.Correlation, row.Variation = d.passes.over(d.cells[from:], d.sizes, d.by)
	if v.dark && r.weighed {
		row.Given = true
		row.Excess[judge.Compute] = float32(seconds(r.excess.compute))
		row.Excess[judge.Overlapped] = float32(seconds(r.excess.overlapped))
		row.Excess[judge.Host] = float32(seconds(r.excess.idle))
	}
	return row
}

// own fills the row's cells with exclusive time.
func (d *sheetDrawer) own(v *rankView, from int) {
	for i := range v.pieces {
		p := &v.pieces[i]
		ns := p.end - p.start
		switch p.part {
		case partCompute:
			d.cell(judge.Compute, p.key, byContext, from).Own += float32(seconds(ns))
		case partOverlapped:
			d.cell(judge.Overlapped, p.key, byContext, from).Own += float32(seconds(ns))
		case partCopy:
			d.cell(judge.Copy, p.key, byContext, from).Own += float32(seconds(ns))
		case partLaunchIdle:
			if v.holed(p.start, p.end) {
				continue
			}
			v.scope.share(p.start, p.end, func(in *piece, ns int64) {
				c := d.cell(judge.Host, in.key, in.cause, from)
				s := float32(seconds(ns))
				c.N++
				c.Own += s
				c.Longest = max(c.Longest, s)
			})
		}
	}
}

// cell returns the present row's cell of a place. The row's cells begin at from.
func (d *sheetDrawer) cell(kind judge.Kind, key uint32, why cause, from int) *judge.Cell {
	id := d.places.id(kind, key, why)
	for int(id) >= len(d.slots) {
		d.slots = append(d.slots, -1)
	}
	if at := d.slots[id]; at >= 0 {
		return &d.cells[from+int(at)]
	}
	d.slots[id] = int32(len(d.cells) - from)
	d.cells = append(d.cells, judge.Cell{Place: id})
	return &d.cells[len(d.cells)-1]
}

// besideShare is how much of an operation must have run beside a transfer for the
// whole to count as slowed by it.
const besideShare = 0.05

// durations fills how many operations the row's cells hold, how long they ran, and
// how much work they did.
func (d *sheetDrawer) durations(v *rankView, from int) {
	d.timed, d.passes.ops = d.timed[:0], d.passes.ops[:0]
	busy := &d.busy
	v.besides(busy)
	d.swaps.take(v)
	for i := range v.acts {
		a := &v.acts[i]
		if a.start < v.start || a.start >= v.end || (a.kind != actCompute && a.kind != actCopy) {
			continue
		}
		kind := judge.Copy
		if a.kind == actCompute {
			kind = judge.Compute
			if long := a.end - a.start; float64(busy.beside(a.start, a.end)) > besideShare*float64(long) {
				kind = judge.Overlapped
			}
		}
		c := d.cell(kind, a.key, byContext, from)
		s := float32(seconds(a.end - a.start))
		c.N++
		c.Longest = max(c.Longest, s)
		if a.work > 0 {
			c.Work += float64(a.work)
		} else {
			c.Work += v.keys.ops[a.key].grid
			if bytes, ok := d.swaps.between(a.start, a.end); ok {
				c.Between++
				c.Sent += float64(bytes)
			}
		}
		d.timed = append(d.timed, timed{cell: d.slots[c.Place], seconds: s})
		d.passes.add(v, a, d.slots[c.Place], s)
	}
	d.medians(from)
}

// medians fills the typical durations of the row's cells.
func (d *sheetDrawer) medians(from int) {
	cells := d.cells[from:]
	d.sizes = slices.Grow(d.sizes[:0], len(cells)+1)[:len(cells)+1]
	clear(d.sizes)
	for _, t := range d.timed {
		d.sizes[t.cell+1]++
	}
	for i := 1; i < len(d.sizes); i++ {
		d.sizes[i] += d.sizes[i-1]
	}
	d.by = slices.Grow(d.by[:0], len(d.timed))[:len(d.timed)]
	for _, t := range d.timed {
		d.by[d.sizes[t.cell]] = t.seconds
		d.sizes[t.cell]++
	}
	begin := int32(0)
	for i := range cells {
		if end := d.sizes[i]; end > begin {
			cells[i].Typical = stats.SelectMedian(d.by[begin:end])
			begin = end
		}
	}
}

// spans are the times of a rank's transfers, merged and in order, with how much there
// was before each.
type spans struct {
	of     []span
	before []int64
	at     int // the first that is not over
}

type span struct{ start, end int64 }

// besides fills when the rank communicated, waits and all: a collective that waits takes
// room on the device as one that transfers does.
func (v *rankView) besides(s *spans) {
	s.of, s.before, s.at = s.of[:0], s.before[:0], 0
	for i := range v.comms {
		if op := &v.comms[i]; op.end > op.start {
			s.of = append(s.of, span{op.start, op.end})
		}
	}
	s.of = merge(s.of)
	sum := int64(0)
	for _, x := range s.of {
		s.before = append(s.before, sum)
		sum += x.end - x.start
	}
}

// until returns how much communication there was until t.
func (s *spans) until(t int64) int64 {
	i, found := slices.BinarySearchFunc(s.of, t, func(x span, t int64) int { return cmp.Compare(x.start, t) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return s.before[i] + max(0, min(t, s.of[i].end)-s.of[i].start)
}

// beside returns how much of the time from start to end there was communication.
// It is asked in order of start.
func (s *spans) beside(start, end int64) int64 {
	for s.at < len(s.of) && s.of[s.at].end <= start {
		s.at++
	}
	if s.at == len(s.of) || s.of[s.at].start >= end {
		return 0
	}
	return s.until(end) - s.until(start)
}
