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

func notJudged(why string) *Cell { return &Cell{Verdict: NotJudged, Why: why} }

const (
	noEnds     = "Without completions every operation ends at its enqueueing: how long anybody took between two of them is unknown."
	noScopes   = "`host` is told, its cause is not: nobody says in which scope the host was."
	byScope    = "Most of the host's idleness beyond its peers' lies in scopes of that cause."
	noSends    = "That a collective took long for all is seen; whose sends were slow is not, and nobody is named for it."
	sendsOf    = "Waits on the wire per sent step stand out from those of at least two other senders. Which end of the link is at fault is not decided."
	unrecorded = "The profiler records no such scope by itself: `host` is told, its cause is not. A program that marks one by its standard name has it told."
	asCompute  = "Whoever computes longer than its peers is called `compute`: that it had more to do is not told from that it was slower."
	asKernel   = "Named as `compute`, with the kernel that took longer: whether its peers ran another one has to be looked up."
	unmarked   = " In many short segments launched ahead, as in sharded training that reads one value a step, nobody is named."
	eachAlone  = "Its ranks are named one by one as `compute`, not as a node; as each alone gains little while the other is as slow, one of them or both may stay unnamed."
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
	"work_imbalance": {
		host: *notJudged(noEnds), channels: *bounds(asCompute+unmarked, computeAs, Nobody),
		cupti: bounds(asCompute, computeAs), kineto: bounds(asCompute, computeAs),
	},
	"stage_imbalance": {
		host:     *notJudged(noEnds),
		channels: *notJudged("Stages are no peers of each other, so that none is accused for having more layers. The pipeline's idleness is not told of."),
		kineto:   notJudged("Stages are no peers of each other, so that none is accused for having more layers. The pipeline's idleness is not told of."),
	},
	"kernel_choice": {
		host: *notJudged(noEnds), channels: *bounds("Named as `compute`: kernels are not seen."+unmarked, computeAs, Nobody),
		cupti: bounds(asKernel, computeAs), kineto: bounds(asKernel, computeAs),
	},
	"jitter": {
		host:     *notJudged(noEnds),
		channels: *notJudged("A rank held up in one step of five stands out in too few of them."),
		kineto:   notJudged("A rank held up in one step of five stands out in too few of them."),
	},
	"node": {
		host: *notJudged(noEnds), channels: *bounds(eachAlone, computeAs),
		scopes: bounds(eachAlone, computeAs, Nobody), cupti: bounds(eachAlone, computeAs),
		kineto: bounds(eachAlone, computeAs, Nobody),
	},
	"job_wide": {
		host:     *notJudged(noEnds),
		channels: *notJudged("All ranks are slower alike: there are no peers to compare with, and no former steps are."),
		kineto:   notJudged("All ranks are slower alike: there are no peers to compare with, and no former steps are."),
	},
}
