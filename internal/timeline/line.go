// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"slices"
	"sort"
)

// line is a function from readings of one clock to those of another: connected,
// made of straight pieces, and increasing.
type line struct {
	knots []knot
	// settled is the reading at which the newest model holds. What stands at readings
	// up to it does not move any more.
	settled int64
	// pruned: pieces before the first knot were left out.
	pruned bool
}

// knot begins a piece: at x the other clock reads x + off, and from there on gains
// slope per ns. The first piece also holds before its knot.
type knot struct {
	x, off int64
	slope  float64
}

func (k *knot) at(x int64) int64 { return k.off + int64(math.Round(k.slope*float64(x-k.x))) }

const (
	// catchUp is in how many ns a line meets a new model that begins before what was
	// placed already. What the first messages of two clocks told errs by a tenth of a
	// ms: 0.1 s of it bends durations by 0.1 %, and every span until then errs.
	catchUp = int64(1e8)
	// bendSlope is how steeply a line is bent towards a model, beside the model's own
	// drift, and leastSlope what keeps it increasing in any case.
	bendSlope  = 0.4
	leastSlope = -0.5
	// longestCatchUp bounds how long a line is bent: 11 days.
	longestCatchUp = 1e15
)

func (l *line) piece(x int64) *knot {
	i := len(l.knots) - 1 // most readings are of the last seconds
	for i > 0 && l.knots[i].x > x {
		i--
	}
	return &l.knots[i]
}

// offset is what is added to a reading.
func (l *line) offset(x int64) int64 { return l.piece(x).at(x) }

// inverse returns the reading of which the other clock reads y, or the next one.
func (l *line) inverse(y int64) int64 {
	x := y - l.offset(y)
	for range 8 {
		x = y - l.offset(x)
	}
	return x
}

// follow makes the line meet a model, which adds offset at reading at and drift per
// ns from there, without moving what stands at readings up to frozen.
func (l *line) follow(at, offset int64, drift float64, frozen int64, limit int) {
	model := knot{x: at, off: offset, slope: drift}
	if len(l.knots) == 0 {
		l.knots, l.settled = []knot{model}, at
		return
	}
	from := l.cut(frozen)
	l.settled = max(l.settled, at)
	gap := model.at(from.x) - from.off
	meet := max(at, from.x+bend(gap))
	if at <= from.x {
		meet = max(meet, from.x+catchUp)
	}
	from.slope = max(leastSlope, float64(model.at(meet)-from.off)/float64(meet-from.x))
	l.knots = append(l.knots, from, knot{x: meet, off: from.at(meet), slope: drift})
	l.prune(limit)
}

// bend returns in how many ns a gap is closed.
func bend(gap int64) int64 {
	return int64(min(longestCatchUp, max(1, math.Abs(float64(gap))/bendSlope)))
}

// steer lets the line go on with another slope from frozen on.
func (l *line) steer(frozen int64, slope float64, limit int) {
	from := l.cut(frozen)
	from.slope = slope
	l.knots = append(l.knots, from)
	l.prune(limit)
}

// cut removes what follows the reading up to which nothing may move, and returns a
// knot there.
func (l *line) cut(frozen int64) knot {
	x := max(frozen, l.settled)
	from := knot{x: x, off: l.offset(x)}
	// The first knot stays in any case: its line holds before it too.
	if first := &l.knots[0]; x < first.x {
		*first = knot{x: x, off: from.off, slope: first.slope}
	}
	keep := sort.Search(len(l.knots), func(i int) bool { return l.knots[i].x >= x })
	l.knots = l.knots[:max(keep, 1)]
	return from
}

// prune bounds the knots; the oldest piece that is left also holds before its knot.
func (l *line) prune(limit int) {
	if over := len(l.knots) - limit; over > 0 {
		l.knots, l.pruned = slices.Delete(l.knots, 0, over), true
	}
}
