// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// Defaults of a Config.
const (
	DefaultK = 10
	// DefaultRate gives a pair of packets in less than a second to each of four
	// paths.
	DefaultRate = 10
	// DefaultPaths: where two equal routes lead to a peer and each port takes one at
	// random, four ports meet both in 7 of 8 cases (1 - 2/2^4). More would leave each
	// path less than a pair a second at the default rate.
	DefaultPaths  = 4
	DefaultWindow = 2 * time.Second
	// DefaultPairInterval: what batches spans holds them for a second and more, and most
	// arrive after the edge that they fall in. Two edges a second are few beside the five
	// that ten neighbours make. Twice as often would halve what REALTIME can be slewed
	// by before the youngest spans, from 0.25 ms at 500 ppm.
	DefaultPairInterval = 500 * time.Millisecond
	// DefaultPort is STAMP's 862 with 18,000 added, which needs no privilege.
	DefaultPort      = 18862
	DefaultMaxClocks = 1024
)

// PureWithin is the tolerance with which pure pairs are counted where none is set.
const PureWithin = time.Microsecond

// Limits of a Config.
const (
	MaxK      = 64
	MinRate   = 0.1
	MaxRate   = 2000
	MaxPaths  = 16
	MinWindow = 100 * time.Millisecond
	MaxWindow = time.Minute
	// MinPairInterval has five readings where no traffic adds any.
	MinPairInterval = 100 * time.Millisecond
	MaxPairInterval = 2 * time.Second
	MaxLocals       = 64
)

// Config is what a Node is made of. Zero values take the defaults.
type Config struct {
	// NodeID names this node in lists of members.
	NodeID string
	// HostID and BootID name its clocks: host:<HostID>/<BootID>/raw.
	HostID, BootID string
	// Locals are the end points: addresses of this host, each of which probes and is
	// probed; port 0 is ListenPort.
	Locals     []netip.AddrPort
	ListenPort uint16
	// Peers lists the members; Refresh is how often it is asked.
	Peers   mesh.Source
	Refresh time.Duration
	// K is how many others each end point probes; Seed makes the graph, and is equal
	// on all nodes.
	K    int
	Seed uint64
	// Rate is packets a second to each neighbour, all paths together.
	Rate float64
	// Paths is the most UDP source ports that a neighbour is probed from.
	Paths  int
	Window time.Duration
	// PairInterval is how often both clocks of this host are told of, which needs no
	// packets: what is known of REALTIME lasts until somebody slews it.
	PairInterval time.Duration
	Key          *stamp.Key // nil: packets are not signed
	Clock        netstamp.Clock
	// Host opens the sockets; nil is this machine.
	Host netstamp.Host
	// Hardware asks for stamps by the NICs.
	Hardware bool
	// Tolerance is by how much the spacing of a coded pair may change under way for the
	// pair to count as evidence of the clocks; 0: every message counts.
	Tolerance time.Duration
	// MaxClocks is the most pairs of clocks that are estimated.
	MaxClocks int
	// Emit takes the outcome of each window. It is called by one goroutine, and the
	// next window waits for it.
	Emit func(Outcome)
	// Pairs takes what is known of the clocks of this host before each window ends, as
	// edges that are Prompt: of the outcome Until, Reading and Edges are set. It is called
	// by the goroutine that calls Emit; nil: nobody asks for them.
	Pairs func(Outcome)
	// Record makes what is told of all that the estimator of a pair of clocks is given, by
	// the goroutine that calls Emit and before it does; nil: nobody is.
	Record func(own, peer string) func(pair.Input)
	// Warn is told what goes wrong while the node runs; nil: nobody is.
	Warn func(error)
}

func (c Config) withDefaults() Config {
	setDefault(&c.K, DefaultK)
	setDefault(&c.Rate, DefaultRate)
	setDefault(&c.Paths, DefaultPaths)
	setDefault(&c.Window, DefaultWindow)
	setDefault(&c.PairInterval, DefaultPairInterval)
	setDefault(&c.ListenPort, DefaultPort)
	setDefault(&c.MaxClocks, DefaultMaxClocks)
	setDefault(&c.Refresh, 30*time.Second)
	if c.Clock == nil {
		c.Clock = netstamp.System()
	}
	if c.Host == nil {
		c.Host = netstamp.ThisHost()
	}
	if c.Emit == nil {
		c.Emit = func(Outcome) {}
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	locals := make([]netip.AddrPort, len(c.Locals))
	for i, l := range c.Locals {
		if l.Port() == 0 {
			l = netip.AddrPortFrom(l.Addr(), c.ListenPort)
		}
		locals[i] = l
	}
	c.Locals = locals
	return c
}

func setDefault[T comparable](v *T, to T) {
	if *v == *new(T) {
		*v = to
	}
}

func (c *Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("check "+format, args...))
		}
	}
	check(c.NodeID != "", "node id: got none")
	_, _, ok := parseClock(c.rawClock())
	check(ok && len(c.realtimeClock()) <= maxClockName,
		"host id and boot id: got %q and %q; want visible ASCII without a slash, and %d bytes with what is added",
		c.HostID, c.BootID, maxClockName)
	check(len(c.Locals) > 0 && len(c.Locals) <= MaxLocals, "end points: got %d; want 1 to %d", len(c.Locals), MaxLocals)
	seen := map[netip.AddrPort]bool{}
	for _, l := range c.Locals {
		check(l.IsValid() && !l.Addr().IsUnspecified() && !l.Addr().IsMulticast(), "end point: got %v; want one address of this host", l)
		check(!seen[l], "end point: got %v twice", l)
		seen[l] = true
	}
	check(c.Peers != nil, "peers: got no source")
	check(c.K >= 1 && c.K <= MaxK, "neighbours: got %d; want 1 to %d", c.K, MaxK)
	check(c.Rate >= MinRate && c.Rate <= MaxRate, "rate: got %v packets/s; want %v to %v", c.Rate, MinRate, MaxRate)
	check(c.Paths >= 1 && c.Paths <= MaxPaths, "paths: got %d; want 1 to %d", c.Paths, MaxPaths)
	check(c.Window >= MinWindow && c.Window <= MaxWindow, "window: got %v; want %v to %v", c.Window, MinWindow, MaxWindow)
	check(c.PairInterval >= MinPairInterval && c.PairInterval <= MaxPairInterval,
		"interval of pairs: got %v; want %v to %v", c.PairInterval, MinPairInterval, MaxPairInterval)
	check(c.Tolerance >= 0, "tolerance: got %v; want 0 or more", c.Tolerance)
	check(c.MaxClocks > 0, "clocks: got a limit of %d; want at least 1", c.MaxClocks)
	return errors.Join(errs...)
}

func (c *Config) host() hostid.Host     { return hostid.Host{ID: c.HostID, Boot: c.BootID} }
func (c *Config) rawClock() string      { return c.host().Raw() }
func (c *Config) realtimeClock() string { return c.host().Realtime() }

// paths is how many paths are used: as many as leave each a pair of packets a
// second, since the stamp of a reply comes with the path's next one.
func (c *Config) paths() int { return max(1, min(c.Paths, int(c.Rate/2))) }

// patience is how long a reply's stamp is waited for: two of the path's intervals,
// so that one lost pair costs none.
func (c *Config) patience() time.Duration {
	interval := time.Duration(2 * float64(c.paths()) / c.Rate * float64(time.Second))
	return max(answerWithin, 2*interval+100*time.Millisecond)
}

// pending is how many requests a session has to remember.
func (c *Config) pending() int {
	perSecond := c.Rate / float64(c.paths())
	return max(64, min(1<<14, int(2*perSecond*(c.patience()+expireEvery).Seconds())))
}
