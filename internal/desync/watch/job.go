// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// jobKey is one life of one job.
type jobKey struct{ id, incarnation string }

// lifeless reports whether a key does not say which life of the job it is of: sources that know
// no more than the job's id, as dumps, make an incarnation of that.
func (k jobKey) lifeless() bool {
	return k.incarnation == "" || k.incarnation == model.Incarnation(model.World{Launcher: []string{k.id}})
}

// job is what is known of it.
type job struct {
	key   jobKey
	name  string
	world model.Optional[int64]
	heard time.Time
	ranks map[int64]*rank

	rhythm rhythm
	dumps  dumps
	// living counts the live states that may be judged: none of a job that works.
	living map[int64]struct{}
	// opened are the ranks whose operations told what is in no state yet.
	opened map[int64]*rank

	judged time.Time
	cost   time.Duration // of the last judgement
	told   []*episode    // open findings of it

	share *bounded.Share[*job]
	// lists are the lists of members that its states hold, and how many do; rhythmBytes is what share
	// counts for the rhythm.
	lists       map[list]int
	rhythmBytes int

	replaced bool // a later life of the job goes on
	// native: its ranks send their states.
	native bool
}

// rank returns a rank to note something of, nil where there is no room.
func (w *Watch) rank(j *job, of *model.Rank, now time.Time) *rank {
	r := j.ranks[of.Rank]
	switch {
	case of.Rank < 0:
		w.stats.RanksRefused++
		return nil
	case r == nil && len(j.ranks) >= w.cfg.MaxRanks:
		w.stats.RanksRefused++
		return nil
	case r == nil:
		r = &rank{of: kept(of)}
		j.ranks[of.Rank] = r
		j.grow(r, rankBytes+r.of.TextBytes())
	case !r.of.MayBe(of):
		if now.Sub(r.heard) <= w.cfg.StateTTL && !r.gone {
			w.stats.StatesOfTwins++
			return nil
		}
		j.clear(r)
		*r = rank{of: kept(of), moved: now} // the rank restarted: its old waits are over
		j.grow(r, rankBytes+r.of.TextBytes())
	default:
		j.grow(r, r.know(of))
	}
	r.heard = now
	return r
}

// job returns the job of a rank. What does not say whose life it is of is of the job's latest.
func (w *Watch) job(of *model.Rank, now time.Time) *job {
	id := of.JobID
	if id == "" {
		id = of.JobName
	}
	key := jobKey{cut.Text(id, cut.MaxName), cut.Text(of.Incarnation, cut.MaxName)}
	if key.lifeless() {
		if latest, ok := w.latest[key.id]; ok {
			key = latest
		}
	}
	j := w.jobs[key]
	if j == nil {
		j = w.adopt(key, now)
	}
	j.heard = now
	j.share.Hear()
	if of.JobName != "" && of.JobName != j.name {
		name := cut.Part(of.JobName, cut.MaxName)
		j.share.Add(len(name) - len(j.name))
		j.name = name
	}
	if of.WorldSize.OK {
		j.world = of.WorldSize
	}
	return j
}

// adopt makes a job. One of which no life was known becomes the first that is.
func (w *Watch) adopt(key jobKey, now time.Time) *job {
	key = jobKey{strings.Clone(key.id), strings.Clone(key.incarnation)}
	if before, ok := w.latest[key.id]; ok {
		old := w.jobs[before]
		if before.lifeless() {
			delete(w.jobs, before)
			old.share.Add(len(key.incarnation) - len(old.key.incarnation))
			old.key, w.jobs[key], w.latest[key.id] = key, old, key
			w.recall(old)
			return old
		}
		old.replaced = true
	}
	if len(w.jobs) >= w.cfg.MaxJobs {
		w.stats.JobsEvicted++
		w.drop(w.room.Oldest())
	}
	j := &job{key: key, ranks: map[int64]*rank{}, living: map[int64]struct{}{}, lists: map[list]int{}, heard: now}
	j.share = w.room.Enter(j)
	j.share.Add(jobBytes + 2*len(key.id) + len(key.incarnation))
	w.jobs[key], w.latest[key.id] = j, key
	w.recall(j)
	return j
}

func compareKeys(a, b jobKey) int {
	return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.incarnation, b.incarnation))
}

// inOrder are the jobs, always in one order: what is told depends on it.
func (w *Watch) inOrder() []*job {
	return slices.SortedFunc(maps.Values(w.jobs), func(a, b *job) int { return compareKeys(a.key, b.key) })
}

// Forget drops the jobs of some ids, with their findings, and reports nothing of them: another watch gets them.
func (w *Watch) Forget(ids []string) {
	for _, j := range w.inOrder() {
		if slices.Contains(ids, j.key.id) {
			w.drop(j)
		}
	}
	for _, e := range w.book.Episodes() { // of before a restart
		if slices.Contains(ids, e.Place.Job) {
			w.book.Drop(e)
		}
	}
}

func (w *Watch) drop(j *job) {
	delete(w.jobs, j.key)
	if w.latest[j.key.id] == j.key {
		delete(w.latest, j.key.id)
	}
	for _, e := range slices.Clone(j.told) { // whether it still hangs is not known
		j.leave(e)
		w.book.Drop(e)
	}
	j.share.Leave()
}

// limitOf is how long the job may stand in a phase.
func (w *Watch) limitOf(j *job, phase string) time.Duration {
	if phase == phaseHeld {
		return w.cfg.HeldLimit
	}
	return w.cfg.limit(j.rhythm.phases[phase])
}

// shortest is the least limit of all phases: what stands for less hangs in none.
func (w *Watch) shortest(j *job) time.Duration {
	least := min(w.cfg.StartLimit, w.cfg.HeldLimit)
	for phase := range j.rhythm.phases {
		least = min(least, w.limitOf(j, phase))
	}
	return least
}

// kept is a copy of what names a rank that keeps nothing alive of the state that it is from.
func kept(of *model.Rank) model.Rank {
	r := *of
	for _, text := range []*string{&r.JobName, &r.JobID, &r.Incarnation, &r.HostName, &r.HostID, &r.HWID, &r.ClockID} {
		*text = cut.Part(*text, cut.MaxName)
	}
	return r
}

// know adds what another source knows of a rank, and returns how many bytes that takes.
func (r *rank) know(of *model.Rank) (bytes int) {
	for _, text := range [...]struct {
		to   *string
		from string
	}{{&r.of.HostName, of.HostName}, {&r.of.HostID, of.HostID}, {&r.of.HWID, of.HWID}} {
		if *text.to == "" && text.from != "" {
			*text.to = cut.Part(text.from, cut.MaxName)
			bytes += len(*text.to)
		}
	}
	if !r.of.PID.OK {
		r.of.PID = of.PID
	}
	return bytes
}
