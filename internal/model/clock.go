// SPDX-License-Identifier: Apache-2.0

package model

import "math"

// What an edge rests on.
const (
	EdgeProbe      = "probe"      // packets of the probe mesh
	EdgePair       = "pair"       // two clocks of one host, read together
	EdgeMessage    = "message"    // matched sends and receives of a trace
	EdgeCall       = "call"       // parents and children of a trace
	EdgeCollective = "collective" // members of collectives
	EdgeChrony     = "chrony"     // chronyd's own state
	EdgePTP        = "ptp"        // ptp4l's own state
)

// How the stamps of an edge were taken, from best to worst. An edge bears the
// worst of its stamps.
const (
	StampHardware    = "hardware"    // by the NIC
	StampKernel      = "kernel"      // by the kernel, at the driver
	StampUser        = "user"        // by the program, after it was woken
	StampApplication = "application" // by the observed program, in its spans
)

// Unbounded values of ClockEdge.Lower and ClockEdge.Upper.
const (
	NoLower = math.MinInt64
	NoUpper = math.MaxInt64
)

// NoBound is the Bound of a ClockModel that nothing bounds: only Sigma tells of
// its offset.
const NoBound = math.MaxInt64

// ClockEdge is what one window of observations says of two clocks. All offsets
// are Dst's reading less Src's at the moment at which Src reads At; readings are
// ns, of whatever origin the clock has.
type ClockEdge struct {
	Src, Dst string // clock ids; Src < Dst where the observer has the choice

	At   int64 // reading of Src, at the window's centre
	Span int64 // ns on Src, from the window's first observation to its last

	// Lower and Upper bound the offset at At; NoLower, NoUpper where nothing does.
	// They hold if the stamps do, with all that the window allows for: a change of
	// frequency in it, and the stamps' resolution.
	//
	// Of edges that rest on messages (EdgeProbe, EdgeMessage, EdgeCall,
	// EdgeCollective) they hold at every reading r within Span/2 of At, if moved by
	// Drift*(r-At). Those of EdgePair, EdgeChrony and EdgePTP hold at At alone: away
	// from it, inside of Span too, they widen by DriftBound.
	Lower, Upper int64

	// Offset is the estimate, within Lower and Upper; Sigma is its standard
	// deviation in ns, and no bound. Without an estimate (an edge that only bounds)
	// Sigma is 0.
	Offset int64
	Sigma  float64

	// Drift is Dst's rate less Src's, dimensionless (1e-6 is 1 ppm), with the half
	// width of its bound; DriftBound is 0 where the drift is not known.
	Drift, DriftBound float64

	Samples int64  // observations of both directions
	Source  string // EdgeProbe, ...
	Stamps  string // StampKernel, ...
	// Stepped: one of both clocks was stepped, or changed its frequency, at the
	// beginning of the window: what was known before does not continue.
	Stepped bool
	// Prompt: an EdgePair that comes before the window has ended, of readings that the
	// window's edge will rest on too. It tells at once where the real-time clock stands by
	// the raw one, and takes no part in solutions: edges of other clocks are not of its time.
	Prompt bool
	// Contradicted is by how many ns observations of the window contradict one another
	// throughout, as those of a right clock cannot; 0 where they do not. Such an edge is
	// evidence against both clocks, and bounds nothing.
	Contradicted int64
}

// Width is Upper - Lower in ns; infinite where a side is unbounded.
func (e *ClockEdge) Width() float64 {
	if e.Lower == NoLower || e.Upper == NoUpper {
		return math.Inf(1)
	}
	return float64(e.Upper) - float64(e.Lower)
}

// ClockModel places the readings of one clock on a timeline. At a reading r the
// time on the timeline is r + Offset + Drift*(r-At), in ns: Unix time, unless Undated.
type ClockModel struct {
	Clock string
	// Timeline names the scale; models of different timelines cannot be compared.
	Timeline string
	// From and Until are the readings between which the model was observed. Outside
	// it is extrapolated, and its bound grows.
	From, Until int64

	At     int64 // reading at which Offset holds
	Offset int64 // ns
	Drift  float64

	// Bound is the half width, in ns, of what the offset can be between From and
	// Until, against the timeline, NoBound where nothing bounds it; Growth is added
	// per ns outside of it.
	Bound  int64
	Growth float64
	Sigma  float64 // ns, standard deviation of Offset; no bound

	// Stepped: the clock was stepped at From.
	Stepped bool
	// Untrusted: the clock contradicts the others beyond what bounds allow. Its
	// model serves to look at, and not to correct.
	Untrusted bool
	// Undated: no real-time clock is on the timeline, so its times are not Unix time. They
	// relate clocks to one another, and place no span.
	Undated bool
}

// Time returns where a reading stands on the timeline, without its bound.
func (m *ClockModel) Time(reading int64) int64 {
	return reading + m.Offset + int64(math.Round(m.Drift*float64(reading-m.At)))
}

// BoundAt returns the half width of what the offset can be at a reading, in ns;
// NoBound where nothing bounds it.
func (m *ClockModel) BoundAt(reading int64) int64 {
	return BoundAt(m.From, m.Until, m.Bound, m.Growth, reading)
}

// BoundAt is a bound that holds between two readings, at another one.
func BoundAt(from, until, bound int64, growth float64, reading int64) int64 {
	grown := math.Ceil(growth * max(0, float64(from)-float64(reading), float64(reading)-float64(until)))
	if bound == NoBound || grown+float64(bound) >= NoBound {
		return NoBound
	}
	return bound + int64(grown)
}
