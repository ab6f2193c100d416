// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/lockstep-otel/lockstep/internal/stats"

// stretchOf returns the frames in which the rank's excess is most: those over which the
// sum of its shares beyond half the gate is largest. Single wild steps count no more
// than a few gates do.
func (t *trial) stretchOf(s *standing) (from, to int) {
	usual := t.cfg.MinExcessShare / 2
	most := 4 * max(t.cfg.MinExcessShare, t.noise.step)
	best, sum, begin := 0.0, 0.0, 0
	from, to = 0, len(t.frames)
	for i, f := range t.frames {
		if sum <= 0 {
			sum, begin = 0, i
		}
		if e := t.h.at(s.n, f); e != nil && e.flags&entryCompared != 0 {
			sum += max(-most, min(most, e.share(e.net()))) - usual
		}
		if sum > best {
			best, from, to = sum, begin, i+1
		}
	}
	return from, to
}

// A stretch is told in place of the window where it is so much shorter, and the excess
// outside of it is no more than this part of that in it.
const (
	shorter = 0.9
	outside = 0.5
)

// try tests a rank over the window and over its stretch, and returns the better.
func (t *trial) try(s *standing) test {
	whole := t.ask(s, 0, len(t.frames), 1)
	from, to := t.stretchOf(s)
	from, to = t.trimmed(s, from, to, outside*max(whole.share, t.cfg.MinExcessShare))
	if t.gate(s, &whole) == "" {
		t.burst(s, &whole, 1)
	}
	if float64(to-from) > shorter*float64(len(t.frames)) {
		return whole
	}
	// So many stretches of this length hold no step in common, twice.
	tries := 2 * float64(len(t.frames)) / float64(to-from)
	part := t.ask(s, from, to, tries)
	if t.gate(s, &part) == "" {
		t.burst(s, &part, float64(len(t.frames)))
	}
	if t.gate(s, &whole) == "" && t.shareOutside(s, from, to) > outside*part.share {
		return whole
	}
	if t.gate(s, &part) == "" || part.chance < whole.chance {
		return part
	}
	return whole
}

// trimmed takes steps off both ends of a stretch that show less than a share.
func (t *trial) trimmed(s *standing, from, to int, least float64) (int, int) {
	low := func(i int) bool {
		e := t.h.at(s.n, t.frames[i])
		return e == nil || e.share(e.net()) < least
	}
	a, b := from, to
	for a < b && low(a) {
		a++
	}
	for b > a && low(b-1) {
		b--
	}
	if a == b {
		return from, to
	}
	return a, b
}

// shareOutside returns the rank's typical share in the frames before and after a stretch.
func (t *trial) shareOutside(s *standing, from, to int) float64 {
	t.buf = t.buf[:0]
	add := func(e *entry) { t.buf = append(t.buf, e.share(e.net())) }
	t.over(s.n, 0, from, add)
	t.over(s.n, to, len(t.frames), add)
	return stats.SelectMedian(t.buf)
}
