// SPDX-License-Identifier: Apache-2.0

package capability

import "github.com/lockstep-otel/lockstep/internal/model"

// line is what the rows can tell of one class; rows that share a cell share a member.
type line struct {
	host     Cell // NCCL host events
	channels Cell // + kernel channels, + proxy steps
	proxies  *Cell
	scopes   *Cell
	cupti    *Cell
	kineto   *Cell
}

// of returns the cell of a row; a live row without one of its own has the former's.
func (l line) of(row Row) Cell {
	if row == HostEvents {
		return l.host
	}
	if row == Kineto {
		return *l.kineto
	}
	cell := l.channels
	for _, next := range []struct {
		row  Row
		cell *Cell
	}{{KernelChannels, nil}, {ProxySteps, l.proxies}, {Scopes, l.scopes}, {CUPTI, l.cupti}} {
		if next.cell != nil {
			cell = *next.cell
		}
		if next.row == row {
			break
		}
	}
	return cell
}

func decides(told, why string) *Cell { return &Cell{Verdict: Decides, Told: []string{told}, Why: why} }

func bounds(why string, told ...string) *Cell { return &Cell{Verdict: Bounds, Told: told, Why: why} }

func abstains(why string) *Cell { return &Cell{Verdict: Abstains, Why: why} }

const (
	noEnds     = "Without completions every operation ends at its enqueueing: how long anybody took between two of them is unknown."
	noScopes   = "`host` is told, its cause is not: nobody says in which scope the host was."
	byScope    = "Most of the host's idleness beyond its peers' lies in scopes of that cause."
	noSends    = "That a collective took long for all is seen; whose sends were slow is not, and nobody is named for it."
	sendsOf    = "Waits on the wire per sent step stand out from those of at least two other senders. Which end of the link is at fault is not decided."
	unrecorded = "The profiler records no such scope by itself: `host` is told, its cause is not. A program that marks one by its standard name has it told."
	asCompute  = "Whoever computes longer than its peers is called `compute`: how much it had to do is not recorded."
	byGrids    = "Whose kernels have larger grids has more to do, and nobody is accused. Kernels with as many blocks as the device holds, whatever they do, tell nothing of amounts: where most of the time is theirs, the rank is called `compute`."
	asKernel   = "Named as `compute`: kernels are not seen."
	otherName  = "Its peers run a kernel of another name for the same purpose: one that differs in what libraries choose, as tile sizes. What only arguments of a template tell, rings do not hold: then it is `compute`."
	unmarked   = " In many short segments launched ahead, as in sharded training that reads one value a step, nobody is named."
	noStages   = "Which stage a rank is of, no row records, and stages are no peers: none is accused for having more layers. Where `lockstep.parallel.pp.rank` says it, the stage is told from kernel channels on and by Kineto: `TestStagesThatAreSaid`."
	inTurn     = "Hosts pause in turn, and none far more often than the others: they are told as a whole, with how long and how often, and nobody is accused. A rank that alone is held up in some steps is told as `host`, not in as few as ten: `TestARankThatIsHeldUpNowAndThen`."
	together   = "Its ranks stand out together, and no others do: the node is told in place of its ranks."
	sinceWhen  = "Compared with former steps, eight or more on both sides: since which step, and whether the device, the host or communication takes longer."
	tooFew     = "Ten steps are fewer than eight before a change and eight after it."
)

const computeAs, hostAs = "compute", "host"

// hostCause is the line of a late host with a cause that scopes tell.
func hostCause(cause string, kineto *Cell) line {
	return line{
		host: *abstains(noEnds), channels: *bounds(noScopes, hostAs),
		scopes: decides(hostAs+"/"+cause, byScope), kineto: kineto,
	}
}

// stragglers are the lines of kind straggler, by class or cause of class host.
var stragglers = map[string]line{
	model.ClassCompute: {
		host: *abstains(noEnds),
		channels: *bounds("Work before a collective is told by how long that, launched, could not begin. What follows the step's last collective, and "+
			"work that the host waits for before it launches one, is called `host`."+unmarked, computeAs, hostAs, Nobody),
		cupti:  decides(computeAs, "Kernels are seen: whose took longer, and which."),
		kineto: decides(computeAs, "Kernels are seen: whose took longer, and which. Only of the steps that were recorded."),
	},
	model.ClassHost: {
		host:     *abstains(noEnds),
		channels: *decides(hostAs, "A collective that could begin as soon as it was launched was launched late: the device had nothing to do until then. A slow device can be called `host`, too: see `compute`."),
		scopes:   decides(hostAs, "As without scopes, and in which scope the host was; here it was in none. A slow device can be called `host`, too."),
		cupti:    decides(hostAs, "Nothing ran and nothing had been launched."),
		kineto:   decides(hostAs, "Nothing ran and nothing had been launched. Only of the steps that were recorded."),
	},
	model.CauseDataLoader: hostCause(model.CauseDataLoader, decides(hostAs+"/"+model.CauseDataLoader, "The profiler marks what a PyTorch DataLoader takes; `TestRecordings` has a real run of it.")),
	model.CauseGC:         hostCause(model.CauseGC, bounds(unrecorded, hostAs)),
	model.CauseCheckpoint: hostCause(model.CauseCheckpoint, bounds(unrecorded, hostAs)),
	model.CauseCompile:    hostCause(model.CauseCompile, bounds(unrecorded, hostAs)),
	model.ClassLink: {
		host: *abstains(noEnds), channels: *abstains(noSends),
		proxies: decides(model.ClassLink, sendsOf), kineto: abstains(noSends),
	},
	model.ClassWorkImbalance: {
		host: *abstains(noEnds), channels: *bounds(asCompute+unmarked, computeAs, Nobody),
		cupti: bounds(byGrids+" In one sharded job of ten nobody was told: what evening the work saves came out too small.", computeAs, Nobody, model.ClassWorkImbalance), kineto: bounds(byGrids, computeAs, model.ClassWorkImbalance),
	},
	model.ClassStageImbalance: {
		host: *abstains(noEnds), channels: *abstains(noStages), kineto: abstains(noStages),
	},
	model.ClassKernelChoice: {
		host: *abstains(noEnds), channels: *bounds(asKernel+unmarked, computeAs, Nobody),
		cupti: decides(model.ClassKernelChoice, otherName), kineto: decides(model.ClassKernelChoice, otherName),
	},
	model.ClassJitter: {
		host:     *decides(model.ClassJitter, "A host that pauses launches late: gaps between launches that go round over ranks are told, whatever they come of."),
		channels: *decides(model.ClassJitter, inTurn),
		kineto:   decides(model.ClassJitter, inTurn),
	},
	model.ClassNode: {
		host: *abstains(noEnds), channels: *decides(model.ClassNode, together),
		kineto: decides(model.ClassNode, together),
	},
	model.ClassJobWide: {
		host:     *decides(model.ClassJobWide, "That steps are longer than former ones, and since when; of what takes longer nothing is known."),
		channels: *decides(model.ClassJobWide, sinceWhen),
		kineto:   abstains(tooFew),
	},
}
