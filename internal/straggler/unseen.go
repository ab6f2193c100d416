// SPDX-License-Identifier: Apache-2.0

package straggler

import "slices"

// Of members that were not seen nobody knows when they came. A replay that takes them for
// punctual says what a rank costs at most by way of them, one that takes them to have held
// up all others for as long as those stayed says what it costs at least.

// minMissing is which share of the ranks must be missing for a rank to be told by what it
// keeps others waiting although no replay shows it. Whom it holds up is known by way of
// those who wait for it and are waited for, and with one in twenty missing a way over a
// dozen ranks is rather cut than whole.
const minMissing = 0.05

// bound fills what the candidate costs at least and at most.
func (c *candidate) bound() {
	if c.place.sort != placeRank && c.place.sort != placeHost || c.few {
		return
	}
	missing := c.in.seenShare() <= 1-minMissing
	if !missing && !slices.ContainsFunc(c.in, func(rec *record) bool { return rec.open }) {
		return
	}
	of := map[int64]bool{}
	for _, r := range c.Ranks {
		of[r] = true
	}
	open, stayed, ahead := c.in.unseenBy(of)
	// A walk crosses what is open as if nobody had come later, too.
	if m, by := c.mending(); open && (by == c.costBy || c.costBy == byWalks) {
		m.apart = true
		if least := max(0, float64(replay(c.in, m))) / 1e9 / float64(len(c.in)); least < c.cost {
			c.least = &least
			if by == c.costBy {
				c.stayed = stayed
			}
		}
	}
	if missing {
		c.most = min(c.Mean, ahead)
	}
}

// unseenBy returns of some ranks: whether members of their meetings were not seen who may
// have come later; for how long they stayed in those behind the last one seen; and by how
// much they were the last of those seen, in all. Both are s per step, of the rank with most.
func (in stretch) unseenBy(of map[int64]bool) (open bool, stayed, ahead float64) {
	stay, lead := map[int64]int64{}, map[int64]int64{}
	for _, rec := range in {
		for _, mr := range rec.meets {
			if !mr.attributed && !mr.open {
				continue
			}
			open = open || rec.undecided(mr)
			var second int64
			others := false
			for i := range mr.members {
				m := &mr.members[i]
				switch {
				case !of[mr.ranks[i]]:
					second, others = max(second, m.enter), true
				case mr.open && !mr.attributed && rec.lacks(mr):
					stay[mr.ranks[i]] += max(0, m.exit-mr.arrived)
				}
			}
			if last := mr.ranks[mr.last]; of[last] && others {
				lead[last] += max(0, mr.arrived-second)
			}
		}
	}
	for r := range of {
		stayed, ahead = max(stayed, seconds(stay[r])), max(ahead, seconds(lead[r]))
	}
	n := float64(max(1, len(in)))
	return open, stayed / n, ahead / n
}

// lacks reports whether a member of the meeting may be of a rank of which nothing was
// recorded in the step: else its operation was lost, and by what else was recorded of it
// that rank is judged itself.
func (rec *record) lacks(mr *meetingRecord) bool {
	return rec.missingCount > 0 || mr.shown.size > len(rec.ranks)
}

// undecided reports whether a member that was not seen may have come later than the last one
// seen. Who left promptly can only have waited for a rank of which nothing was recorded.
func (rec *record) undecided(mr *meetingRecord) bool {
	return mr.open && (!mr.attributed || rec.lacks(mr))
}

// perhapsCaused is which part of the wait that a rank caused, s per step, may be owed to who
// was not seen.
func (in stretch) perhapsCaused(rank int64) float64 {
	sum := int64(0)
	for _, rec := range in {
		for _, mr := range rec.meets {
			if mr.attributed && mr.ranks[mr.last] == rank && rec.undecided(mr) {
				sum += mr.waited
			}
		}
	}
	return seconds(sum) / float64(len(in))
}

// doubt is what part of what the candidate is worth stands against what it may have waited
// for others who were not seen, itself; 1 where they do not matter.
func (c *candidate) doubt() float64 {
	worth := max(c.worth(), c.most)
	if c.stayed <= worth {
		return 1
	}
	return worth / c.stayed
}

// mostDoubt is the least that stands against it for the candidate to be told: else rather
// somebody who was not seen is who was waited for.
const mostDoubt = 0.5

// behindUnseen reports whether the candidate may itself have waited for others who were
// not seen for much longer than it is worth.
func (c *candidate) behindUnseen() failure {
	if c.doubt() < mostDoubt {
		return failure{gateUnseen, c.share(max(c.worth(), c.most)), mostDoubt * c.share(c.stayed)}
	}
	return failure{}
}

// seenMembers returns the share of the members of communicators that were seen in their
// meetings, where the size is known.
func (in stretch) seenMembers() float64 {
	seen, all := 0, 0
	for _, rec := range in {
		seen, all = seen+rec.seen, all+rec.size
	}
	if all == 0 {
		return 1
	}
	return float64(seen) / float64(all)
}
