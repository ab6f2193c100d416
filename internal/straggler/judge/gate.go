// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Gates, in order.
const (
	gateShare  = "excess_share"
	gateChance = "false_alarm"
	gatePair   = "pair"
	gateHalf   = "half"
	gateWork   = "work_unknown"
)

// Of two ranks that differ the slower is named only if it is slower by much, since
// nobody says what is usual.
const (
	pairShare = 0.2
	pairZ     = 8
)

// gate returns the first gate that the rank does not pass.
func (t *trial) gate(s *standing, x *test) string {
	switch {
	case x.share < t.cfg.MinExcessShare:
		return gateShare
	case x.chance > rankAlarm*t.cfg.MaxFalseAlarm:
		return gateChance
	case (x.share < pairShare || x.z < pairZ) && t.basis(s, x.from, x.to).pair:
		return gatePair
	case t.workUnknown(s, t.frames[x.from:x.to]):
		return gateWork
	}
	return ""
}

// basis returns with whom the rank was compared in what it is named for: that of the
// device only where its excess would do alone.
func (t *trial) basis(s *standing, from, to int) basis {
	if s.m.device == s.m.host {
		return s.m.device
	}
	if device, host := t.parts(s, from, to); host > device || device < t.cfg.MinExcessShare {
		return s.m.host
	}
	return s.m.device
}

// abstain remembers the strongest rank that was not named.
func (t *trial) abstain(s *standing) {
	if s.typical <= 0 || (t.abstained != nil && t.abstained.Share >= s.typical) {
		return
	}
	x := t.try(s)
	gate := t.gate(s, &x)
	if gate == "" {
		return
	}
	a := &Abstention{Rank: s.m.seat.Rank, Class: t.classOf(s, x.from, x.to), Gate: gate, Share: x.share, Chance: x.chance}
	switch gate {
	case gateShare:
		a.Got, a.Want = x.share, t.cfg.MinExcessShare
	case gateChance:
		a.Got, a.Want = x.chance, rankAlarm*t.cfg.MaxFalseAlarm
	case gatePair:
		a.Got, a.Want = x.share, pairShare
	case gateWork:
		a.Got, a.Want = t.restOf(s, t.frames[x.from:x.to]).device, t.cfg.MinExcessShare
	}
	t.abstained = a
}

// dropMajorities takes back the names of ranks where half of their cohort or more stands
// out as they do: then nobody knows which half is as it should be, unless the rest of the
// stage does. One host may still be told from all others.
func (t *trial) dropMajorities() {
	size := map[cohortKey]int{}
	for i := range t.ranks {
		size[t.ranks[i].m.cohort]++
	}
	// Some are compared with more than are judged by them: those have better peers.
	for i := range t.ranks {
		m := t.ranks[i].m
		size[m.cohort] = max(size[m.cohort], m.device.peers+1)
	}
	// Ranks without peers are compared with all.
	size[cohortKey{}] = len(t.ranks)
	whole := t.wholeHosts()
	alike := make(map[*suspect]int, len(t.suspects))
	byCohort := map[cohortKey][]float64{}
	for _, s := range t.suspects {
		byCohort[s.m.cohort] = append(byCohort[s.m.cohort], s.test.share)
	}
	for _, shares := range byCohort {
		slices.Sort(shares)
	}
	for _, s := range t.suspects {
		shares := byCohort[s.m.cohort]
		from, _ := slices.BinarySearch(shares, s.test.share/alikeShare)
		alike[s] = len(shares) - from
	}
	var dropped []*suspect
	all := slices.Clone(t.suspects)
	t.suspects = slices.DeleteFunc(t.suspects, func(s *suspect) bool {
		half := (s.m.cohort != cohortKey{} || alike[s] > 1) && 2*alike[s] >= size[s.m.cohort]
		if half && !whole[s.m.seat.Host] && !t.settled(s) {
			dropped = append(dropped, s)
			if t.abstained == nil || t.abstained.Share < s.test.share {
				t.abstained = &Abstention{
					Rank: s.m.seat.Rank, Ranks: alikes(all, s), Class: t.classOf(s.standing, s.test.from, s.test.to), Gate: gateHalf,
					Got: float64(alike[s]) / float64(size[s.m.cohort]), Want: 0.5,
					Share: s.test.share, Chance: s.test.chance, Seconds: s.test.share * s.level,
				}
			}
			return true
		}
		return false
	})
	for _, s := range dropped {
		s.named = false
	}
}

// alikes returns the ranks of a suspect's cohort that stand out as it does.
func alikes(all []*suspect, s *suspect) (out []int64) {
	for _, o := range all {
		if o.m.cohort == s.m.cohort && o.test.share >= s.test.share/alikeShare {
			out = append(out, o.m.seat.Rank)
		}
	}
	slices.Sort(out)
	return out
}

// settled reports whether the symmetric members of the stage say which half of the rank's
// cohort is as it should be: they take as long as those of it that are not named. They are
// the next rung of the ladder then.
func (t *trial) settled(s *suspect) bool {
	of := s.m.cohort
	if of.level != levelSiblings {
		return false
	}
	own := t.ownTimes()
	var rest, members []float64
	for i := range t.ranks {
		o := &t.ranks[i]
		switch k := o.m.cohort; {
		case k == of && o.named:
		case k == of:
			rest = append(rest, own[i])
		case k.level == levelSiblings && k.role == of.role && k.pp == of.pp:
			members = append(members, own[i])
		}
	}
	others := len(members)
	if len(rest) == 0 || others < minCohort {
		return false
	}
	usual, spread := stats.Spread(members)
	near := min(s.test.share/2, t.cfg.MinExcessShare) * usual
	if spread > near || math.Abs(stats.SelectMedian(rest)-usual) > near {
		return false
	}
	s.among = basis{rung: RungMembers, peers: others}
	return true
}

// ownTimes returns the typical own time of each rank, s, which is found once.
func (t *trial) ownTimes() []float64 {
	for i := len(t.owns); i < len(t.ranks); i++ {
		t.buf = t.buf[:0]
		t.over(t.ranks[i].n, 0, len(t.frames), func(e *entry) { t.buf = append(t.buf, float64(e.own)) })
		t.owns = append(t.owns, stats.SelectMedian(t.buf))
	}
	return t.owns
}

// alikeShare is within which factor others stand out as much: who stands out by twice as
// much is another case.
const alikeShare = 2
