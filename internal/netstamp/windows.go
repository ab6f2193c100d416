package netstamp

import (
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	window = int64(2 * time.Second)
	// maxReadings holds a window of readings thin apart.
	maxReadings = 2048
	// maxEdges is what waits to be fetched: a minute's windows, and some more for
	// events.
	maxEdges = 64
)

// windows gathers readings into windows of raw and makes edges of them.
type windows struct {
	nodes   []node
	stepped bool // the readings follow an event
	done    []model.ClockEdge
}

// add takes a reading, and returns how many edges it dropped to make room.
func (w *windows) add(n node) (dropped int64) {
	if len(w.nodes) > 0 {
		first := w.nodes[0]
		if n.event || n.Raw < first.Raw || floor(n.Raw) != floor(first.Raw) || len(w.nodes) == maxReadings {
			w.emit(w.nodes)
			w.nodes, w.stepped = w.nodes[:0], false
		}
	}
	if n.event {
		w.stepped = true
	}
	w.nodes = append(w.nodes, n)
	if over := len(w.done) - maxEdges; over > 0 {
		w.done = append(w.done[:0], w.done[over:]...)
		return int64(over)
	}
	return 0
}

func floor(raw int64) int64 {
	if raw < 0 {
		raw -= window - 1
	}
	return raw / window
}

// emit makes the edges of readings, split where one line does not fit.
func (w *windows) emit(nodes []node) {
	if len(w.done) > 2*maxEdges {
		return // more bends than any clock has; add drops the rest
	}
	if i, bent := bend(nodes); bent {
		w.emit(nodes[:i+1])
		w.stepped = true
		w.emit(nodes[i:])
		return
	}
	w.done = append(w.done, edge(nodes, w.stepped))
	w.stepped = false
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

// edge is what readings on one line say. At is one of the readings, so that the
// bound of the offset is that reading's own and rests on no assumption. What the span
// reaches to either side of it lies between the first and the last: beyond, the line
// may have bent.
func edge(nodes []node, stepped bool) model.ClockEdge {
	center := central(nodes)
	f := fit(nodes, center)
	width := center.Width
	e := model.ClockEdge{
		At:      center.Raw,
		Span:    2 * min(center.Raw-nodes[0].Raw, nodes[len(nodes)-1].Raw-center.Raw),
		Lower:   center.offset() - width,
		Upper:   center.offset() + width,
		Sigma:   float64(width) / math.Sqrt(3), // as if evenly distributed
		Drift:   f.rate,
		Samples: int64(len(nodes)),
		Source:  model.EdgePair,
		Stamps:  model.StampKernel,
		Stepped: stepped,
	}
	e.Offset = min(max(center.offset()+int64(math.Round(f.offset)), e.Lower), e.Upper)
	e.DriftBound = driftBound(nodes, center, f, e.Span)
	return e
}

// central returns the narrowest reading of those near the middle, where the edge is
// centred.
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
