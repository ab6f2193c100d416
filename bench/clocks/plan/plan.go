// SPDX-License-Identifier: Apache-2.0

// Package plan is what the lab and its nodes have to agree on: who a node is, what
// its clocks do, and whether it lies.
package plan

import (
	"net/netip"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
)

// Port is where all nodes answer.
const Port = 18862

// Node is one node of the lab.
type Node struct {
	Name  string
	Addr  netip.Addr
	Peers []Peer // all nodes, this one included
	Rate  float64
	K     int
	Pure  time.Duration // by how much the spacing of a pair that counts may change; 0: all count
	// Record makes the node report what its estimators are given.
	Record bool
	Clock  Clock
	Lie    Lie
}

// Peer is a node as the others know it.
type Peer struct {
	Name string
	Addr netip.Addr
}

// Clock is what a node's clocks read at true time At, and what happens to them.
type Clock struct {
	At, Raw, Realtime           int64
	RawChanges, RealtimeChanges []netstamp.Change
}

// Skewed makes the clocks. All that are made of one plan are the same.
func (c *Clock) Skewed() *netstamp.Skewed {
	return netstamp.NewSkewed(c.At, c.Raw, c.Realtime, c.RawChanges, c.RealtimeChanges)
}

// Lies.
const (
	Different    = "different"    // every peer is told another time
	Replayed     = "replayed"     // old stamps are told again
	Inconsistent = "inconsistent" // receive stamps are too early, transmit stamps are right
	Asymmetric   = "asymmetric"   // what is sent leaves later than its stamp says: no lie
)

// Lie is what a node does wrong to its stamps; the zero value is nothing.
type Lie struct {
	Kind string
	Size int64 // ns
}

// Report is what a node says of a window, one line of JSON.
type Report struct {
	Node  string
	Edges []model.ClockEdge
	// Counters are what the node counted since it began, by name.
	Counters map[string]int64
	Fed      []Fed `json:",omitempty"`
}

// Fed is what the estimator of a pair of clocks was given in a window.
type Fed struct {
	Own, Peer string
	Fresh     bool       // the estimator was made in this window
	Inputs    [][4]int64 // kind, a, b and width of each pair.Input
	// Cut is how many were left out, since there were too many.
	Cut int64 `json:",omitempty"`
}

// RawClock and RealtimeClock are the ids of a node's clocks.
func RawClock(node string) string { return "host:" + node + "/" + Boot + "/raw" }

// RealtimeClock is the id of a node's real-time clock.
func RealtimeClock(node string) string { return "host:" + node + "/" + Boot + "/realtime" }

// Boot is the same for all: no node starts twice.
const Boot = "lab"
