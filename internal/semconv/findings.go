// SPDX-License-Identifier: Apache-2.0

package semconv

// Event names (the EventName of a log record).
const (
	EventFinding          = "lockstep.finding"
	EventOpOpen           = "lockstep.op.open"
	EventRankState        = "lockstep.rank.state"
	EventRankAbsent       = "lockstep.rank.absent"
	EventRankMembers      = "lockstep.rank.members"
	EventRankResumed      = "lockstep.rank.resumed"
	EventRankFingerprint  = "lockstep.rank.fingerprint"
	EventStepsMissing     = "lockstep.steps.missing"
	EventStepsLost        = "lockstep.steps.lost"
	EventClockEdge        = "lockstep.clock.edge"
	EventClockModel       = "lockstep.clock.model"
	EventEpochObservation = "lockstep.epoch.observation"
	EventHostFact         = "lockstep.host.fact"
)

// Finding attributes.
const (
	FindingKind         = "lockstep.finding.kind"
	FindingClass        = "lockstep.finding.class"
	FindingCause        = "lockstep.finding.cause"
	FindingID           = "lockstep.finding.id"
	FindingRevision     = "lockstep.finding.revision"
	FindingStatus       = "lockstep.finding.status"
	FindingRank         = "lockstep.finding.rank"
	FindingHost         = "lockstep.finding.host"
	FindingHWID         = "lockstep.finding.hw.id"
	FindingOp           = "lockstep.finding.op"
	FindingCommID       = "lockstep.finding.comm.id"
	FindingCommName     = "lockstep.finding.comm.name"
	FindingPeer         = "lockstep.finding.peer"
	FindingLink         = "lockstep.finding.link"
	FindingRanks        = "lockstep.finding.ranks" // []i, at most MaxFindingRanks
	FindingRanksCount   = "lockstep.finding.ranks.count"
	FindingStepFirst    = "lockstep.finding.step.first"
	FindingStepLast     = "lockstep.finding.step.last"
	FindingBeforeWindow = "lockstep.finding.before_window"
	FindingCostSeconds  = "lockstep.finding.cost.seconds"
	FindingCostShare    = "lockstep.finding.cost.share"
	FindingCostJoint    = "lockstep.finding.cost.joint"
	// FindingCostAtLeast and FindingCostAtMost bound the cost, s per step, where what was
	// not recorded leaves it open.
	FindingCostAtLeast = "lockstep.finding.cost.at_least"
	FindingCostAtMost  = "lockstep.finding.cost.at_most"
	// FindingWaitCaused is the wait that the place caused all others, s per
	// step. It is not a cost: others may be nearly as late.
	FindingWaitCaused = "lockstep.finding.wait_caused.seconds"
	// FindingWaitCausedShare is its share of all wait in the same steps, 0 to 1.
	FindingWaitCausedShare = "lockstep.finding.wait_caused.share"
	// Of a hang: who waits for its place itself, how many wait for those in turn, and who
	// can be at fault where the evidence does not decide.
	FindingWaiting         = "lockstep.finding.waiting"          // []i, at most MaxFindingRanks
	FindingWaitingCount    = "lockstep.finding.waiting.count"    // i
	FindingWaitingThrough  = "lockstep.finding.waiting.through"  // i
	FindingCandidates      = "lockstep.finding.candidates"       // []i, at most MaxFindingRanks, the likeliest first
	FindingCandidatesCount = "lockstep.finding.candidates.count" // i
	FindingStack           = "lockstep.finding.stack"            // s, as recorded
	FindingConfidence      = "lockstep.finding.confidence"
	FindingEvidence        = "lockstep.finding.evidence"
	FindingAction          = "lockstep.finding.action"
	// FindingLinks names the spans that decided, as "traceid-spanid" in hex.
	FindingLinks = "lockstep.finding.links"
	// FindingStart is when what was judged began, Unix ns; the record's own
	// timestamp is its end.
	FindingStart = "lockstep.finding.start_unix_nano"
	IncidentID   = "lockstep.incident.id"
)

// MaxFindingRanks is the most ranks that a finding lists; the count is exact
// all the same. 64 keep the record under a kilobyte.
const MaxFindingRanks = 64

// Attributes of lockstep.host.fact, one observed fact of a node or a rank. The resource is
// whose fact it is, the body says it in words.
const (
	FactSource  = "lockstep.fact.source"  // s, who observed it: nccl_ras, fleet_version
	FactKind    = "lockstep.fact.kind"    // s: nccl_async_error, nccl_init_error, nccl_aborted; of a node: version, driver_mismatch, fabric_manager_mismatch
	FactNetwork = "lockstep.fact.network" // b, about the way between ranks, not a device or host; absent where not
)

// Metric names.
const (
	MetricStepDuration    = "lockstep.step.duration"
	MetricWaitCaused      = "lockstep.wait.caused"
	MetricWaitSuffered    = "lockstep.wait.suffered"
	MetricStragglerExcess = "lockstep.straggler.excess"
	// MetricStragglerDivergence is how far the rank's rhythm of operations is from the
	// others': the mean of its Kolmogorov-Smirnov distances to them, 0 to 1.
	MetricStragglerDivergence = "lockstep.straggler.divergence"
	// MetricOpFrequency counts operations over all ranks, by key: its rate is how often
	// each occurs.
	MetricOpFrequency = "lockstep.op.frequency"
	MetricClockOffset = "lockstep.clock.offset"
	MetricClockBound  = "lockstep.clock.bound"
	MetricFindings    = "lockstep.findings"
	MetricEventsLost  = "lockstep.events.lost"
	// Of collectives and messages, by rank and function.
	MetricCollectiveDuration = "lockstep.collective.duration" // s, exponential histogram
	// MetricCollectiveSchedulingLatency is from when the host enqueued an operation to when
	// it was seen to have started.
	MetricCollectiveSchedulingLatency = "lockstep.collective.scheduling_latency" // s, exponential histogram
	MetricCollectiveIO                = "lockstep.collective.io"                 // By, counter
	MetricCollectiveBusBandwidth      = "lockstep.collective.bus_bandwidth"      // By/s
	// Of what NCCL's RAS says.
	MetricNCCLLaunched = "lockstep.nccl.launched" // {operation}, gauge by job, rank and function: on all communicators that there are
	MetricNCCLAbsent   = "lockstep.nccl.absent"   // {rank}, gauge by job and reason

	// Of the saves of jobs, gauges by job.
	MetricEpochFrontier = "lockstep.epoch.frontier" // {epoch}
	MetricEpochLag      = "lockstep.epoch.lag"      // {epoch}
	MetricEpochMixed    = "lockstep.epoch.mixed"    // {save}
	MetricResumeMixed   = "lockstep.resume.mixed"   // {incarnation}
	MetricReplicaMixed  = "lockstep.replica.mixed"  // {group}

	// Of the versions that nodes run, gauges: by job and domain, and by domain and version.
	MetricFleetMixed = "lockstep.fleet.mixed" // {communicator}
	MetricFleetNodes = "lockstep.fleet.nodes" // {node}

	// Of hangs, gauges by job; the limit by phase, too.
	MetricHangOpen    = "lockstep.hang.open"    // {finding}
	MetricHangWaiting = "lockstep.hang.waiting" // {rank}
	MetricHangLimit   = "lockstep.hang.limit"   // s

	MetricOverflowAttribute = "otel.metric.overflow"
)

// Data-point attributes beside those of the resource.
const (
	PointClass  = "lockstep.straggler.class"
	PointHop    = "lockstep.hop"
	PointReason = "lockstep.reason"
	// PointTimingSource is what a duration was measured with, as its source names it.
	PointTimingSource = "lockstep.timing.source"
	PointSeverity     = "lockstep.finding.severity" // INFO, WARN or ERROR
)
