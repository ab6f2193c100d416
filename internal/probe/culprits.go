// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// maxCulprits is how many addresses are kept of one reason and window.
const maxCulprits = 8

// culprits are from whom came what was refused since the last window, by the name of
// its counter. Without a key, addresses are as true as the network makes them.
type culprits struct {
	mu sync.Mutex
	by map[string][]netip.Addr
}

func (c *culprits) add(reason string, from netip.Addr) {
	if reason == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string][]netip.Addr{}
	}
	if l := c.by[reason]; len(l) < maxCulprits && !slices.Contains(l, from) {
		c.by[reason] = append(l, from)
	}
}

func (c *culprits) take() map[string][]netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := c.by
	c.by = nil
	return by
}

// requestReason, replyReason and clockReason name the counter of what was refused; empty for what
// says nothing of who sent it.
func requestReason(err error) string {
	return reasonOf(err, []reason{
		{stamp.ErrForged, "reflector.forged"},
		{stamp.ErrSigned, "reflector.signed"},
		{stamp.ErrLoop, "reflector.looped"},
		{stamp.ErrStranger, "reflector.stranger"},
		{stamp.ErrFull, "reflector.full"},
		{stamp.ErrRate, "reflector.limited"},
		{stamp.ErrReplayed, "reflector.replayed"},
		{stamp.ErrFuture, "reflector.future"},
	})
}

func replyReason(err error) string {
	return reasonOf(err, []reason{
		{stamp.ErrForged, "sender.forged"},
		{stamp.ErrMismatch, "sender.mismatched"},
		{stamp.ErrDuplicate, "sender.duplicate"},
		{stamp.ErrEstimate, "sender.corrupt"},
	})
}

func clockReason(err error) string {
	return reasonOf(err, []reason{
		{errOwnClock, "clock.own"},
		{errOtherOwner, "clock.other_owner"},
		{errManyClocks, "clock.many"},
		{errTooManyClocks, "clock.over_limit"},
		{errBadClock, "clock.unusable"},
	})
}

type reason struct {
	err  error
	name string
}

func reasonOf(err error, all []reason) string {
	for _, r := range all {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return ""
}
