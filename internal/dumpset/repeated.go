// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	// manyStamps is how many times of operations two processes do not share.
	manyStamps = 8
	// rounding is what times in whole milliseconds can have beside these, ns.
	rounding = 1000
	// manySampled is how many times of a dump are kept to compare it with others.
	manySampled = 16
)

// stamps are what a dump recorded and when.
type stamps struct {
	sum    uint64  // 0: too few times
	exact  bool    // they are finer than milliseconds, which two processes can share
	newest []int64 // times of its newest operations, ms
}

var stampSeed = maphash.MakeSeed()

// stamp is the numbers of an operation, and the sum of what is before them.
type stamp struct {
	before  uint64
	numbers [7]int64
}

// texts are those of an operation, and the sum of what is before them.
type texts struct {
	before       uint64
	name, thread string
}

func stampsOf(d *flightrecorder.Dump) (s stamps) {
	sum, last := uint64(0), texts{}
	all, exact := map[int64]bool{}, map[int64]bool{}
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.Created > 0 && len(all) < manyStamps {
			all[e.Created] = true
		}
		if e.Created%1_000_000 >= rounding && len(exact) < manyStamps {
			exact[e.Created] = true
		}
		_, thread := d.Thread(e)
		if name := d.Name(e); i == 0 || name != last.name || thread != last.thread {
			last = texts{sum, name, thread}
			sum = maphash.Comparable(stampSeed, last)
		}
		sum = maphash.Comparable(stampSeed, stamp{sum, [7]int64{e.Created, e.StartSeen, e.EndSeen, e.Record, e.Coll, e.P2P, int64(e.State)}})
	}
	if len(all) < manyStamps {
		return s
	}
	s.sum, s.exact = sum, len(exact) == manyStamps
	for i := max(0, len(d.Entries)-manySampled); i < len(d.Entries); i++ {
		s.newest = append(s.newest, d.Entries[i].Created/1_000_000)
	}
	return s
}

// sameTo returns how finely the times of copies are equal, and what follows.
func (s *stamps) sameTo() string {
	if s.exact {
		return "to the nanosecond, which those of two processes do not have"
	}
	return "to the millisecond, which those of two processes hardly have"
}

// apart reports whether most times of two dumps differ.
func (s *stamps) apart(o *stamps) bool {
	differ := 0
	for _, at := range s.newest {
		if !slices.Contains(o.newest, at) {
			differ++
		}
	}
	return 2*differ > len(s.newest)
}

// repeated finds copies of one dump under the names of several ranks, as a gathering that goes wrong
// leaves them: sets of dumps that two processes do not write.
func repeated(taken []*item) (sets [][]*item) {
	alike := map[uint64][]*item{}
	for _, it := range taken {
		if it.stamps.sum != 0 {
			alike[it.stamps.sum] = append(alike[it.stamps.sum], it)
		}
	}
	for _, it := range taken {
		of := alike[it.stamps.sum]
		if len(of) > 1 && of[0] == it && (it.stamps.exact || beyondChance(it, len(of), taken, alike)) {
			sets = append(sets, of)
		}
	}
	return sets
}

// beyondChance reports whether equal dumps with times in whole milliseconds are copies all the same:
// other clocks of the job are finer, or at least as many other ranks share no times with them or anybody.
func beyondChance(it *item, copies int, taken []*item, alike map[uint64][]*item) bool {
	single := 0
	for _, o := range taken {
		if o.stamps.exact {
			return true
		}
		if len(alike[o.stamps.sum]) == 1 && it.stamps.apart(&o.stamps) {
			single++
		}
	}
	return single >= max(2, copies)
}

// whoseCopies takes out the dumps of which copies are there under the names of other ranks: nobody
// knows whose they are, so that nothing is known of these ranks. copied says it in words; where nothing
// is left all are kept.
func (r *run) whoseCopies(taken []*item) (left []*item, absent []model.Absence, copied string) {
	var texts []string
	out := map[*item]bool{}
	for _, of := range repeated(taken) {
		ranks := map[int64]bool{}
		for _, it := range of {
			ranks[it.rank], out[it] = true, true
		}
		what := "the dumps of " + ranksText(ranks) + " are copies of one: their operations have the same times " + of[0].stamps.sameTo()
		r.out.Stats.Repeated++
		r.problem(of[0], what+"; gather the dump of each rank again")
		texts = append(texts, what)
	}
	for _, it := range taken {
		if !out[it] {
			left = append(left, it)
			continue
		}
		absent = append(absent, model.Absence{Rank: it.rank, Reason: model.AbsentRefused, Detail: "its dump is a copy of another rank's, or that of its own"})
	}
	if len(left) == 0 {
		left, absent = taken, nil
	}
	return left, absent, strings.Join(texts, "; ")
}

// takeBack says that there are copies. Nothing is healthy beside them, and where there is nothing else
// nothing hangs by them.
func (h *Hang) takeBack(copied string, all bool) {
	switch {
	case copied == "":
	case all:
		h.Verdict, h.MayRun, h.Roots = desync.Undecided, copied, nil
	case h.Verdict == desync.Healthy:
		h.Verdict, h.MayRun = desync.Undecided, copied
	default:
		h.Remarks = append(h.Remarks, "T"+copied[1:]+".")
	}
}
