// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// none32 stands for no group.
const none32 = int32(-1)

// countRoot is a root that counts of launches show.
type countRoot struct {
	root
	group    int32
	lacks    []lacked // the operation that some have not launched; several where counts do not decide
	launched []string // how many members have launched how much
	beside   bool     // those that are behind may wait for one that does not answer, elsewhere
}

// lag is one communicator over the members that answered: sets of those that have launched the same.
type lag struct {
	group   int32
	fns     []int32
	members []voter
	sets    [][]voter
}

type voter struct {
	rank int32
	view *view
}

// maxSets bounds the different counts of one communicator that are compared with one another.
const maxSets = 256

// lags lists the communicators whose members have launched different numbers of operations.
func (w *world) lags() (out []lag) {
	all := make([]lag, len(w.a.groups.all))
	for i, r := range w.ranks {
		v := r.lastVote()
		if v == nil {
			continue
		}
		for k := range v.comms {
			l := &all[v.comms[k].group]
			l.members = append(l.members, voter{int32(i), v})
			for _, f := range v.comms[k].fronts {
				if !slices.Contains(l.fns, f.fn) {
					l.fns = append(l.fns, f.fn)
				}
			}
		}
	}
	for i := range all {
		l := &all[i]
		l.group = int32(i)
		slices.SortFunc(l.fns, func(a, b int32) int { return strings.Compare(w.a.names.texts[a], w.a.names.texts[b]) })
		l.divide()
		if len(l.sets) > 1 {
			out = append(out, *l)
		}
	}
	return out
}

// divide puts members that have launched the same into one set, the largest first.
func (l *lag) divide() {
	for _, m := range l.members {
		k := slices.IndexFunc(l.sets, func(set []voter) bool {
			less, more := l.compare(set[0].view, m.view)
			return !less && !more
		})
		if k < 0 {
			if len(l.sets) >= maxSets {
				continue
			}
			k = len(l.sets)
			l.sets = append(l.sets, nil)
		}
		l.sets[k] = append(l.sets[k], m)
	}
	slices.SortStableFunc(l.sets, func(a, b []voter) int { return len(b) - len(a) })
}

// compare reports whether a has launched less than b of some function, and more of some.
func (l *lag) compare(a, b *view) (less, more bool) {
	for _, fn := range l.fns {
		x, known := a.launched(countKey{l.group, fn})
		y, also := b.launched(countKey{l.group, fn})
		if known && also {
			less, more = less || x < y, more || x > y
		}
	}
	return less, more
}

// lagsByCounts are the ranks that have launched fewer operations of a communicator than other members
// of it, and those others.
func (w *world) lagsByCounts(stood bool) (found []countRoot, waiting [][]int32) {
	lags := w.lags()
	ahead := map[int32]bool{}
	for i := range lags {
		lags[i].leaders(ahead)
	}
	w.beforeUnlisted(ahead)
	silent := w.silent()
	others := w.besides(w.asked(silent))
	for i := range lags {
		l := &lags[i]
		if to, victims, ok := l.mismatch(w); ok {
			found, waiting = append(found, to), append(waiting, victims)
			continue
		}
		if to, victims, ok := l.behind(w, ahead, silent, others); ok {
			found, waiting = append(found, to), append(waiting, victims)
		}
	}
	found, waiting = joinBeside(found, waiting)
	found, waiting = w.foremostBehind(lags, found, waiting)
	if len(found) == 0 && len(lags) > 0 {
		to, victims := lags[0].round(w)
		found, waiting = append(found, to), append(waiting, victims)
	}
	if asked := w.asked(silent); len(found) == 0 && len(asked) > 0 && w.a.saved.is {
		to := countRoot{group: none32}
		to.class, to.candidates, to.confidence = model.ClassDumpMissing, asked, sureAbsent
		to.notes = []string{"it does not answer NCCL's RAS, which a process answers whatever its program does: it may be stopped, or its node cut off"}
		found, waiting = append(found, to), append(waiting, w.answering())
	}
	for i := range found {
		found[i].confidence = w.countSure(&found[i], stood)
	}
	if most := w.a.cfg.MaxRoots; len(found) > most {
		w.a.stats.RootsOmitted += int64(len(found) - most)
		found, waiting = found[:most], waiting[:most]
	}
	return found, waiting
}

// countSure is how sure a root of counts is told.
func (w *world) countSure(r *countRoot, stood bool) float64 {
	switch {
	case r.class == model.ClassMismatchOp:
		return sureOne
	case open(r.class):
		return sureAbsent
	case stood && w.a.saved.hung:
		return sureOne
	case stood, w.a.saved.hung:
		return sureMaybe
	}
	return sureMaybe * untimed
}

// asked are those of the ranks without an answer of which RAS says that they do not answer: text
// leaves out what does not differ.
func (w *world) asked(silent []int32) (list []int32) {
	for _, v := range silent {
		if _, known := w.a.absent[w.ranks[v].id]; known {
			list = append(list, v)
		}
	}
	return list
}

// silent are the ranks of which there is no answer.
func (w *world) silent() (list []int32) {
	for i, r := range w.ranks {
		if r.lastVote() == nil {
			list = append(list, int32(i))
		}
	}
	return list
}

func (w *world) answering() (list []int32) {
	for i, r := range w.ranks {
		if r.lastVote() != nil {
			list = append(list, int32(i))
		}
	}
	return list
}

// leaders notes who is ahead of another member, and may wait for it.
func (l *lag) leaders(to map[int32]bool) {
	for _, a := range l.sets {
		for _, b := range l.sets {
			if less, more := l.compare(a[0].view, b[0].view); !less && more {
				for _, m := range a {
					to[m.rank] = true
				}
				break
			}
		}
	}
}

// behind finds the members that have launched least and are ahead of nobody elsewhere.
func (l *lag) behind(w *world, ahead map[int32]bool, silent []int32, others *besides) (to countRoot, victims []int32, ok bool) {
	top := l.top()
	var late []int32
	var low *view
	for _, m := range l.members {
		if less, _ := l.compare(m.view, top); less && !ahead[m.rank] {
			late, low = append(late, m.rank), m.view
		}
	}
	if len(late) == 0 {
		return to, nil, false
	}
	for _, m := range l.members {
		switch less, _ := l.compare(low, m.view); {
		case less:
			victims = append(victims, m.rank)
		case ahead[m.rank]:
			to.notes = append(to.notes[:0], "other members are behind as well, and ahead of others elsewhere, for which they may wait")
		}
	}
	to.class, to.ranks, to.group = model.ClassNotScheduled, late, l.group
	l.name(w, &to, late)
	var members []int32
	for _, v := range silent {
		if w.a.groups.all[l.group].has(w.ranks[v].id) {
			members = append(members, v)
		}
	}
	beside := others.beside(w, late, victims)
	switch {
	case len(members) == 0 && len(beside) > 0:
		to.class, to.candidates, to.ranks, to.beside = model.ClassIncompleteEvidence, append(beside, late...), nil, true
		to.notes = append(to.notes, "the ranks that are behind may wait for one that does not answer NCCL's RAS, in a communicator that they share with it")
	case len(members) > 0:
		to.class, to.candidates, to.ranks = model.ClassIncompleteEvidence, compact(append(members, late...)), nil
		to.notes = append(to.notes, "some members do not answer NCCL's RAS, and the others may wait for these")
	case len(late) > len(victims) && len(l.members) > 2:
		to.class, to.candidates, to.ranks = model.ClassIncompleteEvidence, compact(append(slices.Clone(victims), late...)), nil
		to.notes = append(to.notes, "fewer ranks have launched it than have not: either these are late, or the others launched one too many")
	}
	to.notes = append(to.notes, "RAS counts launches of collectives alone: it may wait in a message, or in what it launched before")
	return to, victims, true
}

// top is a member that has launched most.
func (l *lag) top() *view {
	best := l.sets[0][0].view
	for _, set := range l.sets[1:] {
		if less, _ := l.compare(best, set[0].view); less {
			best = set[0].view
		}
	}
	return best
}

// round is what is left where all that are behind are ahead of others elsewhere.
func (l *lag) round(w *world) (to countRoot, victims []int32) {
	top := l.top()
	for _, m := range l.members {
		if less, _ := l.compare(m.view, top); less {
			to.candidates = append(to.candidates, m.rank)
		} else {
			victims = append(victims, m.rank)
		}
	}
	to.class, to.group = model.ClassIncompleteEvidence, l.group
	to.notes = []string{"all that are behind here are ahead in another communicator: they may wait for one another, each in what it launched first"}
	l.name(w, &to, to.candidates)
	return to, victims
}

// counted makes a root of counts what is told of it.
func (w *world) counted(r *countRoot, by *reach, at int64) Root {
	f := w.finding(&r.root, by, at)
	for _, x := range w.ranks {
		for _, v := range x.votes {
			f.Time = max(f.Time, v.time)
		}
	}
	out := Root{}
	if r.group != none32 {
		g := w.a.groups.all[r.group]
		f.CommID, f.CommName = g.comm.ID, g.comm.Name
		out.Op = OpRef{Comm: g.comm, Ranks: g.members}
		if w.a.job.Unnumbered {
			out.Op.Ranks = nil
		}
		if len(r.lacks) == 1 {
			out.Op.Name, out.Op.Seq = ncclName(w.a.names.texts[r.lacks[0].fn]), r.lacks[0].seq
		}
		f.Op = w.lackedText(r)
		out.Members, out.MembersOmitted = w.countMembers(r, by)
	}
	f.Confidence = r.confidence
	f.Evidence = w.countEvidence(r, by)
	f.Action = countAction(&f)
	if w.a.job.Unnumbered {
		f.Unnumbered = true
		if len(r.ranks) == 1 {
			f.Host = w.ranks[r.ranks[0]].host
		}
		if w.a.saved.is {
			f = f.GiveOut()
		}
		out.Members = nil
	}
	out.Finding = f
	return out
}

func countAction(f *model.Finding) string {
	if f.Class == model.ClassProcessDead || f.Class == model.ClassDumpMissing {
		return actions[f.Class]
	}
	return "get the stack of the process that is behind (py-spy dump --pid), and ask ncclras once more"
}

// countEvidence adds to the numbers who is meant, by process, and what each has launched.
func (w *world) countEvidence(r *countRoot, by *reach) *evidence.Hang {
	e := evidence.Hang{World: w.a.job.WorldSize.Or(0), Notes: slices.Clone(r.notes), Launched: strings.Join(r.launched, "; ")}
	seen, victims := 0, len(by.all)
	for _, x := range w.ranks {
		if len(x.votes) > 0 {
			seen++
		} else {
			e.Absent++
		}
	}
	e.Ranks, e.Victims = &seen, &victims
	for _, v := range slices.Concat(r.ranks, r.candidates) {
		if len(e.Processes) < maxProcesses {
			e.Processes = append(e.Processes, w.processText(v, r.group))
		}
	}
	if !w.a.job.Unnumbered && len(r.ranks)+len(r.candidates) > maxProcesses {
		e.Processes = nil
	}
	return &e
}

// maxProcesses bounds the processes that a finding of counts names.
const maxProcesses = 8

// processText names the process of a rank.
func (w *world) processText(v, group int32) string {
	text := ""
	if w.a.job.Unnumbered && group != none32 {
		text = fmt.Sprintf("rank %d of it: ", w.numberIn(v, group))
	} else if !w.a.job.Unnumbered {
		text = fmt.Sprintf("rank %d: ", w.ranks[v].id)
	}
	last := w.ranks[v].lastVote()
	if last == nil {
		b := w.a.absent[w.ranks[v].id]
		return text + cmp.Or(b.Detail, "no answer lists it")
	}
	// The newest answer may be prose, which does not name all processes.
	for _, x := range w.ranks[v].votes {
		if strings.Contains(x.name, "process ") && !strings.Contains(x.name, "a process that") {
			last = x
		}
	}
	if _, process, ok := strings.Cut(last.name, ": "); ok {
		return text + process
	}
	return text + last.name
}

// countMembers lists what each member has launched, those at fault first.
func (w *world) countMembers(r *countRoot, by *reach) (out []Member, omitted int) {
	all := compact(slices.Concat(r.ranks, r.candidates))
	blamed := len(all)
	for _, v := range by.all {
		if _, is := slices.BinarySearch(all[:blamed], v); !is {
			all = append(all, v)
		}
	}
	slices.Sort(all[blamed:])
	for _, v := range all[:min(len(all), MaxMembers)] {
		m := Member{Rank: w.ranks[v].id, Host: w.ranks[v].host, State: "does not answer"}
		if last := w.ranks[v].lastVote(); last != nil {
			m.State = w.launchedText(last, r)
		}
		out = append(out, m)
	}
	return out, max(0, len(all)-MaxMembers)
}

// ncclName spells a function as NCCL does: AllGather for all_gather.
func ncclName(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}
