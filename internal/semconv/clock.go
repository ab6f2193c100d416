// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes of lockstep.clock.edge. Offsets are the destination's reading less
// the source's. Seconds are for people and other tools, rounded outwards; the
// attributes in ns are exact and count where they are present.
const (
	EdgeSrc          = "lockstep.clock.src"
	EdgeDst          = "lockstep.clock.dst"
	EdgeLower        = "lockstep.clock.lower"         // d, s; absent where nothing bounds it
	EdgeUpper        = "lockstep.clock.upper"         // d, s; absent where nothing bounds it
	EdgeLowerNano    = "lockstep.clock.lower_nano"    // i
	EdgeUpperNano    = "lockstep.clock.upper_nano"    // i
	EdgeEstimateNano = "lockstep.clock.estimate_nano" // i; absent where there is no estimate
	EdgeAtNano       = "lockstep.clock.at_nano"       // i, the source's reading at the window's centre
	EdgeDrift        = "lockstep.clock.drift"         // d, ppm, the destination's rate less the source's
	EdgeDriftBound   = "lockstep.clock.drift.bound"   // d, ppm, half width; absent where the drift is unknown
	EdgeSamples      = "lockstep.clock.samples"       // i
	EdgeWindow       = "lockstep.clock.window"        // d, s
	EdgeSource       = "lockstep.clock.source"        // s
	EdgeStamps       = "lockstep.clock.stamps"        // s
	// EdgeContradictedNano is by how much observations contradict one another throughout
	// the window: i; absent where they do not.
	EdgeContradictedNano = "lockstep.clock.contradicted_nano"
	// EdgePrompt: the edge came before its window ended: b; absent where it did not.
	EdgePrompt = "lockstep.clock.prompt"
)

// Attributes of lockstep.clock.model, beside ClockID, ClockOffset (s),
// EdgeDrift (ppm), ClockBound (s), ClockSigma (s), ClockTimeline, ClockStep and
// ClockUntrusted.
const (
	ModelOffsetNano = "lockstep.clock.offset_nano"  // i, exact
	ModelFromNano   = "lockstep.clock.from_nano"    // i, reading
	ModelUntilNano  = "lockstep.clock.until_nano"   // i, reading
	ModelBoundNano  = "lockstep.clock.bound_nano"   // i, exact; absent where nothing bounds the offset
	ModelGrowth     = "lockstep.clock.bound.growth" // d, ppm: of the bound, outside from and until
	ModelUndated    = "lockstep.clock.undated"      // b, times on the timeline are not Unix time; absent where they are
)

// FindingClockID is the clock that a finding of kind clock is about.
const FindingClockID = "lockstep.finding.clock"

// Metrics of clocks and of the probe mesh.
const (
	MetricClockDrift          = "lockstep.clock.drift"          // ppm, gauge by clock
	MetricCausalityViolations = "lockstep.causality.violations" // {relation}, counter by class
	MetricCausalityHealth     = "lockstep.causality.health"     // 0 or 1, gauge by job
	MetricOWDDelay            = "lockstep.owd.delay"            // s, exponential histogram by src, dst, path
	MetricOWDLoss             = "lockstep.owd.loss"             // {packet}, counter by src, dst, path
	MetricOWDReordered        = "lockstep.owd.reordered"        // {packet}, counter by src, dst, path
	MetricOWDBound            = "lockstep.owd.bound"            // s, gauge by src, dst, path: of the delays
	MetricOWDRoundTrip        = "lockstep.owd.round_trip"       // s, exponential histogram by src, dst, path
	MetricOWDSent             = "lockstep.owd.sent"             // {packet}, counter by src, dst, path
	MetricOWDUnanswered       = "lockstep.owd.unanswered"       // {packet}, counter by src, dst, path
)

// Data-point attributes of the probe mesh.
const (
	PointSrc     = "lockstep.owd.src"    // end point: node/address
	PointDst     = "lockstep.owd.dst"    // end point: node/address
	PointPath    = "lockstep.owd.path"   // i, n-th UDP source port of the prober
	PointProber  = "lockstep.owd.prober" // the one of both that measured it
	PointStamps  = "lockstep.clock.stamps"
	PointVerdict = "lockstep.causality.verdict"
)

// Further attributes of a relation that the correction of clocks judged, beside
// CausalityVerdict and CausalityMagnitude.
const (
	// CausalityRelation names the relation that the verdict is about.
	CausalityRelation = "lockstep.causality.relation"
	// CausalityOrder tells, of an undecided relation, whether messages order its
	// spans: OrderMessages or OrderConcurrent.
	CausalityOrder = "lockstep.causality.order"
	// CausalityOther is the other span of the relation, "traceid-spanid" in hex.
	CausalityOther = "lockstep.causality.other"
)

// Values of CausalityVerdict and of the class of MetricCausalityViolations.
const (
	VerdictArtefact   = "artefact"   // raw wrong, corrected right
	VerdictIntroduced = "introduced" // raw right, corrected wrong: must never happen
	VerdictUndecided  = "undecided"  // within the bound
	VerdictViolation  = "violation"  // wrong beyond the bound
)

// Values of CausalityOrder.
const (
	OrderMessages   = "messages"
	OrderConcurrent = "concurrent"
)

// Where a stamp that was corrected by somebody else stood before clock_skew
// corrected it further, so that a second run can start there again.
const (
	ClockViaTimeline = "lockstep.clock.via.timeline"        // s, the clock on which it stood
	ClockViaStart    = "lockstep.clock.via.start_unix_nano" // i
	ClockViaOffset   = "lockstep.clock.via.offset"          // d, s
	ClockViaBound    = "lockstep.clock.via.bound"           // d, s
	ClockRawLaunch   = "lockstep.clock.raw_launch_unix_nano"
	ClockUntrusted   = "lockstep.clock.untrusted" // b, the clock contradicts the others: not corrected
	ClockWithheld    = "lockstep.clock.withheld"  // b, a correction was not applied: it would have turned what the stamps have right
)
