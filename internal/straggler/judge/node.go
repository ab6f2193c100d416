// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// A host is told in place of its ranks where so many of them stand out, and by about
// the same: the strongest no more than nodeAlike times the weakest.
const (
	nodeShare = 0.75
	nodeAlike = 3
)

// hostTest says how far the ranks of a host stand out together.
type hostTest struct{ share, z, chance float64 }

// fewHosts reports whether so many of all hosts stand out few enough for the rest to say
// what is usual. Of two, one is told only where it would be of two ranks.
func (t *trial) fewHosts(found []string, hosts int) bool {
	if hosts == 2 && len(found) == 1 {
		x := t.together[found[0]]
		return x.share >= pairShare && x.z >= pairZ
	}
	return 2*len(found) < hosts
}

// hosts finds hosts whose ranks stand out together, though some of them or all would
// not alone, or though they are so many that ranks seem to differ by as much. What ranks
// of a host differ by says how sure that is; hosts differ by as much as devices do.
func (t *trial) hosts() {
	by := map[string][]*standing{}
	for i := range t.ranks {
		if s := &t.ranks[i]; s.m.seat.Host != "" && s.m.device.rung != RungHistory {
			by[s.m.seat.Host] = append(by[s.m.seat.Host], s)
		}
	}
	if len(by) < 2 {
		return
	}
	within, ok := t.withinHosts(by)
	if !ok {
		return
	}
	t.together = map[string]hostTest{}
	for host, of := range by {
		n, sum := 0, 0.0
		for _, s := range of {
			if s.typical >= t.cfg.MinExcessShare && !t.workUnknown(s, t.frames) {
				n++
			}
			sum += s.typical
		}
		if len(of) < 2 || float64(n) < nodeShare*float64(len(of)) {
			continue
		}
		mean := sum / float64(len(of))
		step := sq(stats.MedianError*t.noise.step) * inflation(len(t.frames), t.noise.likely) / float64(len(t.frames))
		// Ranks of a host may share what they have to do, and so the noise of steps.
		z := mean / math.Sqrt(sq(workerSpread)+sq(within)/float64(len(of))+step)
		chance := min(1, stats.StudentTail(z, priorWorkers+float64(min(len(t.frames), len(t.ranks))))*float64(len(by)*t.looks)*young(len(t.frames)))
		if chance <= hostAlarm*t.cfg.MaxFalseAlarm {
			t.together[host] = hostTest{mean, z, chance}
		}
	}
	if !t.fewHosts(sortedKeys(t.together), len(by)) {
		return
	}
	for host, found := range t.together {
		for _, s := range by[host] {
			if s.named || s.typical < t.cfg.MinExcessShare || t.workUnknown(s, t.frames) {
				continue
			}
			x := t.try(s)
			x.chance = min(x.chance, found.chance)
			s.named = true
			t.suspects = append(t.suspects, &suspect{standing: s, test: x, limit: hostAlarm * t.cfg.MaxFalseAlarm})
		}
	}
	slices.SortStableFunc(t.suspects, func(a, b *suspect) int { return int(a.n) - int(b.n) })
}

// withinHosts returns by what ranks differ from their host's median.
func (t *trial) withinHosts(by map[string][]*standing) (float64, bool) {
	var all []float64
	for _, of := range by {
		if len(of) < 2 {
			continue
		}
		t.buf = t.buf[:0]
		for _, s := range of {
			t.buf = append(t.buf, s.typical)
		}
		mid := stats.SelectMedian(t.buf)
		for _, s := range of {
			all = append(all, math.Abs(s.typical-mid))
		}
	}
	if len(all) < minCohort {
		return 0, false
	}
	return max(stats.MADToSigma*stats.SelectMedian(all), leastSpread), true
}

// hostCounts returns how many ranks of each host there are, and how many stand out.
func (t *trial) hostCounts() (size map[string]int, named map[string][]*suspect) {
	size, named = map[string]int{}, map[string][]*suspect{}
	for i := range t.ranks {
		size[t.ranks[i].m.seat.Host]++
	}
	for _, s := range t.suspects {
		named[s.m.seat.Host] = append(named[s.m.seat.Host], s)
	}
	return size, named
}

// wholeHosts returns the hosts that stand out as a whole, among others that do not.
func (t *trial) wholeHosts() map[string]bool {
	size, named := t.hostCounts()
	out := map[string]bool{}
	for host, of := range named {
		if host == "" || size[host] < 2 || float64(len(of)) < nodeShare*float64(size[host]) {
			continue
		}
		least, most := math.Inf(1), 0.0
		for _, s := range of {
			least, most = min(least, s.test.share), max(most, s.test.share)
		}
		if most <= nodeAlike*least {
			out[host] = true
		}
	}
	if len(size) < 2 || !t.fewHosts(sortedKeys(out), len(size)) {
		return nil
	}
	return out
}

// nodes tells of whole hosts in place of their ranks.
func (t *trial) nodes() {
	whole := t.wholeHosts()
	size, named := t.hostCounts()
	for _, host := range sortedKeys(whole) {
		of := named[host]
		class := of[0].class
		if slices.ContainsFunc(of, func(s *suspect) bool { return s.class != class || s.intermittent }) {
			continue
		}
		c := Conclusion{Class: model.ClassNode, Rank: -1, Host: host, Stage: -1, Peer: -1}
		if class == model.ClassHost {
			c.Cause = model.CauseUnknown
		}
		for _, s := range of {
			c.Ranks = append(c.Ranks, s.m.seat.Rank)
		}
		slices.Sort(c.Ranks)
		t.measure(&c, of)
		// They are no peers of each other here.
		for _, s := range of[1:] {
			if s.m.cohort == of[0].m.cohort && c.Peers > 0 {
				c.Peers--
			}
		}
		if len(size) == 2 {
			c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare, limit: hostAlarm * t.cfg.MaxFalseAlarm, pair: true})
		}
		t.out = append(t.out, c)
		t.suspects = slices.DeleteFunc(t.suspects, func(s *suspect) bool { return s.m.seat.Host == host })
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
