// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// job is one life of one job.
type job struct {
	key, id, name string
	heard         time.Time
	// since is when it was first heard of, or was emptied.
	since time.Time
	ranks map[int64]*rank
	comms map[commKey]*comm
	order []*comm // the largest first; nil where that is not known
}

// rank is where one rank runs.
type rank struct {
	n                int64
	hostID, hostName string
	hwid             string
	nccl             string // of its process, as that recorded it
	heard            time.Time
	sources          [sources]witness

	placed int64 // when at was found, as Watch.moved counts
	at     *node
}

// sources is how many there are of states.
const sources = 3

// witness is what one source of states said of a rank.
type witness struct {
	told time.Time
	pid  model.Optional[int64]
}

func sourceOf(s model.StateSource) int {
	switch s {
	case model.StateFlightRecorder:
		return 0
	case model.StateRankEvents:
		return 1
	case model.StateRAS:
		return 2
	}
	return -1
}

// memberEvery is for how long at most what a rank said of its communicators is not read again:
// those that work send it every few seconds.
const memberEvery = time.Minute

// Knows reports whether what a source says of a rank was heard just now, so that its state need not
// be read.
func (w *Watch) Knows(of *model.Rank, source model.StateSource, now time.Time) bool {
	j, at := w.jobs[jobOf(of)], sourceOf(source)
	if j == nil || at < 0 {
		return false
	}
	r := j.ranks[of.Rank]
	return r != nil && now.Sub(r.sources[at].told) < min(memberEvery, w.cfg.Silent/4) && !r.elsewhere(of, at)
}

// jobOf names the life of a job. Sources agree on the incarnation, and not on the job's id.
func jobOf(of *model.Rank) string { return cmp.Or(of.Incarnation, of.JobID, of.JobName) }

// elsewhere reports whether a rank is told to be on another host, or by the same source in another
// process, than it was.
func (r *rank) elsewhere(of *model.Rank, source int) bool {
	differ := func(x, y string) bool { return x != "" && y != "" && x != y }
	pid := r.sources[source].pid
	return differ(r.hostID, of.HostID) || differ(r.hostName, of.HostName) || pid.OK && of.PID.OK && pid.V != of.PID.V
}

// AddState takes who computes with whom, and where, from the state of a rank. Nothing of s may
// change afterwards.
func (w *Watch) AddState(s *model.RankState, now time.Time) {
	at := sourceOf(s.Source)
	if at < 0 || s.Rank.Rank < 0 || jobOf(&s.Rank) == "" {
		return
	}
	w.stats.States++
	j := w.job(&s.Rank, now)
	r := w.rank(j, s.Rank.Rank)
	if r == nil {
		return
	}
	if r.elsewhere(&s.Rank, at) { // so may all others be: what was known is of another life
		w.empty(j)
		j.since = now
		w.stats.Restarted++
		if r = w.rank(j, s.Rank.Rank); r == nil {
			return
		}
	}
	if s.Process == model.ProcessDead || s.Process == model.ProcessEnded {
		*r = rank{n: r.n}
		return
	}
	r.know(&s.Rank, at, now)
	for i := range s.Comms {
		c := &s.Comms[i]
		nccl := strings.HasPrefix(c.Backend, "nccl")
		// The version that RAS says is that of the process that was asked, not of each.
		if nccl && s.Source == model.StateFlightRecorder && s.LibVersion != "" {
			r.nccl = intern(s.LibVersion)
		}
		w.comm(j, r, c, nccl, now)
	}
}

func (r *rank) know(of *model.Rank, source int, now time.Time) {
	if of.HostID != "" || of.HostName != "" {
		r.hostID, r.hostName, r.placed = intern(cmp.Or(of.HostID, r.hostID)), intern(cmp.Or(of.HostName, r.hostName)), 0
		r.heard = now
	}
	r.hwid = intern(cmp.Or(of.HWID, r.hwid))
	r.sources[source].told = now
	if of.PID.OK {
		r.sources[source].pid = of.PID
	}
}

// job returns the life of the job that a rank is of.
func (w *Watch) job(of *model.Rank, now time.Time) *job {
	key := jobOf(of)
	j := w.jobs[key]
	if j == nil {
		if len(w.jobs) >= w.cfg.MaxJobs {
			w.evict()
		}
		j = &job{key: key, since: now, ranks: map[int64]*rank{}, comms: map[commKey]*comm{}}
		w.jobs[key] = j
	}
	j.heard = now
	if of.JobID != "" && of.JobID != of.Incarnation { // as NCCL's RAS has it, that knows no job
		j.id, j.name = of.JobID, cmp.Or(of.JobName, j.name)
	}
	return j
}

// evict gives up the job that was silent longest.
func (w *Watch) evict() {
	var oldest *job
	for _, j := range w.jobs {
		if oldest == nil || j.heard.Before(oldest.heard) || j.heard.Equal(oldest.heard) && j.key < oldest.key {
			oldest = j
		}
	}
	w.empty(oldest)
	delete(w.jobs, oldest.key)
	w.stats.JobsEvicted++
}

// empty forgets all that is known of a job.
func (w *Watch) empty(j *job) {
	for _, c := range j.comms {
		w.members -= len(c.members)
	}
	w.comms -= len(j.comms)
	w.ranks -= len(j.ranks)
	clear(j.comms)
	clear(j.ranks)
	j.order = nil
}

// rank returns a rank of a job, nil where there is no room.
func (w *Watch) rank(j *job, n int64) *rank {
	r := j.ranks[n]
	if r == nil {
		if w.ranks >= w.cfg.MaxRanks {
			w.stats.RanksRefused++
			return nil
		}
		w.ranks++
		r = &rank{n: n}
		j.ranks[n] = r
	}
	return r
}

// forgetJobs forgets communicators of which nothing is heard any more, and jobs that have none.
func (w *Watch) forgetJobs(now time.Time) {
	for key, j := range w.jobs {
		for k, c := range j.comms {
			if now.Sub(c.heard) >= w.cfg.Silent {
				delete(j.comms, k)
				j.order = nil
				w.comms--
				w.members -= len(c.members)
			}
		}
		if len(j.comms) == 0 && now.Sub(j.heard) >= w.cfg.Silent {
			w.empty(j)
			delete(w.jobs, key)
		}
	}
	w.stats.Comms = int64(w.comms)
}
