// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Split divides a rank's step: every instant belongs to exactly one part, and
// the parts sum to the step.
type Split struct {
	Compute           time.Duration // no communication beside it
	ComputeOverlapped time.Duration // communication beside it
	Transfer          time.Duration // exposed communication after the last arrival
	Wait              time.Duration // exposed communication before the last arrival
	LaunchIdle        time.Duration // nothing ran and the host had launched nothing
	DependencyIdle    time.Duration // nothing ran although it had been launched
	Copy              time.Duration
}

// Sum returns the total of all parts: the duration of the step.
func (s Split) Sum() time.Duration {
	return s.Own() + s.Transfer + s.Wait
}

// Own returns the rank's wait-free time: what it did or failed to do by itself.
func (s Split) Own() time.Duration {
	return s.Compute + s.ComputeOverlapped + s.LaunchIdle + s.DependencyIdle + s.Copy
}

// StepReport is what one step showed, over all ranks that were seen. Times are
// Unix nanoseconds on the timeline, that is, corrected by the ranks' offsets.
type StepReport struct {
	JobName, JobID, Incarnation string
	Step                        int64
	Start, End                  int64
	Ranks                       []RankStep // by rank
	Meetings                    []Meeting  // by last arrival
	Missing                     []int64    // ranks of the world that were not seen, the first 64
	MissingCount                int        // all of them
	// Notes are the annotations of operation spans: members of collectives.
	Notes map[model.SpanRef]Note
	// Path is the step's critical path, the latest first, and PathMeetings the places in
	// Meetings of those in which it goes from one rank to another. Empty where the step
	// was not walked.
	Path         []PathSegment
	PathMeetings []int
	// Unmatched counts communication operations whose partners are not known.
	Unmatched int
	// Lacks is what else is missing of the step.
	Lacks Missing
}

// RankStep is one rank's share of a step.
type RankStep struct {
	Rank         model.Rank
	Span         model.SpanRef // of the rank's step, where reports hold spans
	Start, End   int64
	Split        Split
	Ops          int
	Collectives  int
	WaitCaused   time.Duration // summed over the others
	WaitSuffered time.Duration // summed over its rendezvous, overlapped or not
	LastArrivals int           // of meetings in which somebody waited
	Met          int           // operations that met those of other ranks
	// Excess is the rank's own time over its peers' median, by class, summed
	// over the segments of the step. Negative where the rank was faster.
	Excess map[string]time.Duration
	Offset clock.Offset
	// Durations holds one histogram per operation key.
	Durations map[string]*stats.Histogram
	Phase     string
	// Divergence is as in JobReport, as it was after this step.
	Divergence model.Optional[float64]
}

// Meeting is one collective, or one message, with every member that was seen.
type Meeting struct {
	Key      model.RendezvousKey
	Name     string // collective name
	CommID   string
	Size     int      // members expected; 0 where unknown
	Members  []Member // by arrival
	LastRank int64    // the rank that waits are owed to, where Attributed
	Transfer time.Duration
	// Attributed: waits are owed to the last arriver. False where a member is
	// missing who may have been later, or the operation does not synchronise.
	Attributed bool
}

// Member is one rank in a meeting.
type Member struct {
	Rank        int64
	Span        model.SpanRef
	Enter, Exit int64
	Wait        time.Duration // before the last arrival
}

// Last returns the member that arrived last.
func (m *Meeting) Last() *Member { return &m.Members[len(m.Members)-1] }

// Awaited returns the member that waits are owed to: the last arriver, or the
// root of a broadcast, or a sender.
func (m *Meeting) Awaited() *Member {
	for i := range m.Members {
		if m.Members[i].Rank == m.LastRank {
			return &m.Members[i]
		}
	}
	return m.Last()
}

// Gap returns how much earlier the last of the others arrived; 0 where the
// awaited member was not the last.
func (m *Meeting) Gap() time.Duration {
	awaited := m.Awaited()
	for i := len(m.Members) - 1; i >= 0; i-- {
		if o := &m.Members[i]; o != awaited {
			return time.Duration(max(0, awaited.Enter-o.Enter))
		}
	}
	return 0
}

// WaitCaused returns the wait of all members, owed to the last arriver.
func (m *Meeting) WaitCaused() time.Duration {
	if !m.Attributed {
		return 0
	}
	var sum time.Duration
	for i := range m.Members {
		sum += m.Members[i].Wait
	}
	return sum
}

// Complete reports whether every expected member was seen.
func (m *Meeting) Complete() bool { return m.Size > 0 && len(m.Members) >= m.Size }

// Note annotates one member of a meeting.
type Note struct {
	OwedTo   int64
	LastSpan model.SpanRef // of the last arriver; the member's own where it was last
	Wait     time.Duration
}

// Verdict is a finding together with the meeting that shows it best.
type Verdict struct {
	Finding  model.Finding
	Decisive *Meeting
	// Steps is the most steps that a judgement of this finding rested on.
	Steps int
}

// JobReport is what all steps of one job showed.
type JobReport struct {
	JobName, JobID, Incarnation string
	Steps                       int
	StepTime                    time.Duration // summed over steps
	Ranks                       []RankTotal   // by rank
	Missing                     []int64       // ranks of the world that were never seen, the first 64
	MissingCount                int           // all of them
	Verdicts                    []Verdict     // most costly first
	// Judged is how many steps the last judgement covered.
	Judged int
	// Meetings counts the rendezvous seen, Attributed those whose wait is owed to
	// somebody: where there are none, nothing could be compared.
	Meetings, Attributed int
	Unowed               Unowed
	Unjoined             Unjoined
	// OffUnit are the steps of ranks, where all of them have stamps that are hardly
	// nanoseconds: by how much anybody differs cannot be judged then.
	OffUnit int64
	// Apart are ranks that communicate but met nobody.
	Apart []int64
	// Abstained is the strongest candidate that was not named, and why.
	Abstained *Abstention
	// Problems are the faults of the job's input, in words.
	Problems []string
	// Suspects are the ranks by KAIR's abnormality score, the highest first, where it is
	// the method.
	Suspects []kair.Score
	// Divergence is how far each rank's rhythm of computing was from those of its peers
	// in recent steps: the mean Kolmogorov-Smirnov distance, 0 to 1. It shows where to
	// look, and accuses nobody: who waits for another diverges as well.
	Divergence map[int64]float64
	// Heatmap is that divergence over the latest step, Frequency how often each operation
	// occurred over the recent ones.
	Heatmap   kair.Heatmap
	Frequency kair.FrequencyView
}

// Abstention is a rank that was not named.
type Abstention struct {
	Rank       int64
	Ranks      []int64 // that are slow as it is, of gate half
	Link       bool    // not the rank was suspected, but the link behind it
	Class      string  // that it would have been; "" where that was not asked
	Gate       string  // the first gate that it failed
	Got, Want  float64 // the gate's quantity and its limit
	WaitShare  float64 // of all wait, 0 to 1
	CostShare  float64 // of the step, 0 to 1
	FalseAlarm float64 // probability that chance alone did this, over all ranks and judgements
	// Dear: mending it, or Ranks, would save as much as is worth telling.
	Dear bool
}

// Undecided reports whether the place costs enough, and all that lacks is something to compare
// it with: that nobody is named is no health then.
func (a *Abstention) Undecided() bool {
	if a == nil || !a.Dear {
		return false
	}
	switch a.Gate {
	case gateFewSteps, gatePair, gateHalf:
		return true
	}
	return false
}

// RankTotal is one rank over all steps of a job.
type RankTotal struct {
	Rank         int64
	Host         string
	Steps        int
	Split        Split
	WaitCaused   time.Duration
	WaitSuffered time.Duration
	LastArrivals int
	Meetings     int // communication operations
	Met          int // those that met those of other ranks
	Excess       map[string]time.Duration
	Offset       clock.Offset
}

// Stats are the engine's counters of what it refused or lost.
type Stats struct {
	OpsDropped     int64 // beyond MaxOpsPerRankStep
	OpsWithoutStep int64
	OpsWithoutRank int64 // of a rank below 0
	OpsUnsound     int64 // that end before they start, or last longer than a day
	OpsOfTwins     int64 // of a second process that calls itself the same rank
	OpsMiscounted  int64 // collectives of a rank that counts differently from the others
	// LaunchesContradicted are steps of ranks whose operations begin before they were
	// launched, or days after it, and whose launches were left out.
	LaunchesContradicted int64
	// HostsContradicted are steps of ranks in which their operations cannot have been, and
	// of which what the host's clock stamped was left out.
	HostsContradicted int64
	// StepsOffUnit are steps of ranks that lie before 1990, after 2100, or last less than a
	// microsecond: stamps in another unit than nanoseconds.
	StepsOffUnit       int64
	StepsUnended       int64 // judged although a rank had not ended them
	StepsBehind        int64 // closed after later ones: reported, and not judged
	StepsIncomplete    int64 // of which something besides ranks is missing: reported, and not judged
	StepsEvicted       int64 // beyond MaxOpenSteps, analysed before they were complete
	StepsLarge         int64 // that alone hold more operations than MaxOpenOps, and were judged whole
	JobsEvicted        int64
	LateOps            int64 // for a step that had been closed
	UnmatchedOps       int64
	DuplicateOps       int64
	PlacesOverflowed   int64
	RanksRefused       int64
	ClockConflicts     int64 // steps in which clocks contradicted what was known of them
	StepsForgotten     int64 // left the window before their time, beyond MaxWindowMembers
	WorldsCapped       int64 // operations' batches that stated a world beyond MaxRanks
	WorldsContradicted int64 // batches that stated another world than others, or one too small for who came
	// ConclusionsDropped are places that stood out beside too many others, and were not
	// looked into; of method kair, outliers that were not followed to their roots.
	ConclusionsDropped int64
	// FindingsWithheld are findings beyond those that may be open, each once for as long as it is found.
	FindingsWithheld int64
	JudgeRefused     int64 // rows, cells and links of steps that the judge left out: not finite, or too many
	// StepsTooLargeToWalk are steps with too many operations for a graph of all; a part is
	// walked now and then.
	StepsTooLargeToWalk int64
}
