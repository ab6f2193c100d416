// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"math"
	"time"
)

// course is between which readings of its source a pair's next samples are, and what
// came since from elsewhere.
type course struct {
	begun       bool
	low, high   int64  // for the samples of a batch
	now         int64  // where the data was at the batch
	strays      int    // in a row
	strayedFrom uint64 // batch of the first of them

	reached  int    // batches in a row that went on without a leap
	late     int    // batches in a row with samples that came too late, and none in time
	counted  uint64 // the latest batch of either
	anews    int    // how often the pair was learned anew, as far as it counts
	back     int    // samples in a row that tell of a source that was set back
	backFrom uint64 // batch of the first of them
}

// standing is how a sample stands to those before.
type standing uint8

const (
	goesOn standing = iota
	strayed
	tooLate
)

const (
	// astray is how much further than the data a clock may go on: no clock gains a
	// minute.
	astray = int64(time.Minute)
	// lateness is how late batches are, at least: what is older than an estimate can
	// rest on was stamped before the clock was set back, or after.
	lateness = int64(10 * time.Second)
	// convinced is after how many strays in a row, of several batches, that is where the
	// clock is.
	convinced = 8
	// patience is in how many batches in a row, without a sample that came in time, what
	// both clocks agree to be old is taken for late. Both can have been set back, too.
	patience = 64
	// reliable is after how many batches without a leap those that came in time are that:
	// before, it may be they that were from the future, and patience begins with
	// leastPatience. It doubles whenever the pair was learned anew for that.
	reliable      = 4
	leastPatience = 16
	// setBack is after how many samples in a row, of several batches, the source was set
	// back by less than lateness: they read less than others did, and contradict what
	// was known by more than stamps err.
	setBack = 4
	// leastSet is by how much stamps err now and then.
	leastSet = int64(100 * time.Millisecond)
)

// follows says whether a sample goes on from those of the batches before: one stamp in
// the future must not end what is learned of a pair. A clock that was set to another
// time is learned anew. What another exporter has sent late is of no use any more, and
// no sign of that: there, both clocks are back by the same.
func (c *course) follows(p *pairEvidence, at, other int64, v *evidence) standing {
	if !c.begun {
		c.begun, c.low, c.high, c.now = true, math.MinInt64, math.MaxInt64, v.now
	} else if p.batch != v.batch {
		on := min(max(v.now-c.now, 0), math.MaxInt64/4)
		c.low, c.high, c.now = p.last-max(lateness, fitWindows*int64(v.window)), p.last+on+astray, v.now
	}
	p.batch = v.batch
	if at >= c.low && at <= c.high {
		c.goOn(at > p.last+lateness, v.batch)
		if c.back >= setBack && c.backFrom != v.batch {
			c.anew(p, v)
		}
		return goesOn
	}
	if c.tooLate(p, at, other, v.batch) {
		return tooLate
	}
	if c.strays == 0 {
		c.strayedFrom = v.batch
	}
	if c.strays++; c.strays < convinced || c.strayedFrom == v.batch {
		return strayed
	}
	c.anew(p, v)
	return goesOn
}

// tooLate reports whether a sample is as old by one clock as by the other.
func (c *course) tooLate(p *pairEvidence, at, other int64, batch uint64) bool {
	back := p.last - at
	moved := (p.other - p.last) - (other - at)
	if at >= c.low || max(moved, -moved) > back/2 {
		return false
	}
	if c.counted != batch {
		c.counted = batch
		c.late++
	}
	if c.reached >= reliable {
		return c.late <= patience
	}
	return c.late <= min(leastPatience<<c.anews, patience)
}

func (c *course) goOn(leap bool, batch uint64) {
	c.strays, c.late = 0, 0
	if leap {
		c.reached = 0
	}
	if c.counted != batch {
		c.counted = batch
		c.reached++
	}
}

func (c *course) anew(p *pairEvidence, v *evidence) {
	p.restart(v.estimator())
	*c = course{begun: true, low: math.MinInt64, high: math.MaxInt64, now: v.now, anews: min(c.anews+1, 2)}
}

// look counts what tells that the source was set back: the other clock seems ahead by
// more than it can be. Only samples from it to the source tell.
func (c *course) look(p *pairEvidence, at, other int64, v *evidence) {
	if !p.known {
		return
	}
	most := p.told.Upper + distance(at, p.told.At)>>rateShift + leastSet
	switch {
	case other-at <= most:
		c.back = 0
	case at < p.last:
		if c.back == 0 {
			c.backFrom = v.batch
		}
		c.back++
	}
}

func distance(a, b int64) int64 { return max(a, b) - min(a, b) }
