// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// The families of what can be wrong.
const (
	Healthy        = "healthy"          // nothing is wrong
	HostStuck      = "host_stuck"       // a host stops enqueueing
	HostsStuck     = "hosts_stuck"      // two of them, each for itself
	ProcessDead    = "process_dead"     // a process is gone, and that was seen
	NoDump         = "no_dump"          // a process left without a dump, and nobody saw why
	DeviceStopped  = "device_stopped"   // a device sees nothing complete any more, its host goes on
	DeviceOne      = "device_one"       // the same, seen in one operation of a stream only
	DeviceSilent   = "device_silent"    // a device hangs in a kernel before its part of an operation
	StalledOp      = "stalled_op"       // all are in an operation that does not end
	StalledMessage = "stalled_message"  // both sides are in a message that does not arrive
	Network        = "network"          // as stalled_op, and the fabric says why
	WrongOp        = "wrong_op"         // one rank calls another operation
	WrongOpTwo     = "wrong_op_two"     // two ranks of a group do
	WrongSize      = "wrong_size"       // one rank's sizes differ
	WrongSizeShort = "wrong_size_short" // they are smaller, and its own part ends
	WrongDType     = "wrong_dtype"      // one rank's type differs
	WrongRoot      = "wrong_root"       // one rank takes another for the root
	UnevenSplit    = "uneven_split"     // what is sent is not what is awaited
	SwappedGroups  = "swapped_groups"   // one rank enters two groups in the other order
	SwappedOps     = "swapped_ops"      // one rank calls two operations of a group in the other order
	SkippedOp      = "skipped_op"       // one rank leaves an operation out
	ExtraOp        = "extra_op"         // one rank has one more
	NoRecv         = "no_recv"          // one rank does not receive
	WrongPeer      = "wrong_peer"       // one rank sends to or receives from another
	WrongMessage   = "wrong_message"    // two sides of a message differ in size
	InitStuck      = "init_stuck"       // a rank does not come out of making a communicator
	TwoFaults      = "two_faults"       // a stuck host and a stopped device, each for itself
)

// Families returns all of them but Healthy.
func Families() []string {
	return []string{
		HostStuck, HostsStuck, ProcessDead, NoDump, DeviceStopped, DeviceOne, DeviceSilent, StalledOp, StalledMessage, Network,
		WrongOp, WrongOpTwo, WrongSize, WrongSizeShort, WrongDType, WrongRoot, UnevenSplit, SwappedGroups, SwappedOps, SkippedOp, ExtraOp, NoRecv,
		WrongPeer, WrongMessage, InitStuck, TwoFaults,
	}
}

// does is what a hit does to its rank.
type does uint8

const (
	changeProgram does = iota // the program differs, and that is all
	stopHost
	stopDevice
	silenceDevice
	stallInstance
	stallMessage
	shorten
)

// hit is one fault at one rank.
type hit struct {
	family string
	what   does
	rank   int
	instr  int // where
	until  int // of stopDevice: where the device takes part last
	// away: the message of instr goes the other way.
	away bool
	op   OpRef
	// others are the other sides of the messages of instr, and those who would be if they
	// went the other way.
	others []int64
}

func (h *hit) stopsHost(i int) bool { return h != nil && h.what == stopHost && i >= h.instr }
func (h *hit) blinds(i int) bool    { return h != nil && h.what == stopDevice && i == h.instr }
func (h *hit) stopsDevice(i int) bool {
	return h != nil && h.what == stopDevice && i == h.until
}

func (h *hit) silences(i int) bool {
	return h != nil && h.what == silenceDevice && i >= h.instr
}
func (h *hit) finishesShort(i int) bool { return h != nil && h.what == shorten && i == h.instr }

// symmetric tells operations that no member can be through with before all have come.
func symmetric(in *instr) bool { return in.do == call && in.root < 0 }

// plan is a fault with what it asks of its place.
type plan struct {
	what does
	// fits tells whether an instruction can be the place.
	fits func(g *grid, r int, p []instr, i int) bool
	// change makes the rank's own program; nil: it stays.
	change func(g *grid, r int, p []instr, i int) []instr
}

func blocking(_ *grid, _ int, p []instr, i int) bool { return symmetric(&p[i]) && !p[i].async }

func steady(g *grid, r int, p []instr, i int) bool {
	return blocking(g, r, p, i) && !p[i].uneven
}

// ErrNoPlace is returned for a fault that a layout cannot have.
var ErrNoPlace = errors.New("place fault: the layout cannot have it")

// pick finds a place for a plan in one of the middle steps.
func (pl *plan) pick(g *grid, programs [][]instr, rng *rand.Rand, not []int) (r, i int, err error) {
	first := max(1, g.Warm)
	step := first + rng.IntN(max(1, g.Steps-1-first))
	for _, r := range rng.Perm(g.world) {
		if slices.Contains(not, r) {
			continue
		}
		var fit []int
		for i := range programs[r] {
			if programs[r][i].step == step && pl.fits(g, r, programs[r], i) {
				fit = append(fit, i)
			}
		}
		if len(fit) > 0 {
			return r, fit[rng.IntN(len(fit))], nil
		}
	}
	return 0, 0, fmt.Errorf("%w: %s", ErrNoPlace, g.Name)
}

// edit returns a program with one instruction changed.
func edit(p []instr, i int, f func(*instr)) []instr {
	p = slices.Clone(p)
	p[i].in, p[i].out = slices.Clone(p[i].in), slices.Clone(p[i].out)
	p[i].msgs = slices.Clone(p[i].msgs)
	f(&p[i])
	return p
}
