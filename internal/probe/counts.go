// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"net/netip"
	"sync/atomic"
)

// counts are what a node counts itself.
type counts struct {
	culprits culprits

	pairs, pure, widened atomic.Int64

	ownClock, otherOwner, manyClocks, formerClock, badClock, clocksRefused atomic.Int64

	crossed, early, farReadings, withheld, copies atomic.Int64

	sendErrors, stampsLost, strangers, tripsDropped atomic.Int64

	listFailures, listBad, listDuplicates, listOver atomic.Int64
}

func (c *counts) purity(p purity) {
	c.pairs.Add(p.pairs)
	c.pure.Add(p.pure)
	if p.widened {
		c.widened.Add(1)
	}
}

// copied counts a request of a copy of this node.
func (c *counts) copied(from netip.Addr) {
	c.copies.Add(1)
	c.culprits.add("clock.copied", from)
}

// refuse counts n round trips of a clock that is not the peer's.
func (c *counts) refuse(err error, n int64, from netip.Addr) {
	if n == 0 {
		return
	}
	c.culprits.add(clockReason(err), from)
	switch {
	case errors.Is(err, errOwnClock):
		c.ownClock.Add(n)
	case errors.Is(err, errOtherOwner):
		c.otherOwner.Add(n)
	case errors.Is(err, errManyClocks):
		c.manyClocks.Add(n)
	case errors.Is(err, errFormerClock):
		c.formerClock.Add(n)
	case errors.Is(err, errTooManyClocks):
		c.clocksRefused.Add(n)
	default:
		c.badClock.Add(n)
	}
}

func (c *counts) add(sum map[string]int64) {
	for name, v := range map[string]*atomic.Int64{
		"coded.pairs": &c.pairs, "coded.pure": &c.pure, "coded.widened": &c.widened,
		"clock.own": &c.ownClock, "clock.other_owner": &c.otherOwner, "clock.many": &c.manyClocks,
		"clock.former": &c.formerClock, "clock.crossed": &c.crossed, "clock.early": &c.early,
		"clock.far": &c.farReadings, "clock.edges_withheld": &c.withheld, "clock.copied": &c.copies,
		"clock.unusable": &c.badClock, "clock.over_limit": &c.clocksRefused,
		"node.send_errors": &c.sendErrors, "node.stamps_lost": &c.stampsLost,
		"members.failures": &c.listFailures, "members.bad": &c.listBad,
		"members.duplicates": &c.listDuplicates, "members.over_limit": &c.listOver,
		"node.strangers": &c.strangers, "node.trips_dropped": &c.tripsDropped,
	} {
		sum[name] += v.Load()
	}
}
