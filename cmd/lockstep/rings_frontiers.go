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
type ringFrontiers map[commKey]*commRanks

func (f ringFrontiers) add(r *ring.Ring) {
	h := r.Header()
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
	c := f[key]
	if c == nil {
		c = &commRanks{name: strings.TrimSpace(name), numbers: map[string]map[int64]uint64{}}
		f[key] = c
	}
	c.members = append(c.members, rank)
}

func (f ringFrontiers) enqueued(key commKey, function string, rank int64, number uint64) {
	if function == "Send" || function == "Recv" {
		return // of these ranks may have different numbers
	}
	of := f[key].numbers
	if of[function] == nil {
		of[function] = map[int64]uint64{}
	}
	of[function][rank] = number
}

// maxFrontierLines bounds the comparison: the blocking one is among the first.
const maxFrontierLines = 16

// write prints where ranks have come differently far.
func (f ringFrontiers) write(w io.Writer) {
	var lines []string
	for _, key := range slices.SortedFunc(maps.Keys(f), func(a, b commKey) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.hash, b.hash))
	}) {
		c := f[key]
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
