// SPDX-License-Identifier: Apache-2.0

package graph

import "time"

// Options limit and tune a Solver; zero values mean the defaults.
type Options struct {
	// Prefer are clocks in the order in which they are taken as reference of a
	// component that has none yet. A reference stays for as long as it is there and
	// trusted.
	Prefer []string
	// MaxClocks and MaxEdges bound memory: some 100 bytes a clock, with its name, and 250 an edge. As
	// many pairs as clocks are remembered whose bounds crossed.
	MaxClocks, MaxEdges int
	// Horizon is how much older than its component an edge can be before it is
	// forgotten.
	Horizon time.Duration
	// Window is the length of the windows that edges come from, and Wander by how
	// much the relative frequency of two clocks can change from one window to the
	// next; both widen what is carried over from an edge's own moment.
	Window time.Duration
	Wander float64
	// MaxDrift bounds the relative frequency of two clocks of which no edge tells
	// more.
	MaxDrift float64
	// MaxWork bounds the work of one solution, in edges looked at, some 4 to 8 ns each: 537
	// million, and no less than 1,024 for each edge that is held. Beyond it nothing is
	// made better any more, which is counted: estimates may be off by more than usual,
	// and say so by their Sigma, or a contradiction is not resolved, and nothing is
	// bounded. No bound is wrong by that.
	MaxWork int
	// MaxFollowed bounds how many clocks Between follows in search of shortest paths,
	// in all questions about one solution; further ones are answered through the
	// reference.
	MaxFollowed int
}

const (
	defaultMaxClocks = 65_536
	// defaultMaxEdges is 16 for each clock: K = 10 probed pairs, one pair of clocks
	// of the host, and traces.
	defaultMaxEdges = 16 * defaultMaxClocks
	// defaultHorizon is as long as the longest fit that edges come from.
	defaultHorizon = 32 * time.Second
	defaultWindow  = 2 * time.Second
	// defaultWander is ten times what a crystal does in 2 s while its temperature
	// changes by a kelvin a minute (some 0.3 ppm per kelvin).
	defaultWander = 0.1e-6
	// defaultMaxDrift is 500 ppm, as adjtime() slews, and as much again for
	// oscillators.
	defaultMaxDrift    = 1e-3
	defaultMaxFollowed = 1 << 18
)

func (o Options) withDefaults() Options {
	o.MaxClocks = orInt(o.MaxClocks, defaultMaxClocks)
	o.MaxEdges = orInt(o.MaxEdges, defaultMaxEdges)
	o.MaxFollowed = orInt(o.MaxFollowed, defaultMaxFollowed)
	if o.Horizon <= 0 {
		o.Horizon = defaultHorizon
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.Wander <= 0 {
		o.Wander = defaultWander
	}
	if o.MaxDrift <= 0 {
		o.MaxDrift = defaultMaxDrift
	}
	return o
}

func orInt(v, otherwise int) int {
	if v <= 0 {
		return otherwise
	}
	return v
}
