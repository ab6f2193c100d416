// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Gates of links.
const (
	// linkRatio is by how much a transfer must take longer than its peers' (Greyhound,
	// ATC 2025, takes the same for communication).
	linkRatio = 0.2
	// linkStep is what share of the step the excess must be.
	linkStep = 0.01
	// linkSpread is by what healthy links of a class differ: shares of cables, hops and
	// switches. It counts as much as priorLinks links would.
	linkSpread = 0.05
	priorLinks = 8
	// linkMemory is expected of links: traffic of other jobs lasts for many steps.
	linkMemory = 0.5
	// lateShare is how large the excess of a link must be beside that of its sender, if
	// the sender itself is late: who comes last sends while all others wait for it, which
	// is no fair comparison with theirs.
	lateShare = 0.25
)

// trunk is one link, or group, over the window.
type trunk struct {
	*linkInfo
	n              int32
	from, to       int // frames
	steps          int
	peers          int     // others of its class
	typical, sigma float64 // s
	base           float64
	mean           float64
	chance, z      float64
	memories       // of its class
	bad            bool
}

// trunks brings up the links, and finds those that stand out.
func (t *trial) trunks() []trunk {
	l := t.links
	var all []trunk
	for _, n := range l.index {
		all = append(all, trunk{linkInfo: &l.infos[n], n: n})
	}
	slices.SortFunc(all, func(a, b trunk) int { return cmp.Compare(a.n, b.n) })
	byClass := map[linkClass][]*trunk{}
	kept := all[:0]
	for i := range all {
		k := all[i]
		k.from, k.to = 0, len(t.frames)
		t.measureTrunk(&k)
		if k.steps >= leastSteps {
			kept = append(kept, k)
		}
	}
	for i := range kept {
		k := &kept[i]
		c := linkClass{k.class, k.given, k.src < 0}
		byClass[c] = append(byClass[c], k)
	}
	for _, of := range byClass {
		t.testTrunks(of, len(kept))
	}
	return kept
}

// measureTrunk fills what the link took longer in its stretch.
func (t *trial) measureTrunk(k *trunk) {
	t.buf, t.buf2 = t.buf[:0], t.buf2[:0]
	k.mean = 0
	for _, f := range t.frames[k.from:k.to] {
		if e := t.links.at(k.n, f.number); e != nil {
			t.buf = append(t.buf, float64(e.excess))
			t.buf2 = append(t.buf2, float64(e.base))
			k.mean += float64(e.excess) / float64(k.to-k.from)
		}
	}
	if k.steps = len(t.buf); k.steps == 0 {
		return
	}
	k.typical, k.sigma = stats.Spread(t.buf)
	k.base = stats.SelectMedian(t.buf2)
}

// testTrunks judges the links of one class against each other.
func (t *trial) testTrunks(of []*trunk, all int) {
	memory := t.memoryOf(len(of), linkMemory, func(i, from, to int) {
		for _, f := range t.frames[from:to] {
			if e := t.links.at(of[i].n, f.number); e != nil {
				t.buf = append(t.buf, float64(e.excess))
			}
		}
	})
	for _, k := range of {
		k.peers, k.memories = len(of)-1, memory
	}
	for range rounds {
		t.buf, t.buf2 = t.buf[:0], t.buf2[:0]
		for _, k := range of {
			if !k.bad {
				t.buf = append(t.buf, k.typical)
				t.buf2 = append(t.buf2, k.sigma)
			}
		}
		n := len(t.buf)
		if n < 2 || 2*n <= len(of) {
			return
		}
		_, between := stats.Spread(t.buf)
		within := stats.SelectMedian(t.buf2)
		found := false
		for _, k := range of {
			if !k.bad && t.badTrunk(k, between, within, n, all) {
				k.bad, found = true, true
			}
		}
		if !found {
			return
		}
	}
}

func (t *trial) badTrunk(k *trunk, between, within float64, n, all int) bool {
	if t.testTrunk(k, between, within, n, all, 1) {
		return true
	}
	from, to := t.trunkStretch(k)
	if float64(to-from) > shorter*float64(len(t.frames)) {
		return false
	}
	part := *k
	part.from, part.to = from, to
	t.measureTrunk(&part)
	if part.steps < leastSteps || !t.testTrunk(&part, between, within, n, all, len(t.frames)) {
		return false
	}
	*k = part
	return true
}

func (t *trial) testTrunk(k *trunk, between, within float64, n, all, tries int) bool {
	worth := madWorth * float64(max(0, n-2))
	b := (priorLinks*sq(linkSpread*k.base) + worth*sq(between)) / (priorLinks + worth)
	b = max(b, sq(linkSpread*k.base/4), sq(timerFloor))
	inflated := inflation(k.steps, k.likely)
	mine := madWorth * max(1, float64(k.steps)/inflated-1)
	w := (priorSteps*sq(within) + mine*sq(k.sigma)) / (priorSteps + mine) * sq(stats.MedianError) * inflated / float64(k.steps)
	nu := sq(b+w) / (sq(b)/(priorLinks+worth) + sq(w)/(priorSteps+mine))
	k.z = k.typical / math.Sqrt(b+w)
	k.chance = min(1, stats.StudentTail(k.z, nu)*float64(all*t.looks*tries)*young(k.steps))
	return k.typical >= linkRatio*k.base && k.typical >= linkStep*t.stepSeconds(k.from, k.to) && k.chance <= linkAlarm*t.cfg.MaxFalseAlarm
}

// trunkStretch returns the frames in which the link's excess is most.
func (t *trial) trunkStretch(k *trunk) (from, to int) {
	usual := max(linkRatio*k.base, linkStep*t.stepSeconds(0, len(t.frames))) / 2
	best, sum, begin := 0.0, 0.0, 0
	to = len(t.frames)
	for i, f := range t.frames {
		if sum <= 0 {
			sum, begin = 0, i
		}
		if e := t.links.at(k.n, f.number); e != nil {
			sum += max(-8*usual, min(8*usual, float64(e.excess))) - usual
		}
		if sum > best {
			best, from, to = sum, begin, i+1
		}
	}
	return from, to
}

// stepSeconds returns the typical step's length.
func (t *trial) stepSeconds(from, to int) float64 {
	v := make([]float64, 0, to-from)
	for _, f := range t.frames[from:to] {
		v = append(v, f.seconds)
	}
	return stats.SelectMedian(v)
}

// matrixShare is how many of a card's links must stand out for the card to be named in
// their place: a row or column of the matrix of links (C4D, HPCA 2025).
const matrixShare = 0.75

// trace names cards, links and groups.
func (t *trial) trace() {
	all := t.trunks()
	var pairs, groups []*trunk
	for i := range all {
		switch {
		case all[i].src < 0:
			groups = append(groups, &all[i])
		default:
			pairs = append(pairs, &all[i])
		}
	}
	t.cards(pairs)
	t.groups(groups)
}

// side counts the links of one side of a card, by the rank at the other.
type side struct {
	all, bad map[int64]bool
	excess   float64
}

func sides(pairs []*trunk, of func(*trunk) (card, other int64)) map[int64]*side {
	out := map[int64]*side{}
	for _, k := range pairs {
		card, other := of(k)
		if card < 0 {
			continue
		}
		s := out[card]
		if s == nil {
			s = &side{all: map[int64]bool{}, bad: map[int64]bool{}}
			out[card] = s
		}
		s.all[other] = true
		if k.bad {
			s.bad[other] = true
			s.excess += k.typical
		}
	}
	return out
}

func (s *side) whole() bool {
	return len(s.bad) >= 2 && float64(len(s.bad)) >= matrixShare*float64(len(s.all))
}

// cards names the sending or receiving side of cards all of whose links stand out, and
// the links that are left.
func (t *trial) cards(pairs []*trunk) {
	tx := sides(pairs, func(k *trunk) (int64, int64) { return k.src, k.dst })
	rx := sides(pairs, func(k *trunk) (int64, int64) { return k.dst, k.src })
	left := map[[2]int64][]*trunk{}
	cards := map[nic][]*trunk{}
	for _, k := range pairs {
		if !k.bad {
			continue
		}
		out, in := tx[k.src], rx[k.dst]
		sends := out != nil && out.whole()
		receives := in != nil && in.whole()
		switch {
		case sends && (!receives || len(out.bad) >= len(in.bad)):
			cards[nic{k.src, SideSend}] = append(cards[nic{k.src, SideSend}], k)
		case receives:
			cards[nic{k.dst, SideReceive}] = append(cards[nic{k.dst, SideReceive}], k)
		default:
			at := [2]int64{min(k.src, k.dst), max(k.src, k.dst)}
			left[at] = append(left[at], k)
		}
	}
	for c, of := range cards {
		t.tellLink(of, c.rank, -1, c.side)
	}
	for _, of := range left {
		worst := slices.MaxFunc(of, func(a, b *trunk) int { return cmp.Compare(a.typical, b.typical) })
		t.tellLink(of, worst.src, worst.dst, "")
	}
}

type nic struct {
	rank int64
	side string
}

// groups names groups whose transfers take longer than those of other groups that do
// the same; where all groups of just one rank do, that rank.
func (t *trial) groups(groups []*trunk) {
	bad := map[group][]*trunk{}
	healthy, ill := map[int64]bool{}, map[int64]map[group]bool{}
	for _, k := range groups {
		if k.bad {
			bad[k.group] = append(bad[k.group], k)
		}
	}
	for _, k := range groups {
		for _, r := range k.members {
			if len(bad[k.group]) == 0 {
				healthy[r] = true
				continue
			}
			if ill[r] == nil {
				ill[r] = map[group]bool{}
			}
			ill[r][k.group] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(bad), compareGroups)
	if len(bad) >= 2 {
		var only []int64
		for r, in := range ill {
			if len(in) == len(bad) && !healthy[r] {
				only = append(only, r)
			}
		}
		if len(only) == 1 {
			var of []*trunk
			for _, name := range names {
				of = append(of, bad[name]...)
			}
			t.tellLink(of, only[0], -1, "")
			return
		}
	}
	for _, name := range names {
		t.tellLink(bad[name], -1, -1, "")
	}
}

// tellLink concludes that links, or a group, are slow.
func (t *trial) tellLink(of []*trunk, rank, peer int64, side string) {
	worst := slices.MaxFunc(of, func(a, b *trunk) int { return cmp.Compare(a.typical, b.typical) })
	c := Conclusion{
		Class: model.ClassLink, Rank: rank, Peer: peer, Side: side, Stage: -1, Comm: worst.group.comm, Digest: worst.group.digest, Op: worst.op,
		OpSec: worst.typical, Rung: RungLinks, Peers: worst.peers, Steadiness: worst.z, Memory: worst.measured,
	}
	from, to := worst.from, worst.to
	ranks := map[int64]bool{}
	base := 0.0
	for _, k := range of {
		from, to = min(from, k.from), max(to, k.to)
		c.Excess += k.typical
		c.Mean += k.mean
		base += k.base
		c.Chance = max(c.Chance, k.chance)
		if rank < 0 {
			for _, r := range k.members {
				ranks[r] = true
			}
		}
	}
	if rank >= 0 {
		ranks[rank] = true
		c.Host = t.hostOf(rank)
	}
	for r := range ranks {
		c.Ranks = append(c.Ranks, r)
	}
	slices.Sort(c.Ranks)
	if t.lateItself(rank, c.Excess) {
		return
	}
	c.Steps = worst.steps
	c.First, c.Last = t.frames[from].step, t.frames[to-1].step
	c.Share = c.Excess / t.stepSeconds(from, to)
	c.Numbers = map[string]float64{"steadiness": worst.z, NumberPeers: base, "links": float64(len(of))}
	c.Confidence = confidence(&c, &features{gate: linkStep, limit: linkAlarm * t.cfg.MaxFalseAlarm})
	if worst.given && peer < 0 && side == "" {
		c.Confidence *= 0.9
	}
	t.out = append(t.out, c)
}

// lateItself reports whether the sender was named for being late, and the excess of the
// link is no more than that may bring about.
func (t *trial) lateItself(rank int64, excess float64) bool {
	for i := range t.out {
		c := &t.out[i]
		if (c.Class == model.ClassCompute || c.Class == model.ClassHost) && c.Rank == rank && rank >= 0 && excess <= lateShare*c.Excess {
			return true
		}
	}
	return false
}

func (t *trial) hostOf(rank int64) string {
	if n, ok := t.h.index[rank]; ok {
		return t.h.members[n].seat.Host
	}
	return ""
}
