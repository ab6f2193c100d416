// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// commKey is what ranks share of a communicator.
type commKey struct {
	job  string
	hash uint64
}

// commRanks is how far the ranks of a communicator have come whose rings were read.
type commRanks struct {
	name    string
	members []int64
	numbers map[string]map[int64]uint64 // by function and rank: the number enqueued last
}

// ringFrontiers compares how far ranks have come; the rings bound it.
type ringFrontiers struct {
	comms map[commKey]*commRanks
	rings map[jobRank]int // of each rank that a process says it is
}

type jobRank struct {
	job  string
	rank int64
}

func newRingFrontiers() ringFrontiers {
	return ringFrontiers{comms: map[commKey]*commRanks{}, rings: map[jobRank]int{}}
}

func (f ringFrontiers) add(r *ring.Ring) {
	h := r.Header()
	if h.Rank != ring.None {
		f.rings[jobRank{h.JobID, int64(h.Rank)}]++
	}
	keys := map[uint16]commKey{}
	ranks := map[uint16]int64{}
	for _, c := range r.Comms(nil) {
		if c.Index == 0 || c.Ended { // 0 stands for several
			continue
		}
		rank := h.Rank
		if rank == ring.None {
			rank = c.Rank
		}
		keys[c.Index], ranks[c.Index] = commKey{h.JobID, c.Hash}, int64(rank)
		f.member(keys[c.Index], fmt.Sprintf("%016x %s", c.Hash, c.Name), int64(rank))
	}
	for _, front := range r.Frontiers(nil) {
		if key, ok := keys[front.Comm]; ok && front.Enqueued.Known {
			f.enqueued(key, r.String(uint16(front.Func)), ranks[front.Comm], front.Enqueued.Seq)
		}
	}
}

func (f ringFrontiers) member(key commKey, name string, rank int64) {
	c := f.comms[key]
	if c == nil {
		c = &commRanks{name: strings.TrimSpace(name), numbers: map[string]map[int64]uint64{}}
		f.comms[key] = c
	}
	if !slices.Contains(c.members, rank) {
		c.members = append(c.members, rank)
	}
}

func (f ringFrontiers) enqueued(key commKey, function string, rank int64, number uint64) {
	if function == "Send" || function == "Recv" {
		return // of these ranks may have different numbers
	}
	of := f.comms[key].numbers
	if of[function] == nil {
		of[function] = map[int64]uint64{}
	}
	// Of a rank with several rings the one that came furthest counts.
	of[function][rank] = max(number, of[function][rank])
}

// maxFrontierLines bounds the comparison: the blocking one is among the first.
const maxFrontierLines = 16

// write prints which ranks have several rings, and where ranks have come
// differently far.
func (f ringFrontiers) write(w io.Writer) {
	f.writeSeveral(w)
	var lines []string
	for _, key := range slices.SortedFunc(maps.Keys(f.comms), func(a, b commKey) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.hash, b.hash))
	}) {
		c := f.comms[key]
		for _, function := range slices.Sorted(maps.Keys(c.numbers)) {
			if text := c.compare(function); text != "" {
				lines = append(lines, fmt.Sprintf("  communicator %s, %s: %s\n", c.name, function, text))
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "Ranks of a communicator have come differently far (those of a running job do for a moment):")
	for _, l := range lines[:min(len(lines), maxFrontierLines)] {
		_, _ = io.WriteString(w, l)
	}
	if more := len(lines) - maxFrontierLines; more > 0 {
		_, _ = fmt.Fprintf(w, "  and %d more\n", more)
	}
}

// writeSeveral says which ranks have several rings: of an earlier start of the job,
// or of several processes.
func (f ringFrontiers) writeSeveral(w io.Writer) {
	jobs := map[string][]int64{}
	for of, rings := range f.rings {
		if rings > 1 {
			jobs[of.job] = append(jobs[of.job], of.rank)
		}
	}
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		slices.Sort(jobs[job])
		of := ""
		if job != "" {
			of = " in job " + job
		}
		_, _ = fmt.Fprintf(w, "Several rings of one rank%s: %s (of an earlier start, or of several processes). Each rank counts once, by the ring that came furthest.\n",
			of, report.Ranks(jobs[job]))
	}
}

// compare says which ranks have come how far, or nothing where all are equal.
func (c *commRanks) compare(function string) string {
	groups := map[uint64][]int64{} // by number plus 1; 0: none
	for _, rank := range c.members {
		at := uint64(0)
		if number, ok := c.numbers[function][rank]; ok {
			at = number + 1
		}
		groups[at] = append(groups[at], rank)
	}
	if len(groups) < 2 {
		return ""
	}
	var parts []string
	for i, at := range slices.Backward(slices.Sorted(maps.Keys(groups))) {
		slices.Sort(groups[at])
		who := report.Ranks(groups[at])
		switch {
		case i == len(groups)-1 && len(groups[at]) == 1:
			parts = append(parts, fmt.Sprintf("%s has enqueued number %d", who, at-1))
		case i == len(groups)-1:
			parts = append(parts, fmt.Sprintf("%s have enqueued number %d", who, at-1))
		case at == 0:
			parts = append(parts, who+" none on record")
		default:
			parts = append(parts, fmt.Sprintf("%s only %d", who, at-1))
		}
	}
	return strings.Join(parts, ", ")
}
