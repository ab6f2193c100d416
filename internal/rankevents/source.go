// SPDX-License-Identifier: Apache-2.0

package rankevents

import "github.com/lockstep-otel/lockstep/internal/ring"

// Source is what is read of one ring: *ring.Ring.
type Source interface {
	Header() ring.Header
	Resume(places []ring.Place) error
	Poll(level ring.Level, fn func(lane int, rec *ring.Record)) ring.Counts
	MissingUntil() uint64
	Cursors(dst []uint64) []uint64
	Snapshot(fn func(lane int, rec *ring.Record)) ring.Counts
	InFlight(dst []ring.Slot) []ring.Slot
	Frontiers(dst []ring.Frontier) []ring.Frontier
	Comms(dst []ring.Comm) []ring.Comm
	GPUs(dst []ring.GPU) []ring.GPU
	String(code uint16) string
	ClockPairs(dst []ring.ClockPair) []ring.ClockPair
	OpenScopes(dst []ring.OpenScope) []ring.OpenScope
	Step() (int64, bool)
	Witnesses() ring.Witness
	CUPTI() (state ring.CUPTIState, result uint32)
	Heartbeat() uint64
	Alive() (alive, closed bool, err error)
	Holder() (pid int, ok bool)
	Drops() [ring.DropCount]uint64
}
