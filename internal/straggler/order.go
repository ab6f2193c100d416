// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// In a step some rank of a role has the largest excess, whoever it is. That it is the
// same one step after step is what chance does not do, whatever the noise looks like:
// the judge's own test rests on how excess is spread, of which few steps say little.

// orderly reports whether the order of ranks says anything of the candidate: of who is
// held up in some steps only, or has no peers in its own rendezvous, it says nothing.
func (c *candidate) orderly() bool {
	sender := c.place.sort == placeLink && c.Side == ""
	return (c.place.sort == placeRank || sender) && !c.few && !c.Intermittent && c.in.compared(c.Rank, c.by())
}

// by returns what ranks are put in order by.
func (c *candidate) by() ordering {
	if c.place.sort == placeLink {
		return byWires
	}
	return byExcess
}

// ordering is a quantity of a rank, and whether it could be compared with peers'.
type ordering func(*rankRecord) (int64, bool)

// byExcess orders by what a rank is named for. Its segments tell less: those who meet in a
// group are compared there, and where most of them are slow, none of them is.
func byExcess(r *rankRecord) (int64, bool) { return beyondPeers(r), r.weighed }

func byWires(r *rankRecord) (int64, bool) { return r.wire, r.wired }

// compared reports whether in most steps somebody of the rank's role could be compared
// with it.
func (in stretch) compared(rank int64, by ordering) bool {
	n := 0
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			if _, peers := rec.position(i, by); peers > 1 {
				n++
			}
		}
	}
	return 2*n > len(in)
}

// byOrder returns the probability that chance alone puts one of so many ranks among the
// first as often as the candidate, where among are the candidates of its role, itself
// too. It is asked of the whole window and of the candidate's stretch, which is one of as
// many as there are stretches of its length. Where only communication was recorded, who is
// behind stays the last for some steps without being slower: only the window counts there.
func (j *job) byOrder(c *candidate, among int) float64 {
	ranks := float64(len(c.in[0].ranks) * max(1, j.looks))
	whole := stretch(j.window)
	best := 1.0
	for _, first := range []int{1, among} {
		best = min(best, ranks*whole.leads(c, first))
		if len(c.in) >= minTrials && !c.in.dark(c.Rank) {
			best = min(best, ranks*c.in.leads(c, first)*float64(len(whole))/float64(len(c.in)))
		}
	}
	if among > 1 {
		best *= 2 // two questions
	}
	return min(1, best)
}

// leads returns the probability that the candidate's rank is among the first in as many
// steps. Of noise that lasts, steps count as fewer: who leads in one leads in the next. A part
// of a step in which it led is none, and of one in which it did not is one.
func (in stretch) leads(c *candidate, first int) float64 {
	rank, by := c.Rank, c.by()
	top, trials, share := 0, 0, 0.0
	for _, rec := range in {
		i, ok := rec.index[rank]
		if !ok {
			continue
		}
		at, peers := rec.position(i, by)
		if peers < 2 {
			continue
		}
		trials++
		share += min(1, float64(first)/float64(peers))
		if at < first {
			top++
		}
	}
	worth := judge.Worth(trials, c.Memory) / float64(max(1, trials))
	led := int(worth * float64(top))
	not := int(math.Ceil(worth * float64(trials-top)))
	return stats.BinomialTailSum(led, led+not, share/float64(max(1, trials)))
}

// position returns how many ranks of the i-th's role had more than it, all that could be
// compared if it had nothing itself, and how many could be compared.
func (rec *record) position(i int, by ordering) (at, peers int) {
	self, known := by(&rec.ranks[i])
	for k := range rec.ranks {
		if rec.ranks[k].role != rec.ranks[i].role {
			continue
		}
		r := &rec.ranks[k]
		if x, ok := by(r); ok {
			if peers++; k != i && r.unlaunched {
				x = min(x, r.excess.busy()) // its idleness is not only its host's
			}
			if x > self {
				at++
			}
		}
	}
	if !known || self <= 0 {
		return peers, peers
	}
	return at, peers
}
