// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Options are how logs are judged.
type Options struct {
	Job       string
	WorldSize int64 // 0: that of the logs
	Engine    desync.Config
}

// Result is the judgement of one incident.
type Result struct {
	*desync.Report
	// Errors are the last errors that ranks wrote, by rank.
	Errors map[int64]Error
	// Waiting is how many operations ranks wait in, over all ranks.
	Waiting int64
	// Alarms is how many lines say that an operation or a watchdog is stuck, of any life of the job.
	Alarms int64
	Files  int
	// Unknown are the files with lines of the watchdog whose rank is not known.
	Unknown []string
	// Remarks are what is known beside the report, in sentences.
	Remarks []string
	// Earlier says how earlier lives of the job ended, which the logs have, too; empty: they have none.
	Earlier string
}

// Error is the last error of a rank.
type Error struct {
	Text  string
	Where string // file:line
	// Ended: the rank ended by it, and waits in nothing. Unsure: another rank's end may have caused it.
	Ended, Unsure bool
}

// Judge concludes what hangs. It is called once, when all logs are read.
func (s *Set) Judge(o Options) *Result {
	out := &Result{Unknown: s.resolve(), Files: len(s.files), Alarms: s.alarms, Errors: map[int64]Error{}}
	s.nameGroups()
	s.part()
	s.findCaught()
	s.doubtLives()
	s.leaveOutFailed()
	s.leaveOutEarlier()
	s.leaveOutLater()
	s.leaveOutKilled()
	s.leaveOutBare()
	reports := s.takeStatements(o.WorldSize)
	world, known := s.size(o.WorldSize)
	s.meet(world)
	s.doubt(world)
	a := desync.New(o.Engine)
	job := desync.Job{Name: o.Job, ID: o.Job, Incarnation: model.Incarnation(model.World{Launcher: []string{o.Job}})}
	if known {
		job.WorldSize = model.Some(world)
	}
	a.SetJob(job)
	comms := s.comms(world, known)
	s.add(a, comms, world)
	out.Report = a.Conclude(0)
	s.blameDead(out.Report, ordered(comms))
	for _, rank := range slices.Sorted(maps.Keys(s.ranks)) {
		r := s.ranks[rank]
		out.Waiting += int64(len(r.waits))
		if e, ok := s.errorOf(rank); ok {
			out.Errors[rank] = e
		}
	}
	for rank := range s.exits {
		if e, ok := s.errorOf(rank); ok {
			out.Errors[rank] = e
		}
	}
	out.finish(s, ordered(comms))
	out.report(reports)
	return out
}

// size is how many ranks the job has, and whether that is known.
func (s *Set) size(given int64) (int64, bool) {
	least := int64(0)
	for _, ranks := range [][]int64{slices.Collect(maps.Keys(s.ranks)), slices.Collect(maps.Keys(s.exits)), slices.Collect(maps.Keys(s.reported))} {
		for _, r := range ranks {
			least = max(least, r+1)
		}
	}
	for _, n := range []int64{given, s.world} {
		if n > 0 && n >= least {
			return min(n, maxRank+1), true
		}
	}
	for g, list := range s.seats() {
		if !g.whole() {
			continue
		}
		c := &comm{group: g, seqs: map[int64]waits{}, least: -1}
		s.fill(c, list)
		if n := c.size(); n >= least && n > 0 {
			return n, true
		}
	}
	return least, false
}

// findCaught marks the errors that are no end of their rank: those that ordinary lines follow, and
// those of a type that ranks wrote before they waited, such as that of a module that is not
// installed.
func (s *Set) findCaught() {
	harmless := s.harmless()
	for _, r := range s.ranks {
		r.fault.caught = r.survived() || r.wentOn() || r.fault.weight > weightResult && harmless[kindOf(r.fault.text, r.fault.weight)]
		r.fault.doubted = s.maybeBuffered(r) || s.cut[r.fault.at.file]
	}
}

// harmless are the types of errors that ranks wrote before they waited. One rank alone that ran out of
// memory before may have ended by that in an earlier life of the job.
func (s *Set) harmless() map[string]bool {
	count := map[string]int{}
	for _, r := range s.ranks {
		kinds := map[string]bool{}
		for _, e := range r.errors {
			kinds[e.kind] = kinds[e.kind] || slices.ContainsFunc(r.waits, func(w waits) bool {
				return w.at.file == e.at.file && w.at.line > e.at.line
			})
		}
		for kind, survived := range kinds {
			if survived {
				count[kind]++
			}
		}
	}
	out := map[string]bool{}
	for kind, n := range count {
		out[kind] = n > 1 || !strings.HasPrefix(kind, deviceKind)
	}
	return out
}

// leaveOutFailed leaves out operations of ranks whose device failed: the watchdog reports these
// as it reports time-outs, but they did not run for long.
func (s *Set) leaveOutFailed() {
	for _, r := range s.ranks {
		ran := slices.ContainsFunc(r.waits, func(w waits) bool { return w.ran > 0 })
		if r.fault.weight == weightDevice && !ran {
			r.waits, r.progress = nil, nil
		}
	}
}

// leaveOutEarlier leaves out operations of ranks that ended by their own error afterwards, where
// others are through these operations: they are of an earlier hang in the same log.
func (s *Set) leaveOutEarlier() {
	through := map[group]int64{}
	for _, r := range s.ranks {
		for i := range r.progress {
			p := &r.progress[i]
			through[p.group] = max(through[p.group], p.completed)
		}
	}
	for _, r := range s.ranks {
		if r.fault.weight < weightUnclear || len(r.waits) == 0 {
			continue
		}
		if !slices.ContainsFunc(r.waits, func(w waits) bool {
			return w.at.file != r.fault.at.file || w.at.line > r.fault.at.line || w.seq > through[w.group]
		}) {
			r.waits, r.progress = nil, nil
		}
	}
}

// leaveOutKilled leaves out ends by SIGKILL where a rank that waits ended by it, too: a launcher kills all.
func (s *Set) leaveOutKilled() {
	killed := func(e exit) bool { return e.known && (e.code == -9 || e.code == 128+9) }
	all := false
	for rank, e := range s.exits {
		r := s.ranks[rank]
		all = all || killed(e) && r != nil && len(r.waits) > 0
	}
	for rank, e := range s.exits {
		if all && killed(e) {
			e.root = false
			s.exits[rank] = e
		}
	}
}

// leaveOutBare leaves out exits of which only a code is known, where another rank's end explains
// itself: torchrun names a root cause on every node. Of several such exits none counts.
func (s *Set) leaveOutBare() {
	var bare []int64
	explained := false
	for _, rank := range s.allEnded() {
		if s.bare(rank) {
			bare = append(bare, rank)
		} else {
			explained = true
		}
	}
	if !explained && len(bare) < 2 {
		return
	}
	for _, rank := range bare {
		e := s.exits[rank]
		e.root = false
		s.exits[rank] = e
	}
}

// bare reports whether only an exit code is known of a rank's end.
func (s *Set) bare(rank int64) bool {
	r, e := s.ranks[rank], s.exits[rank]
	return e.bare && e.own() && (r == nil || r.fault.weight < weightUnclear || r.fault.caught)
}

// taken is the time of all states, Unix ns. Lines have no year and no time
// zone: only for how long an operation ran is taken from them, and no time is reported.
const taken = int64(1e18)

// minute is for how long an operation is open whose line has no time, ns.
const minute = int64(60e9)

// add gives the analysis a state of each rank that a log has lines of, and an absence of each
// other one.
func (s *Set) add(a *desync.Analyzer, comms map[group][]*comm, world int64) {
	silent, ended := s.silent()
	alone := silent == 1 && ended == 0 && s.folded == 0 && s.unplaced.waits == 0 && s.closing.line == 0 && s.ordered.line == 0 && !s.someOf
	for rank := range world {
		r := s.ranks[rank]
		switch {
		case r != nil && (len(r.waits) > 0 || len(r.progress) > 0):
			a.Add(s.state(rank, r, comms))
		case s.ended(rank):
			e, _ := s.errorOf(rank)
			a.AddAbsence(model.Absence{Rank: rank, Reason: model.AbsentDead, Detail: e.Where + ": " + e.Text})
		case r == nil:
			a.AddAbsence(model.Absence{Rank: rank, Reason: model.AbsentMissing, Detail: "there is no log of it"})
		case alone && (r.fault.weight == weightNone || r.fault.caught) && !s.isCut(r) && !r.order.given() || r.isStuck:
			if st := s.behind(rank, r, comms); st != nil {
				a.Add(st)
				continue
			}
			fallthrough
		case s.isCut(r):
			a.AddAbsence(model.Absence{Rank: rank, Reason: model.AbsentMissing, Detail: s.where(r.first) + ": its log is cut, and has no line of the watchdog up to there"})
		default:
			a.AddAbsence(model.Absence{Rank: rank, Reason: model.AbsentMissing, Detail: s.where(r.first) + ": no line of the watchdog follows"})
		}
	}
}

// isCut reports whether the end of a rank's log was not read.
func (s *Set) isCut(r *record) bool {
	return s.cut[r.first.file] || r.last.line > 0 && s.cut[r.last.file]
}

// silent counts the ranks whose log has no line of the watchdog: those that do not say why they
// ended, and those that do. One alone is behind where all others wait; of several some may have been
// ended before their own watchdog wrote.
func (s *Set) silent() (silent, ended int) {
	for rank, r := range s.ranks {
		if len(r.waits)+len(r.progress) == 0 && !s.ended(rank) {
			silent++
		}
	}
	for rank := range s.ranks {
		if s.ended(rank) {
			ended++
		}
	}
	for rank := range s.exits {
		if s.ranks[rank] == nil && s.ended(rank) {
			ended++
		}
	}
	return silent, ended
}

// ended reports whether a rank ended by itself, and waits in nothing.
func (s *Set) ended(rank int64) bool {
	r := s.ranks[rank]
	if r != nil && len(r.waits)+len(r.progress) > 0 {
		return false
	}
	if s.exited(rank) {
		return true
	}
	return r != nil && r.fault.weight >= weightUnclear && !r.fault.caught && !r.fault.doubted && !r.doubtful
}

// errorOf returns the last error of a rank.
func (s *Set) errorOf(rank int64) (Error, bool) {
	r, e := s.ranks[rank], s.exits[rank]
	switch {
	case r != nil && r.fault.weight >= weightUnclear:
		return Error{r.fault.text, s.where(r.fault.at), s.ended(rank), s.unsure(rank)}, true
	case e.own():
		return Error{e.text, s.where(e.at), s.ended(rank), false}, true
	case r != nil && r.isStuck:
		return Error{Text: "its watchdog stood still: a call of CUDA or NCCL, or the lock of Python's interpreter, did not return", Where: s.where(r.stuck)}, true
	case r != nil && r.fault.weight > weightNone:
		return Error{Text: r.fault.text, Where: s.where(r.fault.at)}, true
	}
	return Error{}, false
}

// finish takes out the times, which no line has, and adds to each root the last errors of its
// ranks.
func (r *Result) finish(s *Set, comms []*comm) {
	r.Since, r.Earlier = 0, s.lives.said(s)
	r.Roots = placed(r.Roots, comms)
	for i := range r.Roots {
		f := &r.Roots[i].Finding
		f.Start, f.Time = 0, 0
		if f.Class == model.ClassNotScheduled {
			f.Action = "read the end of that rank's log and the kernel log of its node; if the job still runs, get the Python stack of that rank (py-spy dump --pid)"
		}
		s.exonerate(f)
		s.weigh(f)
		Note(f, r.Errors)
		if len(f.Candidates) > 0 && len(f.Ranks) == 0 {
			addNotes(f, s.strays())
		}
	}
	if r.Waiting > 0 {
		return
	}
	r.Verdict, r.Roots, r.MayRun = desync.NoData, nil, s.silence()
	for _, rank := range slices.Sorted(maps.Keys(r.Errors)) {
		if e := r.Errors[rank]; e.Ended && len(r.Problems) < maxNoted {
			r.Problems = append(r.Problems, fmt.Sprintf("rank %d: %s (%s)", rank, e.Text, e.Where))
		}
	}
}

// report adds what ranks report of others that decides nothing.
func (r *Result) report(reports []string) {
	if len(reports) == 0 {
		return
	}
	if r.Verdict == desync.NoData {
		r.MayRun = strings.Join(reports, "; ") + "; " + toDecide
		return
	}
	for _, text := range reports {
		r.Remarks = append(r.Remarks, strings.ToUpper(text[:1])+text[1:]+".")
	}
}

// strays returns notes on what the logs lack or do not place: lines that Ray left out, and errors
// whose rank is not known, one of which may be why a candidate did not come.
func (s *Set) strays() (notes []string) {
	if s.folded > 0 {
		notes = append(notes, fmt.Sprintf("Ray left out lines of the watchdog that %d processes wrote: a candidate may be one of them; set RAY_DEDUP_LOGS=0", s.folded))
	}
	if s.closing.line > 0 {
		notes = append(notes, fmt.Sprintf("the launcher ended the ranks that were left (%s): it may have ended a candidate before its watchdog wrote", s.where(s.closing)))
	}
	if s.ordered.line > 0 {
		notes = append(notes, fmt.Sprintf("the job was ordered to end before the time-outs (%s): a candidate may have ended before its watchdog wrote", s.where(s.ordered)))
	}
	for file := range s.files {
		if s.cut[file] && len(notes) < maxNoted {
			notes = append(notes, s.files[file].Path+" is cut: what its ranks wrote behind that is not known")
		}
	}
	for _, e := range s.stray {
		notes = append(notes, fmt.Sprintf("an error in the logs whose rank is not known: %s (%s)", e.text, s.where(e.at)))
	}
	return notes
}

// exonerate takes ranks that wait themselves off the candidates: a time-out that a rank wrote is the
// sign that it came.
func (s *Set) exonerate(f *model.Finding) {
	if f.Class != model.ClassIncompleteEvidence {
		return
	}
	count := f.CandidatesCount.Or(0) - int64(len(f.Candidates)) // not listed
	f.Candidates = slices.DeleteFunc(f.Candidates, func(rank int64) bool {
		r := s.ranks[rank]
		return r != nil && len(r.waits) > 0
	})
	f.CandidatesCount = model.Optional[int64]{}
	if count += int64(len(f.Candidates)); count > 0 {
		f.CandidatesCount = model.Some(count)
	}
}

// maxNoted bounds the errors that are noted of one root, and those of a job where nothing hangs.
const maxNoted = 8
