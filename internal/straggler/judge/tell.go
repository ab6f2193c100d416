// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// parts returns the typical shares of device and host in a stretch.
func (t *trial) parts(s *standing, from, to int) (device, host float64) {
	known := t.restOf(s, t.frames[from:to]).device >= t.cfg.MinExcessShare
	t.buf, t.buf2 = t.buf[:0], t.buf2[:0]
	t.over(s.n, from, to, func(e *entry) {
		slow := e.slow()
		if !known {
			slow -= float64(e.unknown)
		}
		t.buf = append(t.buf, e.share(slow))
		t.buf2 = append(t.buf2, e.share(e.host()))
	})
	return stats.SelectMedian(t.buf), stats.SelectMedian(t.buf2)
}

func (t *trial) classOf(s *standing, from, to int) string {
	if device, host := t.parts(s, from, to); host > device {
		return model.ClassHost
	}
	return model.ClassCompute
}

func (t *trial) classify(s *suspect) {
	if s.class == "" {
		s.class = t.classOf(s.standing, s.test.from, s.test.to)
	}
}

// conclude tells of one rank.
func (t *trial) conclude(s *suspect) {
	c := Conclusion{
		Class: s.class, Rank: s.m.seat.Rank, Host: s.m.seat.Host, Stage: -1, Peer: -1,
		Ranks: []int64{s.m.seat.Rank}, Intermittent: s.intermittent, Pauses: s.pauses, Held: s.held, Memory: t.noise.measured,
	}
	t.measure(&c, []*suspect{s})
	t.out = append(t.out, c)
}

// measure fills what suspects of one place have in common.
func (t *trial) measure(c *Conclusion, of []*suspect) {
	first := of[0]
	from, to := first.test.from, first.test.to
	limit := first.limit
	c.Chance, c.Steadiness = 0, math.Inf(1)
	on := t.basis(first.standing, first.test.from, first.test.to)
	if first.among.peers > 0 {
		on = first.among
	}
	c.Rung, c.Peers = on.rung, on.peers
	var excess, mean, device, host float64
	for _, s := range of {
		from, to = min(from, s.test.from), max(to, s.test.to)
		c.Chance, c.Steadiness = max(c.Chance, s.test.chance), min(c.Steadiness, s.test.z)
		limit = min(limit, s.limit)
		c.Share += s.test.share / float64(len(of))
		x, m := t.seconds(s.standing, s.test.from, s.test.to)
		excess, mean = excess+x/float64(len(of)), mean+m/float64(len(of))
		d, h := t.parts(s.standing, s.test.from, s.test.to)
		device, host = device+d/float64(len(of)), host+h/float64(len(of))
		c.Steps = max(c.Steps, s.test.steps)
	}
	c.Excess, c.Mean = excess, mean
	if c.Intermittent {
		c.Excess = mean
	}
	c.First, c.Last = t.frames[from].step, t.frames[to-1].step
	t.place(c, of, from, to)
	c.Numbers = map[string]float64{
		"steadiness": c.Steadiness, "device_share": device, "host_share": host,
		"noise_step": t.noise.step, "noise_worker": t.noise.worker, "ranks": float64(len(t.ranks)),
	}
	c.Confidence = confidence(c, &features{
		gate: t.cfg.MinExcessShare, limit: limit, pair: on.pair && !c.Intermittent, events: first.events,
	})
}

// seconds returns the typical and the mean excess of a rank in a stretch.
func (t *trial) seconds(s *standing, from, to int) (typical, mean float64) {
	t.buf = t.buf[:0]
	t.over(s.n, from, to, func(e *entry) {
		t.buf = append(t.buf, e.net())
		mean += e.net() / float64(to-from)
	})
	return stats.SelectMedian(t.buf), mean
}

// place finds where most of the excess of the class lies.
func (t *trial) place(c *Conclusion, of []*suspect, from, to int) {
	ranks := make(map[int32]bool, len(of))
	for _, s := range of {
		ranks[s.n] = true
	}
	want := detailSlow
	switch c.Class {
	case model.ClassHost, model.ClassJitter:
		want = detailHost
	case model.ClassKernelChoice:
		want = detailChoice
	case model.ClassWorkImbalance:
		want = detailWork
	case model.ClassNode:
		if c.Cause != "" {
			want = detailHost
		}
	}
	t.placeOf(c, from, to, func(d *detail) bool { return d.sort == want && (len(ranks) == 0 || ranks[d.row]) })
}

// placeOf names the operation, or the scope and its cause, that holds most of the
// details that count.
func (t *trial) placeOf(c *Conclusion, from, to int, counts func(*detail) bool) {
	type sum struct {
		key string
		at  float64
	}
	byKey, byCause := map[string]*sum{}, map[string]float64{}
	host := false
	for _, f := range t.frames[from:to] {
		for i := range f.details {
			d := &f.details[i]
			if !counts(d) {
				continue
			}
			p := t.places.of(d.place)
			s := byKey[p.Key]
			if s == nil {
				s = &sum{key: p.Key}
				byKey[p.Key] = s
			}
			s.at += float64(d.excess)
			if p.Kind == Host {
				host = true
				byCause[p.Cause] += float64(d.excess)
			}
		}
	}
	var best *sum
	for _, s := range byKey {
		if best == nil || s.at > best.at || (s.at == best.at && s.key < best.key) {
			best = s
		}
	}
	if best == nil {
		return
	}
	c.Op, c.OpSec = best.key, best.at/float64(max(1, to-from))
	if host {
		c.Cause = leading(byCause)
	}
}

// leading returns the cause that holds most.
func leading(of map[string]float64) string {
	best, most := model.CauseUnknown, 0.0
	for cause, x := range of {
		if cause == "" {
			cause = model.CauseUnknown
		}
		if x > most || (x == most && cause < best) {
			best, most = cause, x
		}
	}
	return best
}
