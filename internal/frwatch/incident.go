package frwatch

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Dump is what came of one dump.
type Dump struct {
	Job    string
	Source string // file or address
	Rank   int64
	Time   time.Time // when it was written, or asked for
	// State is nil where nothing could be read; Fault says then why.
	State *model.RankState
	Fault string
	// Absence is what a dump without a state makes of its rank; empty: unreadable.
	Absence model.AbsenceReason
}

// IncidentConfig says which dumps are of one incident, and who is expected.
type IncidentConfig struct {
	// Wait is how long after a dump came the next is waited for, MaxWait how long after the
	// first in all.
	Wait, MaxWait time.Duration
	// Window is how far apart the dumps of one incident are written at most. One that is
	// older than that is of an earlier one.
	Window time.Duration
	// Ranks are expected here. AllRanks: all of the job are, WorldSize or as many as its
	// largest group has.
	Ranks     []int64
	AllRanks  bool
	WorldSize int64
	// MaxRanks and MaxJobs bound what is held.
	MaxRanks, MaxJobs int
	// Known says what is known of a rank of which nothing was read: when its newest file
	// was written, and whether it is being written.
	Known func(job string, rank int64) (written time.Time, writing, ok bool)
}

// Reasons for which dumps are refused.
const (
	RefusedTwin     = "twin"      // two contradict each other as dumps of one rank
	RefusedOtherJob = "other_job" // of a world of other ranks
	RefusedStale    = "stale"
	RefusedOverflow = "over_limit"
)

// Refusal is a dump that was not taken.
type Refusal struct {
	Reason, Source, What string
	Rank                 int64
}

// Incident is what is known of one job's incident, or what was learnt after it was told.
type Incident struct {
	Job     string
	Began   time.Time // of the first dump
	States  []model.RankState
	Absent  []model.Absence
	Refused []Refusal
}

// Incidents gathers dumps until those of an incident are there. It is not safe for
// concurrent use.
type Incidents struct {
	cfg  IncidentConfig
	jobs map[string]*job
	// overflow are dumps that found no room.
	overflow []Refusal
}

// job is one job, between incidents or in one.
type job struct {
	first, last time.Time // came, of what waits
	waiting     map[int64][]Dump
	told        map[int64]time.Time // when the newest dump that was told of was written
	world       int64
}

// maxTwins bounds the dumps of one rank that are compared.
const maxTwins = 4

// NewIncidents returns an empty gathering.
func NewIncidents(cfg IncidentConfig) *Incidents {
	if cfg.Known == nil {
		cfg.Known = func(string, int64) (time.Time, bool, bool) { return time.Time{}, false, false }
	}
	return &Incidents{cfg: cfg, jobs: map[string]*job{}}
}

// Add takes a dump that came now.
func (in *Incidents) Add(now time.Time, d Dump) {
	j := in.job(d.Job)
	if j == nil || d.Rank < 0 || d.Rank >= MaxRanks || (len(j.waiting) >= in.cfg.MaxRanks && j.waiting[d.Rank] == nil) {
		in.overflow = append(in.overflow, Refusal{Reason: RefusedOverflow, Source: d.Source, What: "find room for a dump: there are too many", Rank: d.Rank})
		return
	}
	if len(j.waiting) == 0 {
		j.first = now
	}
	j.last = now
	of := slices.DeleteFunc(j.waiting[d.Rank], func(o Dump) bool { return o.Source == d.Source })
	if len(of) >= maxTwins {
		of = of[1:]
	}
	j.waiting[d.Rank] = append(of, d)
	if d.State != nil {
		j.world = max(j.world, worldOf(d.State))
	}
}

// job returns a job's place; nil where there is no room for one more.
func (in *Incidents) job(id string) *job {
	j := in.jobs[id]
	if j != nil {
		return j
	}
	if len(in.jobs) >= in.cfg.MaxJobs && !in.evict() {
		return nil
	}
	j = &job{waiting: map[int64][]Dump{}, told: map[int64]time.Time{}}
	in.jobs[id] = j
	return j
}

// evict forgets the job that was heard of least lately and waits for nothing.
func (in *Incidents) evict() bool {
	oldest := ""
	for id, j := range in.jobs {
		if len(j.waiting) == 0 && (oldest == "" || j.last.Before(in.jobs[oldest].last)) {
			oldest = id
		}
	}
	_, found := in.jobs[oldest]
	delete(in.jobs, oldest)
	return found
}

// worldOf is the number of ranks of the largest group that a state knows.
func worldOf(s *model.RankState) int64 {
	world := s.Rank.WorldSize.Or(0)
	for i := range s.Comms {
		world = max(world, int64(len(s.Comms[i].Members)), s.Comms[i].Comm.Size.Or(0))
	}
	return min(world, MaxRanks)
}

// Due returns the incidents whose dumps have come, or need not be waited for any more.
func (in *Incidents) Due(now time.Time) []Incident {
	return in.conclude(func(j *job, expected []int64) bool {
		return now.Sub(j.last) >= in.cfg.Wait || now.Sub(j.first) >= in.cfg.MaxWait || j.complete(expected)
	}, true)
}

// End returns what waits. Where more could still have come, absence is not told of.
func (in *Incidents) End(absence bool) []Incident {
	return in.conclude(func(*job, []int64) bool { return true }, absence)
}

func (in *Incidents) conclude(due func(j *job, expected []int64) bool, absence bool) []Incident {
	var out []Incident
	for _, id := range slices.Sorted(maps.Keys(in.jobs)) {
		j := in.jobs[id]
		expected := in.expected(j)
		if len(j.waiting) == 0 || !due(j, expected) {
			continue
		}
		if !absence {
			expected = nil
		}
		out = append(out, in.incident(id, j, expected))
	}
	return out
}

// TakeOverflow returns dumps that found no room since the last call.
func (in *Incidents) TakeOverflow() []Refusal {
	out := in.overflow
	in.overflow = nil
	return out
}

// expected are the ranks whose dumps should come here; empty where that is unknown.
func (in *Incidents) expected(j *job) []int64 {
	switch {
	case len(in.cfg.Ranks) > 0:
		return in.cfg.Ranks
	case !in.cfg.AllRanks:
		return nil
	}
	world := in.cfg.WorldSize
	if world == 0 {
		world = j.world
	}
	out := make([]int64, world)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func (j *job) complete(expected []int64) bool {
	for _, r := range expected {
		if j.waiting[r] == nil {
			return false
		}
	}
	return len(expected) > 0
}
