package suite

import "github.com/lockstep-otel/lockstep/internal/sim/hang"

// Rates are the shares of dumps that are missing, in percent.
var Rates = []int{0, 10, 20, 30, 40, 50}

// row are floors by Rates, in percent.
type row [6]float64

var (
	culpritSeen = row{98, 85, 72, 60, 48, 35}
	deadSeen    = row{98, 90, 85, 80, 70, 60}
	lagOfOne    = row{50, 40, 30, 20, 15, 10}
	allSeen     = row{90, 35, 15, 5, 0, 0}
	fewSeen     = row{90, 50, 25, 10, 0, 0}
	differs     = row{95, 70, 50, 35, 25, 15}
	twoDiffer   = row{90, 60, 40, 20, 10, 0}
	order       = row{80, 50, 35, 20, 12, 8}
	short       = row{80, 50, 30, 20, 10, 5}
)

var floors = map[string]row{
	hang.HostStuck: culpritSeen, hang.HostsStuck: culpritSeen, hang.DeviceStopped: culpritSeen, hang.InitStuck: culpritSeen, hang.TwoFaults: culpritSeen,
	hang.ProcessDead: deadSeen, hang.DeviceOne: lagOfOne,
	hang.DeviceSilent: allSeen, hang.StalledOp: allSeen, hang.StalledMessage: allSeen, hang.WrongRoot: allSeen, hang.Network: allSeen,
	hang.UnevenSplit: fewSeen,
	hang.WrongOp:     differs, hang.WrongSize: differs, hang.WrongDType: differs, hang.WrongMessage: differs,
	hang.WrongOpTwo:    twoDiffer,
	hang.SwappedGroups: order, hang.SwappedOps: order, hang.SkippedOp: order, hang.ExtraOp: order, hang.NoRecv: order, hang.WrongPeer: order,
	hang.WrongSizeShort: short,
}

// Floor is the least share of a family's faults to be decided, from 0 to 1.
func Floor(family, evidence string, rate int) float64 {
	f := floors[family][rate/10] / 100
	switch {
	case evidence == "joined" && family == hang.WrongRoot:
		return differs[rate/10] / 100
	case evidence == "wrapped":
		return f * 0.8
	case evidence == "torn":
		return f * 0.5
	case evidence == "only_active" && family == hang.WrongSizeShort:
		return 0
	}
	return f
}
