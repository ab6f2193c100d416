// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// Outcome is what was said of one job.
type Outcome struct {
	Decided, Right int // findings
	Victims        int // ranks that are named and that no fault allows
	Faults         []Fate
	Candidates     int // listed, at most by one finding
}

// Fate is what became of one fault.
type Fate uint8

// Fates of faults, the best one first.
const (
	Told      Fate = iota
	Candidate      // listed among those who can be at fault
	Wronged        // something wrong was said instead
	Silent
	// Hidden: nobody at fault has left a dump, and another fault of the job is told, which
	// can be why. The report names them as absent, and more cannot be said. Or nobody has
	// whom it concerns beside those at fault, and these absent ones are listed: what is
	// seen would be the same if it were they.
	Hidden
)

var mismatches = []string{model.ClassMismatchOp, model.ClassMismatchSize, model.ClassMismatchDType, model.ClassMismatchRoot}

// classes are those that are right for a family where the dumps of who is at fault are there.
var classes = map[string][]string{
	hang.HostStuck:      {model.ClassNotScheduled},
	hang.InitStuck:      {model.ClassNotScheduled, model.ClassInitIncomplete},
	hang.ProcessDead:    {model.ClassProcessDead},
	hang.NoDump:         {model.ClassDumpMissing},
	hang.DeviceStopped:  {model.ClassCompletionLag},
	hang.DeviceOne:      {model.ClassCompletionLag},
	hang.DeviceSilent:   {model.ClassStalledOp, model.ClassNotScheduled},
	hang.StalledOp:      {model.ClassStalledOp},
	hang.StalledMessage: {model.ClassStalledOp},
	hang.Network:        {model.ClassNetwork},
	hang.WrongOp:        {model.ClassMismatchOp},
	hang.WrongSize:      {model.ClassMismatchSize},
	hang.WrongSizeShort: {model.ClassMismatchSize},
	hang.WrongDType:     {model.ClassMismatchDType},
	hang.WrongRoot:      {model.ClassStalledOp},
	hang.UnevenSplit:    {model.ClassSplitImbalance},
	hang.SwappedGroups:  {model.ClassOrderCycle},
	hang.SwappedOps:     append([]string{model.ClassOrderCycle}, mismatches...),
	hang.SkippedOp:      append([]string{model.ClassOrderCycle, model.ClassP2PUnmatched}, mismatches...),
	hang.ExtraOp:        append([]string{model.ClassOrderCycle}, mismatches...),
	hang.NoRecv:         {model.ClassP2PUnmatched, model.ClassOrderCycle},
	hang.WrongPeer:      {model.ClassP2PUnmatched, model.ClassOrderCycle},
	hang.WrongMessage:   {model.ClassMismatchSize, model.ClassP2PUnmatched},
}

// bench is one job with what is seen of it.
type bench struct {
	truth hang.Truth
	world int
	seen  map[int64]bool // a state is there
	whole map[int64]bool // and is not cut
	shows map[shown]bool // and has the operation
	// members of communicators, by id
	members map[string][]int64
	// joined: roots are known, and what hosts are in.
	joined bool
}

// shown is an operation of a rank's state.
type shown struct {
	rank int64
	comm string
	seq  int64
}

func newBench(j *hang.Job, in *Input, e hang.Evidence) *bench {
	b := &bench{truth: j.Truth(), world: j.World(), seen: map[int64]bool{}, whole: map[int64]bool{}, shows: map[shown]bool{}, members: map[string][]int64{}}
	for i := range in.States {
		s := &in.States[i]
		b.seen[s.Rank.Rank] = true
		b.whole[s.Rank.Rank] = s.Partial == "" && e.Buffer == 0
		for k := range s.Comms {
			b.members[s.Comms[k].Comm.ID] = s.Comms[k].Members
		}
		for k := range s.Ops {
			o := &s.Ops[k]
			b.shows[shown{s.Rank.Rank, s.Comms[o.Comm].Comm.ID, o.Seq}] = true
		}
	}
	if e.Joined {
		b.joined = true
		b.truth.Faults = slices.Clone(b.truth.Faults)
		for i := range b.truth.Faults {
			if b.truth.Family == hang.WrongRoot {
				b.truth.Faults[i].Blameless = false // the odd root is seen
			}
		}
	}
	return b
}

func (b *bench) judge(rep *desync.Report) (o Outcome) {
	told := make([]bool, len(b.truth.Faults))
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		if !decided(f) {
			o.Candidates = max(o.Candidates, len(f.Candidates))
			continue
		}
		o.Decided++
		right := false
		for n := range b.truth.Faults {
			if b.right(f, &b.truth.Faults[n]) {
				right, told[n] = true, true
			}
		}
		if right {
			o.Right++
		}
		o.Victims += b.victims(f)
	}
	for n := range b.truth.Faults {
		f := &b.truth.Faults[n]
		fate := b.fate(rep, f, told[n], o.Right < o.Decided)
		if fate == Silent && (slices.Contains(told, true) && !meetsMap(b.seen, f.Ranks) && absent(rep, f.Ranks) || b.alone(rep, f)) {
			fate = Hidden
		}
		o.Faults = append(o.Faults, fate)
	}
	return o
}

// alone tells whether all whom a fault concerns beside those at fault are absent, and
// listed.
func (b *bench) alone(rep *desync.Report, f *hang.Fault) bool {
	var others []int64
	for _, r := range f.Concerned {
		if !slices.Contains(f.Ranks, r) {
			others = append(others, r)
		}
	}
	return len(others) > 0 && !meetsMap(b.seen, others) && slices.ContainsFunc(rep.Roots, func(r desync.Root) bool {
		return !decided(&r.Finding) && within(others, r.Finding.Candidates)
	})
}

// absent tells whether a report names all of the ranks as absent.
func absent(rep *desync.Report, ranks []int64) bool {
	return !slices.ContainsFunc(ranks, func(r int64) bool {
		return !slices.ContainsFunc(rep.Absent, func(a model.Absence) bool { return a.Rank == r })
	})
}

func (b *bench) fate(rep *desync.Report, f *hang.Fault, told, wrong bool) Fate {
	if told {
		return Told
	}
	for i := range rep.Roots {
		c := &rep.Roots[i].Finding
		if !decided(c) && b.listed(c, f) {
			return Candidate
		}
	}
	if wrong {
		return Wronged
	}
	return Silent
}

func (b *bench) listed(c *model.Finding, f *hang.Fault) bool {
	among := f.Ranks
	if f.Blameless {
		// That nobody need be at fault is the truth, and nobody who was seen is suspected.
		if !meetsMap(b.seen, c.Candidates) {
			return true
		}
		among = f.Concerned
	}
	return meets(c.Candidates, among)
}

// blaming are classes that say that a rank is at fault: without one, nothing is said.
var blaming = []string{model.ClassNotScheduled, model.ClassInitIncomplete, model.ClassProcessDead, model.ClassDumpMissing, model.ClassCompletionLag}

// decided tells findings that say something from those that only list who can be at fault.
func decided(f *model.Finding) bool {
	return f.Class != model.ClassIncompleteEvidence && (!slices.Contains(blaming, f.Class) || f.Rank.OK || len(f.Ranks) > 0)
}

// named are the ranks that a finding names; of one that says what is wrong and not with
// whom, those who are concerned.
func named(f *model.Finding) []int64 {
	switch {
	case f.Rank.OK:
		return []int64{f.Rank.V}
	case len(f.Ranks) > 0:
		return f.Ranks
	}
	return f.Candidates
}

// atFault are those of all faults of which a finding can be true.
func (b *bench) atFault(f *model.Finding) (out []int64) {
	for n := range b.truth.Faults {
		if t := &b.truth.Faults[n]; slices.Contains(b.classes(t), f.Class) {
			out = append(out, t.Ranks...)
		}
	}
	return out
}

// right tells whether a decided finding says what a fault is and who is at fault.
func (b *bench) right(f *model.Finding, t *hang.Fault) bool {
	if !slices.Contains(b.classes(t), f.Class) || b.joined && f.Class == model.ClassNotScheduled && f.Cause != causeOf(t.Scope) {
		return false
	}
	who := named(f)
	switch {
	case f.Class == model.ClassDumpMissing:
		return meets(who, t.Ranks) && within(who, b.atFault(f)) && !meetsMap(b.seen, who)
	case t.Family == hang.DeviceSilent && f.Class == model.ClassNotScheduled:
		return len(who) == 1 && within(who, t.Ranks)
	case t.Blameless:
		return (!f.Rank.OK || t.Family == hang.Network) && within(who, t.Concerned)
	case f.Class == model.ClassOrderCycle || f.Class == model.ClassP2PUnmatched:
		return meets(who, t.Ranks) && within(who, t.Concerned)
	case slices.Contains(mismatches, f.Class):
		return len(who) > 0 && within(who, t.Ranks) || b.tied(t) && !f.Rank.OK && meets(who, t.Ranks) && within(who, t.Concerned)
	}
	return meets(who, t.Ranks) && within(who, b.atFault(f))
}

// causeOf is the cause of a finding about a host that is stuck in a scope.
func causeOf(scope string) string {
	switch scope {
	case "data_loading":
		return "dataloader"
	case "garbage_collection":
		return "gc"
	case "checkpoint_save":
		return "checkpoint"
	case "compile":
		return "compile"
	}
	return model.CauseUnknown
}

func (b *bench) classes(t *hang.Fault) []string {
	list := classes[t.Family]
	if t.Family == hang.WrongRoot && b.joined {
		list = []string{model.ClassMismatchRoot}
	}
	if t.Family == hang.UnevenSplit && !b.allWhole(t.Concerned) {
		list = append([]string{model.ClassStalledOp}, list...)
	}
	if !t.Blameless && !meetsMap(b.seen, t.Ranks) {
		list = append([]string{model.ClassDumpMissing}, list...)
	}
	return list
}

func (b *bench) allWhole(ranks []int64) bool {
	return !slices.ContainsFunc(ranks, func(r int64) bool { return !b.whole[r] })
}

// tied: not more than half of the members are seen to do right. Of a file that is cut before
// the operation nothing is seen of it.
func (b *bench) tied(t *hang.Fault) bool {
	good, members := 0, t.Concerned
	if of := b.members[t.Op.Group]; t.Cycle && len(of) > 0 {
		members = of // those concerned are of the circle
	}
	for _, r := range members {
		cut := !b.whole[r] && t.Op.Name != "" && !b.shows[shown{r, t.Op.Group, t.Op.Seq}]
		if b.seen[r] && !cut && !slices.Contains(t.Ranks, r) {
			good++
		}
	}
	return 2*good <= len(members)
}

// victims counts ranks that a finding accuses and that are at fault nowhere, nor part of
// what it is about where that is all that it says.
func (b *bench) victims(f *model.Finding) (n int) {
	both := slices.Contains([]string{model.ClassOrderCycle, model.ClassP2PUnmatched, model.ClassStalledOp, model.ClassSplitImbalance, model.ClassNetwork}, f.Class) ||
		slices.Contains(mismatches, f.Class)
	for _, r := range named(f) {
		blamed := slices.ContainsFunc(b.truth.Faults, func(t hang.Fault) bool {
			return (!t.Blameless || t.Family == hang.DeviceSilent) && slices.Contains(t.Ranks, r) ||
				both && !f.Rank.OK && slices.Contains(t.Concerned, r) && (t.Blameless || !slices.Contains(mismatches, f.Class) || b.tied(&t)) ||
				t.Family == hang.Network && slices.Contains(t.Concerned, r)
		})
		if !blamed {
			n++
		}
	}
	return n
}

func meets(a, b []int64) bool {
	return slices.ContainsFunc(a, func(r int64) bool { return slices.Contains(b, r) })
}

func meetsMap(m map[int64]bool, list []int64) bool {
	return slices.ContainsFunc(list, func(r int64) bool { return m[r] })
}

func within(a, b []int64) bool {
	return !slices.ContainsFunc(a, func(r int64) bool { return !slices.Contains(b, r) })
}
