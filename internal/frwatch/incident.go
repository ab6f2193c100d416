// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/bounded"
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
	// MaxBytes bounds the memory of what waits, about; 0: 512 MiB.
	MaxBytes int64
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
	cfg   IncidentConfig
	jobs  *bounded.Map[string, *job] // by when the last dump came
	bytes int64                      // of what waits
	// overflow are dumps that found no room.
	overflow []Refusal
}

// defaultMaxBytes is 32 KiB for each of 16,384 ranks: a state has some kilobytes.
const defaultMaxBytes = 512 << 20

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
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	return &Incidents{cfg: cfg, jobs: bounded.NewMap(bounded.MapConfig[string, *job]{
		Compare: func(a, b *bounded.Pair[string, *job]) int { return a.Value.last.Compare(b.Value.last) },
	})}
}

// Add takes a dump that came now.
func (in *Incidents) Add(now time.Time, d Dump) {
	j := in.job(d.Job)
	if j == nil || d.Rank < 0 || d.Rank >= MaxRanks || (len(j.waiting) >= in.cfg.MaxRanks && j.waiting[d.Rank] == nil) {
		in.overflow = append(in.overflow, Refusal{Reason: RefusedOverflow, Source: d.Source, What: "find room for a dump: there are too many", Rank: d.Rank})
		return
	}
	of, twin, freed := replace(j.waiting[d.Rank], &d)
	size := sizeOf(&d)
	if in.bytes-freed+size > in.cfg.MaxBytes {
		in.overflow = append(in.overflow, Refusal{
			Reason: RefusedOverflow, Source: d.Source, Rank: d.Rank,
			What: fmt.Sprintf("find room for a dump: got %d bytes beside %d of others; want at most %d in all", size, in.bytes, in.cfg.MaxBytes),
		})
		return
	}
	if twin != nil {
		in.overflow = append(in.overflow, Refusal{
			Reason: RefusedTwin, Source: twin.Source, Rank: twin.Rank,
			What: fmt.Sprintf("tell dumps of rank %d apart: got more than %d", twin.Rank, maxTwins),
		})
	}
	if len(j.waiting) == 0 {
		j.first = now
	}
	j.last = now
	in.jobs.Touch(d.Job)
	in.bytes += size - freed
	j.waiting[d.Rank] = append(of, d)
	if d.State != nil {
		j.world = max(j.world, worldOf(d.State))
	}
}

// replace returns what stays of a rank's dumps beside one that comes, the oldest of too many
// twins, which goes, and how much room the others had, an earlier one of its source included.
func replace(all []Dump, d *Dump) (stay []Dump, twin *Dump, freed int64) {
	for i := range all {
		if all[i].Source == d.Source {
			freed += sizeOf(&all[i])
		} else {
			stay = append(stay, all[i])
		}
	}
	if len(stay) >= maxTwins {
		twin, stay = &stay[0], stay[1:]
		freed += sizeOf(twin)
	}
	return stay, twin, freed
}

// sizeOf is about how much memory a dump holds, bytes. Lists of members are left out, since
// the dumps of a job share them.
func sizeOf(d *Dump) int64 {
	n := int64(unsafe.Sizeof(*d)) + int64(len(d.Source)+len(d.Fault)+len(d.Job))
	if d.State == nil {
		return n
	}
	n += int64(unsafe.Sizeof(*d.State)) + int64(len(d.State.Comms))*int64(unsafe.Sizeof(model.CommState{}))
	for i := range d.State.Comms {
		n += int64(len(d.State.Comms[i].Frontiers)) * int64(unsafe.Sizeof(model.Frontier{}))
	}
	for i := range d.State.Ops {
		o := &d.State.Ops[i]
		n += int64(unsafe.Sizeof(*o)) + int64(len(o.In)+len(o.Out)+len(o.Recorded))
	}
	for _, stack := range d.State.Stacks {
		n += int64(len(stack))
	}
	return n
}

// job returns a job's place; nil where there is no room for one more. The job that was heard of least
// lately and waits for nothing makes room.
func (in *Incidents) job(id string) *job {
	if j, ok := in.jobs.Peek(id); ok {
		return j
	}
	if in.jobs.Len() >= in.cfg.MaxJobs {
		idle, _, ok := in.jobs.OldestWhere(func(_ string, j *job) bool { return len(j.waiting) == 0 })
		if !ok {
			return nil
		}
		in.jobs.Delete(idle)
	}
	j := &job{waiting: map[int64][]Dump{}, told: map[int64]time.Time{}}
	in.jobs.Set(id, j)
	return j
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
	for _, id := range slices.Sorted(in.jobs.Keys()) {
		j, _ := in.jobs.Peek(id)
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
