// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"maps"
	"net/netip"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/hostid"
)

// Errors of a peer's identity.
var (
	errOwnClock      = errors.New("check clock of peer: it says that it is our own")
	errOtherOwner    = errors.New("check clock of peer: another node says that it is its own")
	errManyClocks    = errors.New("check clock of peer: the node says that it is another host, or changes its boots too often")
	errFormerClock   = errors.New("check clock of peer: it is of the boot before")
	errTooManyClocks = errors.New("check clock of peer: as many clocks as allowed are in use")
	errBadClock      = errors.New("check clock of peer: got no name of a host's raw clock")
)

// owners knows whose clock is whose. A node is one host, in one boot at a time, and
// a host is one node: of what two nodes say is theirs, nothing counts until one is
// silent, since nobody can tell which of them lies, or whether both are machines
// made from one image.
type owners struct {
	own   hostid.Host // this node's, which no peer is
	hosts map[string]*claims
	// nodes and rivals, by node, are neighbours; the one that was seen in the earliest window is first.
	nodes  *bounded.Map[string, *bootOf]
	rivals *bounded.Map[string, *rival]
	// alone is in how many windows peers were heard and none bore our name.
	alone int64
	// copied: a copy of this node was heard, in window copySeen last.
	copied   bool
	copySeen int64
}

// claims are by whom a host was claimed; second is empty where nobody contests it.
type claims struct{ first, second claim }

type claim struct {
	node string
	seen int64 // number of the last window in which it was heard
}

// bootOf is which boot of which host a node is, and was before.
type bootOf struct {
	host, boot, former string
	seen, changed      int64 // windows
}

func newOwners(own hostid.Host) *owners {
	return &owners{
		own: own, hosts: map[string]*claims{},
		nodes:  bounded.NewMap(bounded.MapConfig[string, *bootOf]{Order: bounded.ByUse}),
		rivals: bounded.NewMap(bounded.MapConfig[string, *rival]{Order: bounded.ByUse}),
	}
}

// claim notes that a node says that a clock is its own; whether it is, when all have
// spoken, says holds.
func (o *owners) claim(clock, node string, window int64) error {
	host, err := o.identify(clock, node, window)
	if err != nil {
		return err
	}
	c := o.hosts[host]
	if c == nil {
		c = &claims{first: claim{node, window}}
		o.hosts[host] = c
	}
	switch node {
	case c.first.node:
		c.first.seen = window
	case c.second.node:
		c.second.seen = window
	default:
		if c.second.node != "" {
			return errOtherOwner
		}
		c.second = claim{node, window}
	}
	return nil
}

// identify returns what is claimed: the id of a host, or the whole name of a clock
// that we named ourselves.
func (o *owners) identify(clock, node string, window int64) (string, error) {
	if isForeign(clock) {
		return clock, nil
	}
	host, boot, ok := parseClock(clock)
	switch {
	case !ok:
		return "", errBadClock
	case host == o.own.ID:
		return "", errOwnClock
	}
	n, known := o.nodes.Peek(node)
	if !known {
		n = &bootOf{host: host, boot: boot, changed: window - idleWindows}
		o.nodes.Set(node, n)
	}
	if host != n.host {
		return "", errManyClocks
	}
	if boot != n.boot {
		switch {
		case boot == n.former:
			return "", errFormerClock
		case window-n.changed < idleWindows:
			return "", errManyClocks
		}
		n.boot, n.former, n.changed = boot, n.boot, window
	}
	n.seen = window
	o.nodes.Touch(node)
	return host, nil
}

// holds reports whether a clock is somebody's, and one node's alone.
func (o *owners) holds(clock string) bool {
	if isForeign(clock) {
		return o.uncontested(clock)
	}
	host, boot, ok := parseClock(clock)
	if !ok || !o.uncontested(host) {
		return false
	}
	node := o.hosts[host].first.node
	n, known := o.nodes.Peek(node)
	return known && n.boot == boot && !o.rivals.Has(node)
}

func (o *owners) uncontested(host string) bool {
	c := o.hosts[host]
	return c != nil && c.second.node == ""
}

// claimants returns the nodes that claim the host of a clock.
func (o *owners) claimants(clock string) (first, second string) {
	host := clock
	if h, _, ok := parseClock(clock); ok {
		host = h
	}
	if c := o.hosts[host]; c != nil {
		return c.first.node, c.second.node
	}
	return "", ""
}

// forget frees what was not heard since a window, so that a node that moved to
// another name is let in.
func (o *owners) forget(before int64) {
	o.nodes.DropOldest(func(_ string, n *bootOf) bool { return n.seen < before })
	o.forgetRivals(before)
	maps.DeleteFunc(o.hosts, func(_ string, c *claims) bool {
		if c.first.seen < before {
			c.first, c.second = c.second, claim{}
		}
		if c.second.seen < before {
			c.second = claim{}
		}
		return c.first.seen < before
	})
}

// maxClockName is the longest name that a probe can bear.
const maxClockName = 128

// parseClock reads the name of a host's raw clock, host:<id>/<boot>/raw, which comes
// from the network. Other clocks no peer can have: what it
// sends are readings of CLOCK_MONOTONIC_RAW.
func parseClock(name string) (host, boot string, ok bool) {
	id, ok := strings.CutPrefix(name, "host:")
	parts := strings.Split(id, "/")
	if !ok || len(name) > maxClockName || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] != "raw" {
		return "", "", false
	}
	if hostid.Check(parts[0]) != nil || hostid.Check(parts[1]) != nil {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// foreignPrefix begins the names that we give to the clocks of reflectors that name
// none.
const foreignPrefix = "stamp:"

func foreignClock(at netip.AddrPort) string { return foreignPrefix + at.Addr().String() + "/realtime" }

func isForeign(clock string) bool { return strings.HasPrefix(clock, foreignPrefix) }
