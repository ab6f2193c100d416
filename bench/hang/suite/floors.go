// SPDX-License-Identifier: Apache-2.0

package suite

import "github.com/lockstep-otel/lockstep/internal/sim/hang"

// Rates are the shares of dumps that are missing, in percent.
var Rates = []int{0, 10, 20, 30, 40, 50}

// Kinds are families that dumps tell alike, and for which one floor counts.
const (
	kindHost     = "a rank that stopped"  // a host, a device or a process that does not go on
	kindDead     = "a process that died"  // and is known to have
	kindOnce     = "one operation's end"  // a device that does not end one operation
	kindNobody   = "nobody's fault"       // all are in it, and it does not end
	kindMismatch = "a different call"     // of one operation
	kindShort    = "less than the others" // the one that differs is through
	kindOrder    = "operations of one group"
	kindCircle   = "groups and messages"
)

var kinds = map[string]string{
	hang.HostStuck: kindHost, hang.HostsStuck: kindHost, hang.DeviceStopped: kindHost, hang.InitStuck: kindHost, hang.TwoFaults: kindHost,
	hang.ProcessDead: kindDead, hang.DeviceOne: kindOnce,
	hang.DeviceSilent: kindNobody, hang.StalledOp: kindNobody, hang.StalledMessage: kindNobody, hang.Network: kindNobody, hang.UnevenSplit: kindNobody,
	hang.WrongOp: kindMismatch, hang.WrongSize: kindMismatch, hang.WrongDType: kindMismatch, hang.WrongMessage: kindMismatch, hang.WrongOpTwo: kindMismatch,
	hang.WrongSizeShort: kindShort,
	hang.SwappedOps:     kindOrder, hang.SkippedOp: kindOrder, hang.ExtraOp: kindOrder,
	hang.SwappedGroups: kindCircle, hang.NoRecv: kindCircle, hang.WrongPeer: kindCircle,
}

// faultKind is empty for families without a floor.
func faultKind(family, evidence string) string {
	switch {
	case family == hang.WrongRoot && evidence == "joined":
		return kindMismatch // roots are known
	case family == hang.WrongRoot:
		return kindNobody
	}
	return kinds[family]
}

// sight is what evidence lets be seen: whole buffers, overwritten ones, cut files.
func sight(evidence string) string {
	if evidence == "wrapped" || evidence == "torn" {
		return evidence
	}
	return "whole"
}

// row are floors by Rates, in percent.
type row [6]float64

// floors were set from WorkSeeds, before HeldSeeds were run: the share that was decided, less
// three standard deviations of what as many seeds as are held out scatter, 5 points at least,
// down to the next multiple of 5.
var floors = map[string]map[string]row{
	kindHost: {
		"whole":   {90, 80, 65, 55, 45, 35},
		"wrapped": {85, 70, 60, 45, 40, 30},
		"torn":    {75, 60, 50, 40, 35, 30},
	},
	kindDead: {
		"whole":   {95, 95, 95, 95, 95, 95},
		"wrapped": {95, 95, 95, 95, 95, 95},
		"torn":    {90, 85, 95, 90, 90, 90},
	},
	kindOnce: {
		"whole":   {50, 30, 25, 20, 10, 5},
		"wrapped": {60, 35, 30, 15, 5, 0},
		"torn":    {50, 35, 15, 15, 5, 0},
	},
	kindNobody: {
		"whole":   {85, 50, 30, 20, 10, 5},
		"wrapped": {50, 25, 15, 5, 0, 0},
		"torn":    {30, 20, 10, 10, 0, 0},
	},
	kindMismatch: {
		"whole":   {90, 80, 65, 50, 40, 30},
		"wrapped": {70, 60, 45, 35, 30, 20},
		"torn":    {60, 50, 40, 35, 25, 15},
	},
	kindShort: {
		"whole":   {95, 75, 55, 35, 25, 15},
		"wrapped": {55, 40, 35, 15, 10, 5},
		"torn":    {45, 35, 15, 20, 5, 0},
	},
	kindOrder: {
		"whole":   {90, 65, 50, 40, 25, 15},
		"wrapped": {65, 45, 35, 25, 15, 5},
		"torn":    {50, 35, 30, 15, 10, 5},
	},
	kindCircle: {
		"whole":   {85, 10, 5, 0, 0, 0},
		"wrapped": {55, 0, 0, 0, 0, 0},
		"torn":    {10, 0, 0, 0, 0, 0},
	},
}

// Floor is the least share of a kind's faults to be decided, from 0 to 1.
func Floor(kind, sight string, rate int) float64 { return floors[kind][sight][rate/10] / 100 }
