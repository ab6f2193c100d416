// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Config says what is assumed of both clocks. The zero value takes the defaults.
type Config struct {
	// Window is how often Close is called, and what one estimate covers where
	// nothing changes: 2 s.
	Window time.Duration
	// MaxFit is how far back samples serve the estimate: 32 s.
	MaxFit time.Duration
	// Wander is by how much the relative frequency may change within any Window,
	// all the time and in any number of changes: 0.1 ppm. A crystal without
	// compensation moves by up to 1 ppm/K, and a node by some K a minute when its
	// load comes and goes: 0.03 ppm in 2 s.
	Wander float64
	// MaxDrift is what the relative frequency can be at all: 1e-3. Crystals are
	// within 100 ppm, a kernel's calibration of its counter within 300 more, and
	// NTP slews by 500 (chronyd by more, where a clock is off by much).
	MaxDrift float64
	// Resolution, in ns, is by how much each sample is widened for both stamps: 1.
	Resolution int64
	// Overlap is how much of what the estimate before spoke of one speaks of as well, at
	// most, where exchanges are rare: 0. Pairs learn of the same reading some windows after
	// one another then, and who solves for all clocks joins estimates that speak of one
	// instant. The bounds are those of the wider time.
	Overlap time.Duration
	// MaxSamples is how many samples of one direction are kept between two calls of
	// Close before they are thinned: 8,192.
	MaxSamples int
	// Record, if any, is told of all that the estimator is given, in its order: given to
	// another one it makes the same estimates.
	Record func(Input)
}

// Input is one call of an Estimator's method.
type Input struct {
	Kind        InputKind
	A, B, Width int64 // of Close only A
}

// InputKind names the method.
type InputKind byte

// Methods of an Estimator.
const (
	InputUpper InputKind = iota
	InputLower
	InputClose
)

// Apply gives an estimator what another one was given.
func (i Input) Apply(e *Estimator) []Estimate {
	switch i.Kind {
	case InputUpper:
		e.Upper(i.A, i.B, i.Width)
	case InputLower:
		e.Lower(i.A, i.B, i.Width)
	case InputClose:
		return e.Close(i.A)
	}
	return nil
}

// Defaults of Config.
const (
	DefaultWindow     = 2 * time.Second
	DefaultMaxFit     = 32 * time.Second
	DefaultWander     = 0.1e-6
	DefaultMaxDrift   = 1e-3
	DefaultMaxSamples = 8192
)

func (c Config) withDefaults() Config {
	if c.Window <= 0 {
		c.Window = DefaultWindow
	}
	c.Window = min(max(c.Window, time.Microsecond), time.Hour)
	if c.MaxFit <= 0 {
		c.MaxFit = DefaultMaxFit
	}
	c.MaxFit = min(max(c.MaxFit, 4*c.Window), 64*c.Window)
	c.Overlap = min(max(c.Overlap, 0), 4*c.Window)
	if !(c.Wander > 0 && c.Wander <= 1e-3) {
		c.Wander = DefaultWander
	}
	if !(c.MaxDrift > 0 && c.MaxDrift <= 0.1) {
		c.MaxDrift = DefaultMaxDrift
	}
	if c.Resolution <= 0 {
		c.Resolution = 1
	}
	c.Resolution = min(c.Resolution, maxWidth)
	if c.MaxSamples <= 0 {
		c.MaxSamples = DefaultMaxSamples
	}
	c.MaxSamples = max(c.MaxSamples, 64)
	return c
}

const (
	// maxReading bounds readings and offsets, so that their differences are int64:
	// the year 2116 in Unix ns.
	maxReading = 1<<62 - 1
	// keptFactor times MaxSamples are kept of one direction in all.
	keptFactor = 4
	// maxWidth bounds what a stamp may be uncertain by: an hour.
	maxWidth = int64(time.Hour)
)

// sample says that the offset at Src's reading t is at most v (an upper sample) or
// at least v (a lower one). Width is what v allows for stamps that are wrong.
type sample struct{ t, v, width int64 }

// Stats are an estimator's counters.
type Stats struct {
	Samples  int64 // taken
	Refused  int64 // readings beyond 2^62 or apart by more, widths below 0 or above an hour
	Late     int64 // older than MaxFit before what is already estimated
	Overflow int64 // dropped, since too many were kept and thinning did not help
	Liars    int64 // dropped, since they contradict those before and after them
	Changes  int64 // steps and changes of frequency that the bounds are sure of
	// Contradicted windows had samples that contradict their neighbours throughout.
	Contradicted int64
}

// Estimator estimates the offset of one pair of clocks, Dst's reading less Src's.
// It is not safe for concurrent use.
type Estimator struct {
	finder
	done  int64 // settled up to this reading of Src
	begun bool  // done is set for good
	// refuted is up to where evidence reaches that holds more than one change.
	refuted int64
	// postponed is from where on estimates were left to the next Close.
	postponed int64
	change    int64    // reading of the last change counted
	last      Estimate // the last settled one
	known     bool     // last is set
	late      int64    // refused as too old since the last Close
	noise     [spans]noise
	jumps     recent     // between estimates in a row, where they meet
	turns     []turn     // in their order
	ahead     int64      // a change was seen to come after this reading
	chains    chains     // scratch
	behind    []interval // the last ones that were described, which go on
	fresh     int64      // samples since the last estimates
	quarrel   quarrel
	stats     Stats
}

// New returns an estimator.
func New(cfg Config) *Estimator {
	return &Estimator{finder: finder{cfg: cfg.withDefaults()}, refuted: math.MinInt64, postponed: math.MinInt64, ahead: math.MinInt64}
}

// Stats returns the counters.
func (e *Estimator) Stats() Stats { return e.stats }

// Upper takes a message that left Src when Src read a, and arrived at Dst when Dst
// read b: the offset at a is at most b - a. Width is what both stamps can be wrong
// by, together, in ns.
func (e *Estimator) Upper(a, b, width int64) {
	e.record(InputUpper, a, b, width)
	e.add(&e.upper, a, b, width, 1)
}

// Lower takes a message that left Dst when Dst read b, and arrived at Src when Src
// read a: the offset at a is at least b - a.
func (e *Estimator) Lower(a, b, width int64) {
	e.record(InputLower, a, b, width)
	e.add(&e.lower, a, b, width, -1)
}

func (e *Estimator) record(kind InputKind, a, b, width int64) {
	if e.cfg.Record != nil {
		e.cfg.Record(Input{kind, a, b, width})
	}
}

func (e *Estimator) add(s *side, a, b, width, sign int64) {
	if a > maxReading || a < -maxReading || b > maxReading || b < -maxReading || width < 0 || width > maxWidth {
		e.stats.Refused++
		return
	}
	v := b - a
	if v > maxReading-2*maxWidth || v < 2*maxWidth-maxReading {
		e.stats.Refused++
		return
	}
	v += sign * (width + e.cfg.Resolution)
	if e.begun && a < e.done-int64(e.cfg.MaxFit) {
		e.stats.Late++
		e.late++
		return
	}
	if len(s.pending) >= e.cfg.MaxSamples {
		s.reduce(e.cell(), float64(sign))
		if len(s.pending) > e.cfg.MaxSamples/2 {
			e.stats.Overflow++
			return
		}
	}
	e.stats.Samples++
	e.fresh++
	s.count++
	s.pending = append(s.pending, sample{a, v, width})
}

// cell is the time on Src within which only the envelope of samples is kept.
func (f *finder) cell() int64 { return max(int64(f.cfg.Window)/32, 1) }

// Estimate says what the offset was between two readings of Src.
type Estimate struct {
	// From and Until are the readings between which it holds. They end before the
	// reading at which the window was closed: see the package's comment.
	From, Until int64
	At          int64 // reading at which Offset holds: the middle
	// Offset is the estimate at At, Drift its slope: at reading r it is
	// Offset + Drift*(r-At).
	Offset int64
	// Lower and Upper bound the offset at At; shifted by Drift*(r-At) they bound it
	// at every reading r between From and Until.
	Lower, Upper       int64
	HasLower, HasUpper bool
	// Sigma is the standard deviation of Offset in ns, a belief, and never less than
	// what the stamps' resolution and the jumps between estimates in a row tell; 0
	// where there is no estimate because one side is not bounded.
	Sigma float64
	// Drift is Dst's rate less Src's; the truth is within DriftBound of it at each
	// reading from From to Until. DriftBound is 0 where it is not known.
	Drift, DriftBound float64
	// Growth is by how much Lower and Upper move apart, each, per ns outside of From
	// and Until, while the frequency changes by no more than Wander in a Window, for
	// four Windows.
	Growth float64
	// Samples taken since the estimate before, of both directions.
	Samples int64
	// Stepped: a clock was stepped or changed its frequency at From, and what was
	// known before does not continue. Split: the window had to be split.
	Stepped, Split bool
	// Provisional: there is no evidence on both sides yet, and the bound allows for
	// that. It comes last, while nothing is settled yet or the samples since
	// contradict it; a later estimate is better.
	Provisional bool
	// Contradicted is by how many ns, in the median, neighbouring samples contradict one
	// another where many do, which no step makes them do: the stamps are wrong. The
	// bounds are as wide as the samples then.
	Contradicted int64
}

// OffsetAt returns the estimate at a reading of Src.
func (e Estimate) OffsetAt(reading int64) int64 { return e.Offset + e.rise(reading) }

// BoundsAt returns the bounds at a reading of Src; model.NoLower and model.NoUpper
// where there are none.
func (e Estimate) BoundsAt(reading int64) (lower, upper int64) {
	lower, upper = model.NoLower, model.NoUpper
	outside := max(0, float64(e.From)-float64(reading), float64(reading)-float64(e.Until))
	grown := int64(math.Ceil(min(e.Growth*outside, maxReading)))
	if e.HasLower {
		lower = e.Lower + e.rise(reading) - grown
	}
	if e.HasUpper {
		upper = e.Upper + e.rise(reading) + grown
	}
	return lower, upper
}

func (e Estimate) rise(reading int64) int64 {
	return int64(math.Round(e.Drift * (float64(reading) - float64(e.At))))
}

// Edge is the estimate as an edge between two clocks.
func (e Estimate) Edge(src, dst, source, stamps string) model.ClockEdge {
	edge := model.ClockEdge{
		Src: src, Dst: dst, At: e.At, Span: e.Until - e.From,
		Lower: model.NoLower, Upper: model.NoUpper,
		Offset: e.Offset, Sigma: e.Sigma, Drift: e.Drift, DriftBound: e.DriftBound,
		Samples: e.Samples, Source: source, Stamps: stamps, Stepped: e.Stepped,
		Contradicted: e.Contradicted,
	}
	if e.HasLower {
		edge.Lower = e.Lower
	}
	if e.HasUpper {
		edge.Upper = e.Upper
	}
	return edge
}

// side is one direction's samples.
type side struct {
	pending []sample // as they came
	kept    []sample // the envelope of each cell, by t
	tail    []sample // the last ones of the Close before, unthinned
	sorted  []sample // scratch
	liars   []sample // scratch
	count   int64    // samples since the last Close
	newest  int64    // reading of the newest sample kept
	spacing float64  // mean distance of samples, ns, smoothed; 0 while unknown
}

func byTime(a, b sample) int {
	switch {
	case a.t < b.t:
		return -1
	case a.t > b.t:
		return 1
	}
	return 0
}

// seal moves the pending samples into what is kept.
func (s *side) seal(cell int64, sign float64) {
	s.reduce(cell, sign)
	s.pace(32 * cell)
	s.count = 0
	late := len(s.pending) > 0 && len(s.kept) > 0 && s.pending[0].t < s.kept[len(s.kept)-1].t
	s.kept = append(s.kept, s.pending...)
	s.pending = s.pending[:0]
	if late {
		slices.SortStableFunc(s.kept, byTime)
		s.kept = envelope(s.kept, cell, sign, s.kept[:0])
	}
}

// bound drops the oldest samples where more are kept than may be, and returns how
// many.
func (s *side) bound(most int) int {
	n := max(len(s.kept)-most, 0)
	s.kept = slices.Delete(s.kept, 0, n)
	return n
}

// pace learns how far samples are apart, as far as it matters: up to a window.
func (s *side) pace(window int64) {
	n := len(s.pending)
	if n == 0 {
		return
	}
	first, steps := s.newest, float64(s.count)
	if len(s.kept) == 0 {
		first, steps = s.pending[0].t, float64(s.count-1)
	}
	last := s.pending[n-1].t
	if last <= first && len(s.kept) > 0 {
		return // all came late
	}
	s.newest = last
	if last <= first || steps <= 0 {
		return
	}
	now := min(float64(last-first)/steps, float64(window))
	if s.spacing == 0 {
		s.spacing = now
	}
	s.spacing += (now - s.spacing) / 4
}

func (s *side) reduce(cell int64, sign float64) {
	if !slices.IsSortedFunc(s.pending, byTime) {
		slices.SortStableFunc(s.pending, byTime)
	}
	s.pending = envelope(s.pending, cell, sign, s.pending[:0])
}

// coarsen keeps less of what is only used by fits from now on.
func (s *side) coarsen(before, cell int64, sign float64) {
	n, _ := slices.BinarySearchFunc(s.kept, sample{t: before - mod(before, cell)}, byTime)
	old := envelope(s.kept[:n], cell, sign, s.kept[:0])
	s.kept = slices.Delete(s.kept, len(old), n)
}

func (s *side) forget(before int64) {
	n, _ := slices.BinarySearchFunc(s.kept, sample{t: before}, byTime)
	if n > len(s.kept)/4 {
		s.kept = slices.Delete(s.kept, 0, n)
	}
}

// between returns what is kept of [from, until].
func (s *side) between(from, until int64) []sample {
	i := since(s.kept, from)
	return s.kept[i : i+since(s.kept[i:], until+1)]
}

// since is the place of the first sample that is not before t.
func since(in []sample, t int64) int {
	i, j := 0, len(in)
	for i < j {
		if m := int(uint(i+j) >> 1); in[m].t < t {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

// envelope keeps, of each cell of time, the lower convex hull (sign 1) or the upper
// one (sign -1): what no line that the samples allow depends on is dropped. It
// writes to out, which may be the same memory.
func envelope(in []sample, cell int64, sign float64, out []sample) []sample {
	for i := 0; i < len(in); {
		first, end := len(out), in[i].t-mod(in[i].t, cell)+cell
		for ; i < len(in) && in[i].t < end; i++ {
			out = extend(out, first, in[i], sign)
		}
	}
	return out
}

// extend adds a sample to the hull that begins at out[first] (Andrew's chain).
func extend(out []sample, first int, s sample, sign float64) []sample {
	if n := len(out); n > first && out[n-1].t == s.t {
		if sign*float64(s.v-out[n-1].v) >= 0 {
			return out
		}
		out = out[:n-1]
	}
	for len(out)-first >= 2 {
		p, q := out[len(out)-2], out[len(out)-1]
		if sign*(float64(q.t-p.t)*float64(s.v-p.v)-float64(q.v-p.v)*float64(s.t-p.t)) > 0 {
			break
		}
		out = out[:len(out)-1]
	}
	return append(out, s)
}

func mod(a, m int64) int64 {
	if a %= m; a < 0 {
		a += m
	}
	return a
}
