// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Where spans are lost, a replay gains less than there is: what was lost has no excess, and
// rendezvous that lack a member hold nobody up. Who is mended saves no more than his whole
// excess. As large a part of it was lost as of his operations, if whatever loses them does
// not choose; of idleness, as large a part as there are holes, in which it says nothing.

// minLost is which share must be lost for what a rank costs to be known as an interval, and
// to be told of the job: less is what recordings lack where they begin and end.
const minLost = 0.02

// lost returns what shares of the operations and of the time of the candidate's ranks say
// nothing, and in what share of the steps these were seen.
func (c *candidate) lost() (ops, time, seen float64) {
	n := 0
	for _, rec := range c.in {
		for _, rank := range c.Ranks {
			if i, ok := rec.index[rank]; ok {
				n++
				ops, time = ops+float64(rec.ranks[i].lost), time+float64(rec.ranks[i].blind)
			}
		}
	}
	all := float64(max(1, n))
	return ops / all, time / all, all / float64(max(1, len(c.in)*len(c.Ranks)))
}

// whole returns the candidate's mean excess with what was lost of it, s per step, and no
// more than a step is long; 0 where too little was lost.
func (c *candidate) whole() float64 {
	if c.few || (c.place.sort != placeRank && c.place.sort != placeHost) {
		return 0
	}
	ops, time, seen := c.lost()
	if ops < minLost && seen > 1-minMissing {
		return 0
	}
	known := 1 - ops
	if c.Class == model.ClassHost || c.Cause != "" {
		known = min(known, 1-time)
	}
	length := 0.0
	for _, rec := range c.in {
		length += seconds(rec.end-rec.start) / float64(len(c.in))
	}
	if known*seen*length <= c.Mean {
		return length
	}
	return max(0, c.Mean) / known / seen
}

// blindShare returns what share of the rank's step lies in holes.
func (v *rankView) blindShare() float64 {
	sum := int64(0)
	for _, h := range v.holes {
		sum += max(0, min(h.end, v.end)-max(h.start, v.start))
	}
	return float64(sum) / float64(max(1, v.end-v.start))
}

// lose counts communication that was lost.
func (f *faults) lose(v *rankView) { f.lost, f.told = f.lost+v.lost, f.told+v.told }

// sayLost says how much communication was lost, "" where it is little.
func (f *faults) sayLost() string {
	share := f.lost / max(1, f.told)
	if share < minLost {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the communication is missing by its numbers, and maybe as much of all else: what ranks cost is told too low, and nothing of who had more operations to run. Does something drop spans?", 100*share)
}
