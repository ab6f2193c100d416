// SPDX-License-Identifier: Apache-2.0

// Package semconv owns the names that Lockstep writes into telemetry: attribute
// keys, event names, metric names and their enumerated values. No other package
// spells one of them out. OpenTelemetry's own conventions are used where they
// exist (service.*, host.*, hw.*, process.*, thread.*, code.*); everything that
// they lack is under "lockstep.".
package semconv

// Resource attributes of anything observed on a rank.
const (
	ServiceName       = "service.name"        // job's human name
	ServiceInstanceID = "service.instance.id" // job/incarnation/rank
	HostName          = "host.name"
	HostID            = "host.id"
	JobID             = "lockstep.job.id"
	JobIncarnation    = "lockstep.job.incarnation"
	Rank              = "lockstep.rank"
	LocalRank         = "lockstep.local_rank"
	WorldSize         = "lockstep.world_size"
	ParallelDP        = "lockstep.parallel.dp.rank"
	ParallelPP        = "lockstep.parallel.pp.rank"
	ParallelTP        = "lockstep.parallel.tp.rank"
	ParallelCP        = "lockstep.parallel.cp.rank"
	ParallelEP        = "lockstep.parallel.ep.rank"
	HWID              = "hw.id"
	HWType            = "hw.type"
	ProcessPID        = "process.pid"
	ClockID           = "lockstep.clock.id"
	// ClockEpoch is the Unix ns at which the clock read 0: what was added to its
	// readings for the stamps of spans; i. Absent where stamps are readings.
	ClockEpoch = "lockstep.clock.epoch_unix_nano"
)

// HWTypeGPU is the value of hw.type beside a GPU's UUID in hw.id.
const HWTypeGPU = "gpu"

// Operation span attributes.
const (
	Step          = "lockstep.step"
	StepOps       = "lockstep.step.ops" // i, on a step: operations sent besides it
	Phase         = "lockstep.phase"
	OpKind        = "lockstep.op.kind"
	OpKey         = "lockstep.op.key"
	OpSeq         = "lockstep.op.seq"
	OpGroup       = "lockstep.op.group"
	OpEndInferred = "lockstep.op.end.inferred" // b, no end was observed: the span's is a bound
	GraphCaptured = "lockstep.graph.captured"
	WorkBytes     = "lockstep.work.bytes"
	WorkTokens    = "lockstep.work.tokens"
	WorkGrid      = "lockstep.work.grid"
	StreamID      = "lockstep.stream.id"
	ThreadID      = "thread.id"
	CorrelationID = "lockstep.correlation.id"
	LaunchTime    = "lockstep.launch.time_unix_nano"
	Microbatch    = "lockstep.microbatch"
	ModelChunk    = "lockstep.model_chunk"

	CommID     = "lockstep.comm.id"
	CommName   = "lockstep.comm.name"
	CommDigest = "lockstep.comm.digest"
	CommSize   = "lockstep.comm.size"
	CommRank   = "lockstep.comm.rank"

	CollectiveName     = "lockstep.collective.name"
	CollectiveSeq      = "lockstep.collective.seq"
	CollectiveSeqScope = "lockstep.collective.seq.scope"
	CollectiveBytes    = "lockstep.collective.bytes"
	CollectiveDType    = "lockstep.collective.dtype"
	CollectiveRoot     = "lockstep.collective.root"
	CollectiveAlgo     = "lockstep.collective.algo"
	CollectiveProto    = "lockstep.collective.proto"
	CollectiveChannels = "lockstep.collective.channels"
	CollectiveState    = "lockstep.collective.state"

	Peer      = "lockstep.peer"
	PeerLocal = "lockstep.peer.local"
	WaitGPU   = "lockstep.wait.gpu"
	WaitPeer  = "lockstep.wait.peer"
	WaitWire  = "lockstep.wait.wire"
	// WaitWireSteps is how many proxy steps WaitWire is the sum over; i.
	WaitWireSteps = "lockstep.wait.wire.steps"
	WaitFlush     = "lockstep.wait.flush"
	CodeStack     = "code.stacktrace"
)

// Attributes written by a clock correction.
const (
	ClockOffset        = "lockstep.clock.offset" // s, added to the raw start
	ClockBound         = "lockstep.clock.bound"  // s, half width; never an estimate
	ClockSigma         = "lockstep.clock.sigma"  // s, standard deviation of an estimated offset
	ClockTimeline      = "lockstep.clock.timeline"
	ClockRawStart      = "lockstep.clock.raw_start_unix_nano"
	ClockStep          = "lockstep.clock.step"
	CausalityVerdict   = "lockstep.causality.verdict"
	CausalityMagnitude = "lockstep.causality.magnitude"
)

// Attributes written by the straggler analysis on operation spans.
const (
	StragglerClass  = "lockstep.straggler.class"
	StragglerExcess = "lockstep.straggler.excess"
	WaitOwedTo      = "lockstep.wait.owed_to"
	WaitSuffered    = "lockstep.wait.suffered.seconds" // s, this member's wait in this rendezvous
	// LinkRelation is an attribute of a span link and says what the link means.
	LinkRelation = "lockstep.link.relation"
	// LinkLastArriver is the LinkRelation from a member of a collective to the
	// span of the member that arrived last.
	LinkLastArriver = "last_arriver"
	// LinkEvidence is the LinkRelation from a finding to a span that decided it.
	LinkEvidence = "evidence"
	// LinkRequest is the LinkRelation from a step to a span of another trace that the
	// step works for.
	LinkRequest = "request"
	// LinkStep is the LinkRelation from what shows a step in another trace to the step.
	LinkStep = "step"
)

// Step summary attributes, on the span of kind "step" only. The seven parts of
// the exclusive split are seconds and sum to the step.
const (
	SummaryCompute           = "lockstep.summary.compute"
	SummaryComputeOverlapped = "lockstep.summary.compute_overlapped"
	SummaryTransfer          = "lockstep.summary.transfer"
	SummaryWait              = "lockstep.summary.wait"
	SummaryLaunchIdle        = "lockstep.summary.launch_idle"
	SummaryDependencyIdle    = "lockstep.summary.dependency_idle"
	SummaryCopy              = "lockstep.summary.copy"
	SummaryOps               = "lockstep.summary.ops"         // i, operations in the step
	SummaryCollectives       = "lockstep.summary.collectives" // i, collectives among them
	SummaryHistograms        = "lockstep.summary.histograms"  // s, JSON, see docs/format/summary.md
)

// StoryOmitted is, on the root of a step's story, the number of spans left out.
const StoryOmitted = "lockstep.story.omitted"

// StoryLimit is, on the root of a step's story, the configured story_spans.
const StoryLimit = "lockstep.story.limit"
