// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// job is one life of one job.
type job struct {
	key, id, name string
	share         *bounded.Share[*job]
	heard         time.Time
	// since is when it was first heard of, or was emptied.
	since time.Time
	ranks map[int64]*rank
	comms map[commKey]*comm
	order []*comm // the largest first; nil where that is not known
	// members counts those of all comms.
	members int
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
func jobOf(of *model.Rank) string {
	return cut.Text(cmp.Or(of.Incarnation, of.JobID, of.JobName), cut.MaxName)
}

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
		j.share.Add(-r.texts())
		*r = rank{n: r.n}
		return
	}
	j.share.Add(r.know(&s.Rank, at, now))
	defer w.shrink()
	for i := range s.Comms {
		c := &s.Comms[i]
		nccl := strings.HasPrefix(c.Backend, "nccl")
		// The version that RAS says is that of the process that was asked, not of each.
		if nccl && s.Source == model.StateFlightRecorder && s.LibVersion != "" {
			j.share.Add(-len(r.nccl))
			r.nccl = intern(cut.Text(s.LibVersion, cut.MaxName))
			j.share.Add(len(r.nccl))
		}
		w.comm(j, r, c, nccl, now)
	}
}

// know takes where a rank runs, and returns how many bytes that takes more than what was known.
func (r *rank) know(of *model.Rank, source int, now time.Time) (bytes int) {
	before := r.texts()
	defer func() { bytes = r.texts() - before }()
	if of.HostID != "" || of.HostName != "" {
		r.hostID, r.hostName, r.placed = name(of.HostID, r.hostID), name(of.HostName, r.hostName), 0
		r.heard = now
	}
	r.hwid = name(of.HWID, r.hwid)
	r.sources[source].told = now
	if of.PID.OK {
		r.sources[source].pid = of.PID
	}
	return 0
}

// job returns the life of the job that a rank is of.
func (w *Watch) job(of *model.Rank, now time.Time) *job {
	key := jobOf(of)
	j := w.jobs[key]
	if j == nil {
		if len(w.jobs) >= w.cfg.MaxJobs {
			w.evict(w.room.Oldest())
		}
		key = strings.Clone(key)
		j = &job{key: key, since: now, ranks: map[int64]*rank{}, comms: map[commKey]*comm{}}
		j.share = w.room.Enter(j)
		j.share.Add(jobBytes + len(key))
		w.jobs[key] = j
	}
	j.heard = now
	j.share.Hear()
	if of.JobID != "" && of.JobID != of.Incarnation { // as NCCL's RAS has it, that knows no job
		j.share.Add(-len(j.id) - len(j.name))
		j.id, j.name = intern(cut.Text(of.JobID, cut.MaxName)), intern(cut.Text(cmp.Or(of.JobName, j.name), cut.MaxName))
		j.share.Add(len(j.id) + len(j.name))
	}
	return j
}

// evict gives up a job for others.
func (w *Watch) evict(j *job) {
	for _, s := range slices.Clone(w.spans) {
		if s.key.job != j.key {
			continue
		}
		w.leave(s) // its versions may still differ
		if e := w.book.At(s.place); e != nil {
			w.book.Drop(e)
		}
	}
	w.dropJob(j)
	w.stats.JobsEvicted++
}

func (w *Watch) dropJob(j *job) {
	w.empty(j)
	j.share.Leave()
	delete(w.jobs, j.key)
}

// shrink keeps to MaxBytes.
func (w *Watch) shrink() {
	for w.room.Bytes() > w.cfg.MaxBytes {
		w.evict(w.room.Largest())
	}
}

// empty forgets all that is known of a job.
func (w *Watch) empty(j *job) {
	for k := range j.comms {
		w.dropComm(j, k)
	}
	for _, r := range j.ranks {
		j.share.Add(-rankBytes - r.texts())
	}
	w.ranks -= len(j.ranks)
	clear(j.ranks)
	j.order = nil
}

// rank returns a rank of a job, nil where there is no room.
func (w *Watch) rank(j *job, n int64) *rank {
	r := j.ranks[n]
	if r == nil {
		if !w.makeRoom(j, w.needRanks(1)) {
			w.stats.RanksRefused++
			return nil
		}
		w.ranks++
		j.share.Add(rankBytes)
		r = &rank{n: n}
		j.ranks[n] = r
	}
	return r
}

// forgetJobs forgets communicators of which nothing is heard any more, and jobs that have none.
func (w *Watch) forgetJobs(now time.Time) {
	for _, j := range w.jobs {
		for k, c := range j.comms {
			if now.Sub(c.heard) >= w.cfg.Silent {
				w.dropComm(j, k)
				j.order = nil
			}
		}
		if len(j.comms) == 0 && now.Sub(j.heard) >= w.cfg.Silent {
			w.dropJob(j)
		}
	}
	w.stats.Comms = int64(w.comms)
}
