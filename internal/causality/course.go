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
}

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
)

// follows reports whether a reading goes on from those of the batches before: one
// stamp in the future must not end what is learned of a pair. A clock that was set to
// another time is learned anew.
func (c *course) follows(p *pairEvidence, at int64, v *evidence) bool {
	if !c.begun {
		c.begun, c.low, c.high, c.now = true, math.MinInt64, math.MaxInt64, v.now
	} else if p.batch != v.batch {
		on := min(max(v.now-c.now, 0), math.MaxInt64/4)
		c.low, c.high, c.now = p.last-max(lateness, fitWindows*int64(v.window)), p.last+on+astray, v.now
	}
	p.batch = v.batch
	if at >= c.low && at <= c.high {
		c.strays = 0
		return true
	}
	if c.strays == 0 {
		c.strayedFrom = v.batch
	}
	if c.strays++; c.strays < convinced || c.strayedFrom == v.batch {
		return false
	}
	p.restart(v.estimator())
	*c = course{begun: true, low: math.MinInt64, high: math.MaxInt64, now: v.now}
	return true
}
