// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// stretch is a part of the window.
type stretch []*record

// caused returns the wait that the rank caused, in s over the stretch.
func (in stretch) caused(rank int64) (sum float64) {
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			sum += float64(rec.ranks[i].caused) / 1e9
		}
	}
	return sum
}

// allCaused returns the wait that all ranks caused, in s over the stretch.
func (in stretch) allCaused() (sum float64) {
	for _, rec := range in {
		for i := range rec.ranks {
			sum += float64(rec.ranks[i].caused) / 1e9
		}
	}
	return sum
}

// peersOwn returns the median over the other ranks of the rank's role of their
// own time per step, ns.
func (in stretch) peersOwn(rank int64) float64 {
	sums, steps := map[int64]int64{}, map[int64]int64{}
	for _, rec := range in {
		self, ok := rec.index[rank]
		for i := range rec.ranks {
			r := &rec.ranks[i]
			if !ok || r.role != rec.ranks[self].role {
				continue
			}
			sums[r.rank.Rank] += r.own.total()
			steps[r.rank.Rank]++
		}
	}
	var v []int64
	for r, s := range sums {
		if r != rank {
			v = append(v, s/steps[r])
		}
	}
	slices.Sort(v)
	return max(1, float64(stats.MedianMidpoint(v)))
}

// ownOf returns the rank's own time per step, ns. Where all that a rank did was
// recorded, mending it saves no more than it took longer than its peers: they do some
// of their work while they wait for it, which a replay of segments takes for granted.
func (in stretch) ownOf(rank int64) float64 {
	var sum, steps float64
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			sum += float64(rec.ranks[i].own.total())
			steps++
		}
	}
	return sum / max(1, steps)
}

// stepSeconds returns the mean step time.
func (in stretch) stepSeconds() float64 {
	var sum float64
	for _, rec := range in {
		sum += float64(rec.end-rec.start) / 1e9
	}
	return max(1e-9, sum/float64(len(in)))
}

// beforeWindow returns the share of the wait that the rank caused in meetings to
// which it came late because it was late when the recording began.
func (in stretch) beforeWindow(rank int64) float64 {
	var before, all int64
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			all += rec.ranks[i].caused
		}
		if !rec.leads {
			continue
		}
		for _, mr := range rec.meets {
			if !mr.attributed || mr.ranks[mr.last] != rank {
				continue
			}
			if m := &mr.members[mr.last]; m.lead && 2*mr.leadOf(mr.last) > mr.lateness(mr.last) {
				before += mr.waited
			}
		}
	}
	return float64(before) / float64(max(1, all))
}

// leadOf returns how much later than its peers' median the member's step began.
func (mr *meetingRecord) leadOf(i int) int64 {
	began := func(m *memberRecord) int64 { return m.enter - m.segment }
	return mr.beyondOthers(i, began)
}

// lateness returns how much later than its peers' median the member arrived.
func (mr *meetingRecord) lateness(i int) int64 {
	enter := func(m *memberRecord) int64 { return m.enter }
	return mr.beyondOthers(i, enter)
}

// beyondOthers returns how much more the member has than its peers' median; 0 without peers.
func (mr *meetingRecord) beyondOthers(i int, f func(*memberRecord) int64) int64 {
	var peers []int64
	mr.each(i, func(o *memberRecord) { peers = append(peers, f(o)) })
	own := f(&mr.members[i])
	return own - medianOr(peers, own)
}

// role returns the rank's role in the last step that it was seen in.
func (in stretch) role(rank int64) role {
	for n := len(in) - 1; n >= 0; n-- {
		if i, ok := in[n].index[rank]; ok {
			return in[n].ranks[i].role
		}
	}
	return 0
}
