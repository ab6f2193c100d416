// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// pace tells how the time of the data goes on.
type pace struct {
	latest  int64     // where the data is: the greatest of the batches' middles
	moved   time.Time // when that was seen
	middles []int64   // scratch
}

const (
	// farBehind is from when on the data is of another time, rather than late.
	farBehind = int64(time.Hour)
	// stall is after how long the time of those who send counts no more: one of them
	// may have been far ahead.
	stall = time.Second
	// looked is how many spans of a batch are looked at.
	looked = 33
)

// passed is how many seconds have passed since the batch before. One span in the
// future moves nobody; a batch that is does not stop time either.
func (p *pace) passed(b *Batch, now time.Time) float64 {
	middle := p.middle(b)
	since := middle - p.latest
	if middle > 0 && (since > 0 || since < -farBehind) {
		p.latest, p.moved = middle, now
		return max(0, float64(since)*1e-9)
	}
	if idle := now.Sub(p.moved); idle >= stall {
		p.moved = now
		return idle.Seconds()
	}
	return 0
}

// middle is the median start of some spans of a batch, 0 where none has a clock.
func (p *pace) middle(b *Batch) int64 {
	p.middles = p.middles[:0]
	for i := 0; i < len(b.Spans); i += max(1, len(b.Spans)/looked) {
		if b.Spans[i].Clock != nil {
			p.middles = append(p.middles, b.Spans[i].Begin)
		}
	}
	return stats.SelectMedianLow(p.middles)
}

// settling tells when all clocks are to be solved, which costs as much as there are
// clocks: once a second of data, and sooner while those of which something is known
// for the first time are many beside those that were known. So the first batch is
// corrected by itself, and a thousand new pairs cost some fifty solutions at most.
type settling struct {
	waited  float64 // seconds since
	pending bool    // there are edges since
	fresh   int     // pairs known for the first time since
	known   int     // pairs known before
}

// freshShare is what share of the known pairs is many.
const freshShare = 1.0 / 8

func (s *settling) due(edges, fresh int, seconds float64) bool {
	s.pending = s.pending || edges > 0
	s.fresh += fresh
	s.waited += min(seconds, 1)
	many := s.fresh > 0 && float64(s.fresh) >= freshShare*float64(s.known)
	if !s.pending || !many && s.waited < 1 {
		return false
	}
	s.known += s.fresh
	s.waited, s.pending, s.fresh = 0, false, 0
	return true
}
