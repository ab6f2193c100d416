// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

const (
	// manyStamps is how many exact times of operations two processes do not share. Times that are
	// rounded to milliseconds can be equal by chance.
	manyStamps = 8
	// manyCopies is how many dumps must be equal to be copies of one, where others differ.
	manyCopies = 3
)

// stampsOf is a hash of what a dump recorded and when; 0 where other processes can have the same.
func stampsOf(d *flightrecorder.Dump) uint64 {
	h := fnv.New64a()
	exact := map[int64]bool{}
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.Created%1_000_000 != 0 && len(exact) < manyStamps {
			exact[e.Created] = true
		}
		_, thread := d.Thread(e)
		_ = binary.Write(h, binary.LittleEndian, []int64{e.Created, e.StartSeen, e.EndSeen, e.Record, e.Coll, e.P2P, int64(e.State)}) // a hash takes all
		_, _ = h.Write([]byte(d.Name(e) + "\x00" + thread + "\x00"))
	}
	if len(exact) < manyStamps {
		return 0
	}
	return h.Sum64()
}

// repeated takes back what rests on copies of one dump under the names of several ranks, as a
// gathering that goes wrong leaves them. Dumps without exact times can be equal without being copies.
func (r *run) repeated(h *Hang, taken []*item) {
	alike := map[uint64][]*item{}
	for _, it := range taken {
		if it.stamps != 0 {
			alike[it.stamps] = append(alike[it.stamps], it)
		}
	}
	for _, it := range taken {
		of := alike[it.stamps]
		all := len(of) == len(taken)
		if len(of) < 2 || of[0] != it || !all && len(of) < manyCopies {
			continue
		}
		ranks := map[int64]bool{}
		for _, one := range of {
			ranks[one.rank] = true
		}
		what := "the dumps of " + ranksText(ranks) + " are copies of one: their operations have the same times to the nanosecond, which those of two processes do not have"
		r.out.Stats.Repeated++
		r.problem(it, what+"; gather the dump of each rank again")
		if h.Verdict != desync.Healthy && (!all || len(h.Absent) > 0) {
			h.Remarks = append(h.Remarks, "T"+what[1:]+".")
			continue
		}
		h.Verdict, h.MayRun = desync.Undecided, what
		h.Roots = slices.DeleteFunc(h.Roots, func(desync.Root) bool { return all })
	}
}
