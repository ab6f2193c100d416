// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	window = int64(2 * time.Second)
	// stride is about how far apart the readings are that an edge rests on: the widths of
	// two that are close leave open what the rate is between them.
	stride = int64(ReadEvery)
	// maxReadings holds a window and the longest time between two edges.
	maxReadings = 4096
	// maxEdges is what waits to be fetched: a minute's at the usual pace, and some more
	// for events.
	maxEdges = 128
)

// windows gathers readings and makes an edge of them every so often. Where that is more
// often than a window is long, an edge reaches back over those before it. Of a bend or an
// event is told once; later edges do not reach over it.
type windows struct {
	every   int64  // of raw from one edge to the next; 0: none are made
	nodes   []node // of the last window, some stride apart
	told    int64  // reading of raw up to which edges have told
	stepped bool   // the readings follow an event that no edge has told of
	done    []model.ClockEdge
}

// add takes a reading, and returns how many edges it dropped to make room.
func (w *windows) add(n node) (dropped int64) {
	if w.every == 0 {
		return 0
	}
	if k := len(w.nodes); k > 0 && (n.event || n.Raw <= w.nodes[k-1].Raw || k == maxReadings) {
		if w.nodes[k-1].Raw > w.told || k == 1 {
			w.emit(sharp(w.recent()))
		}
		w.nodes, w.stepped = w.nodes[:0], false
	}
	if n.event {
		w.stepped = true
	}
	if len(w.nodes) == 0 {
		w.told = n.Raw
	}
	w.keep(n)
	if floor(n.Raw, w.every) != floor(w.told, w.every) {
		w.tell()
		w.told = n.Raw // which may have been left out for a narrower one
	}
	if over := len(w.done) - maxEdges; over > 0 {
		w.done = append(w.done[:0], w.done[over:]...)
		return int64(over)
	}
	return 0
}

func floor(raw, length int64) int64 {
	if raw < 0 {
		raw -= length - 1
	}
	return raw / length
}

// keep adds a reading, or leaves the narrower one of two that are close. The first one
// stays, unless it is very wide: the time of the others counts from it.
func (w *windows) keep(n node) {
	k := len(w.nodes)
	switch {
	case k == 0 || n.Raw-w.nodes[k-1].Raw >= stride/2:
		w.nodes = append(w.nodes, n)
	case k == 1 && muchWider*n.Width < w.nodes[0].Width, k > 1 && n.Width < w.nodes[k-1].Width:
		w.nodes[k-1] = n
	}
}

// tell makes an edge of what came since the last one, and of as much before it as a
// window has.
func (w *windows) tell() {
	recent := sharp(w.recent())
	straight := w.emit(recent)
	w.nodes = append(w.nodes[:0], recent[len(recent)-straight:]...)
}

// recent are the readings of the next edge.
func (w *windows) recent() []node {
	last := w.nodes[len(w.nodes)-1].Raw
	from := 0
	for from+2 < len(w.nodes) && w.nodes[from+1].Raw <= w.told && last-w.nodes[from+1].Raw >= window {
		from++
	}
	return w.nodes[from:]
}

// muchWider readings than usual are those during which the program was interrupted.
const muchWider = 4

// sharp leaves out readings that are much wider than most, where one that is not is near.
func sharp(nodes []node) []node {
	widths := make([]int64, len(nodes))
	for i, n := range nodes {
		widths[i] = n.Width
	}
	slices.Sort(widths)
	most := muchWider * stats.MedianHigh(widths)
	kept := make([]node, 0, len(nodes))
	for _, n := range nodes {
		if n.Width <= most || len(kept) == 0 || n.Raw-kept[len(kept)-1].Raw > 3*stride {
			kept = append(kept, n)
		}
	}
	if len(kept) > 1 && kept[0].Width > most && kept[1].Raw-kept[0].Raw <= 3*stride {
		kept = kept[1:]
	}
	return kept
}

// emit makes the edges of readings, split where one line does not fit, and returns how
// many readings the last of them has.
func (w *windows) emit(nodes []node) (last int) {
	if len(w.done) > 2*maxEdges {
		return len(nodes) // more bends than any clock has; add drops the rest
	}
	if i, bent := bend(nodes); bent {
		w.emit(nodes[:i+1])
		w.stepped = true
		return w.emit(nodes[i:])
	}
	w.done = append(w.done, edge(nodes, w.stepped))
	w.stepped = false
	return len(nodes)
}

// bend returns the reading that is farthest from the line between the first and
// the last, and whether it is off by more than the readings' widths explain.
func bend(nodes []node) (at int, bent bool) {
	if len(nodes) < 3 {
		return 0, false
	}
	first, last := nodes[0], nodes[len(nodes)-1]
	rate := last.rateSince(first.Pair)
	worst := 0.0
	for i, n := range nodes[1 : len(nodes)-1] {
		off := math.Abs(float64(n.offset()-first.offset()) - rate*float64(n.Raw-first.Raw))
		off -= float64(n.Width + max(first.Width, last.Width))
		if off > worst {
			at, worst = i+1, off
		}
	}
	return at, worst > 0
}

// edge is what readings on one line say. Lower and Upper hold from the first reading to
// the last, if moved by Drift, and At is the middle.
func edge(nodes []node, stepped bool) model.ClockEdge {
	center := central(nodes)
	f := fit(nodes, center)
	first, last := nodes[0].Raw, nodes[len(nodes)-1].Raw
	e := model.ClockEdge{
		At:      first + (last-first)/2,
		Span:    last - first,
		Sigma:   float64(center.Width) / math.Sqrt(3), // as if evenly distributed
		Drift:   f.rate,
		Samples: int64(len(nodes)),
		Source:  model.EdgePair,
		Stamps:  model.StampKernel,
		Stepped: stepped,
	}
	e.Offset = center.offset() + int64(math.Round(f.offset+f.rate*float64(e.At-center.Raw)))
	half := int64(math.Ceil(deviation(nodes, center, f))) + 1
	e.Lower, e.Upper = e.Offset-half, e.Offset+half
	e.DriftBound = driftBound(nodes, center, f, e.Span)
	return e
}

// deviation is how far realtime can have been from the line: at a reading by what that
// one is off and wide; and between two by what a change of rate hides, as it does in the
// corner of two lines that meet there. The corner is no deeper than either line leads
// from where it is seen, to the readings before or those after; of both the steeper one
// counts, so that one of them may have a change of its own.
func deviation(nodes []node, center node, f line) float64 {
	off := func(n node) float64 {
		return float64(n.offset()-center.offset()) - f.offset - f.rate*float64(n.Raw-center.Raw)
	}
	slope := func(i int) float64 { // from a reading to the next, at most; 0 where none is
		if i < 0 || i+1 >= len(nodes) {
			return 0
		}
		a, b := nodes[i], nodes[i+1]
		return (math.Abs(off(b)-off(a)) + float64(a.Width+b.Width)) / float64(b.Raw-a.Raw)
	}
	worst := 0.0
	for i, n := range nodes {
		corner := 0.0
		if i+1 < len(nodes) {
			steep := MaxRate / 2
			if len(nodes) > 2 {
				steep = min(steep, max(slope(i-1), slope(i+1)))
			}
			corner = steep * float64(nodes[i+1].Raw-n.Raw)
		}
		far := math.Abs(off(n)) + float64(n.Width)
		if i+1 < len(nodes) {
			far = max(far, math.Abs(off(nodes[i+1]))+float64(nodes[i+1].Width))
		}
		worst = max(worst, far+corner)
	}
	return worst
}

// central returns the narrowest reading of those near the middle, from which the line
// is drawn.
func central(nodes []node) node {
	first, last := nodes[0].Raw, nodes[len(nodes)-1].Raw
	middle, near := first+(last-first)/2, (last-first)/20
	best := nodes[0]
	for _, n := range nodes[1:] {
		d, least := magnitude(n.Raw-middle), magnitude(best.Raw-middle)
		if d <= near && least <= near && n.Width < best.Width || d < least && least > near {
			best = n
		}
	}
	return best
}

// line is an offset beyond center's, and a rate.
type line struct{ offset, rate float64 }

// fit is the line of least squares, weighted by width.
func fit(nodes []node, center node) line {
	var w, x, y, xx, xy float64
	for _, n := range nodes {
		weight := 1 / (float64(n.Width) * float64(n.Width))
		dx, dy := float64(n.Raw-center.Raw), float64(n.offset()-center.offset())
		w, x, y = w+weight, x+weight*dx, y+weight*dy
		xx, xy = xx+weight*dx*dx, xy+weight*dx*dy
	}
	d := w*xx - x*x
	if len(nodes) < 2 || d <= 0 {
		return line{}
	}
	rate := (w*xy - x*y) / d
	return line{(y - rate*x) / w, rate}
}

// driftBound is the least deviation from the rate that reaches from center to
// every narrow reading of the outer half, whole width and all. 0 with a single
// reading.
func driftBound(nodes []node, center node, f line, span int64) float64 {
	outer := func(n node) bool { return n.Raw != center.Raw && 4*magnitude(n.Raw-center.Raw) >= span }
	narrowest := int64(math.MaxInt64)
	for _, n := range nodes {
		if outer(n) {
			narrowest = min(narrowest, n.Width)
		}
	}
	bound := 0.0
	for _, n := range nodes {
		if outer(n) && n.Width/2 <= narrowest {
			dx := float64(n.Raw - center.Raw)
			off := math.Abs(float64(n.offset()-center.offset()) - f.rate*dx)
			bound = max(bound, (off+float64(n.Width+center.Width))/math.Abs(dx))
		}
	}
	return bound
}
