// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"math"
	"slices"
)

// Families of faults and imbalances. Severity is a factor where nothing else is said.
const (
	GPUClock        = "gpu_clock"        // all kernels of a rank
	OneKernel       = "one_kernel"       // one kernel of a rank, with its grid as everywhere
	KernelChoice    = "kernel_choice"    // one kernel of a rank runs under another name
	HostDataLoader  = "host_dataloader"  // a rank loads data for s longer in each step
	HostGC          = "host_gc"          // a rank's host pauses for s, every so many steps
	HostCPU         = "host_cpu"         // a rank's launches take a multiple, more at random
	HostCheckpoint  = "host_checkpoint"  // a rank is kept for s, every so many steps
	NICTx           = "nic_tx"           // what a rank's card sends
	NICRx           = "nic_rx"           // what a rank's card receives
	Link            = "link"             // what a rank sends to one other
	Switch          = "switch"           // what all cards of Count nodes send: no rank's fault
	NVLink          = "nvlink"           // what a rank sends within its node
	Node            = "node"             // all kernels of all ranks of a host
	Transient       = "transient"        // all kernels of a rank, for 5 to 10 steps
	Ramp            = "ramp"             // all kernels of a rank, growing to the factor until the last step
	JobWide         = "job_wide"         // all kernels of all ranks
	Jitter          = "jitter"           // every rank's host pauses for s, every so many steps, each at its own time
	SeqLen          = "seqlen"           // sigma of what attention costs, by microbatch and replica
	SeqLenTokens    = "seqlen_tokens"    // the same of all work, and grids tell
	HotExpert       = "hot_expert"       // one place in each expert group gets more tokens; grids tell
	HotExpertBlind  = "hot_expert_blind" // the same, and grids do not tell
	HotExpertMoving = "hot_expert_moving"
	Stage           = "stage"           // one stage has this share of layers more
	CheckpointStep  = "checkpoint_step" // all ranks are kept for s, every so many steps: healthy
)

var families = []string{
	GPUClock, OneKernel, KernelChoice, HostDataLoader, HostGC, HostCPU, HostCheckpoint, NICTx, NICRx, Link, Switch, NVLink, Node, Transient, Ramp,
	JobWide, Jitter, SeqLen, SeqLenTokens, HotExpert, HotExpertBlind, HotExpertMoving, Stage, CheckpointStep,
}

func (f *Fault) check(s *Spec) error {
	l := s.Layout
	need := func(ok bool, what string) error {
		if !ok {
			return fmt.Errorf("check fault %s: want %s", f.Family, what)
		}
		return nil
	}
	if !slices.Contains(families, f.Family) {
		return fmt.Errorf("check fault: got family %q; want one of %v", f.Family, families)
	}
	if f.Severity < 0 || math.IsNaN(f.Severity) || math.IsInf(f.Severity, 0) {
		return fmt.Errorf("check fault %s: got severity %g; want a number from 0", f.Family, f.Severity)
	}
	for _, r := range f.Ranks {
		if r < 0 || r >= int64(l.Ranks()) {
			return fmt.Errorf("check fault %s: got rank %d; want 0 to %d", f.Family, r, l.Ranks()-1)
		}
	}
	switch f.Family {
	case NICTx, NICRx, Link, Switch:
		return need(l.Ranks() > l.PerNode, "several nodes")
	case NVLink:
		return need(l.TP > 1 && l.TP <= l.PerNode, "tensor parallel ranks in one node")
	case Stage:
		return need(l.PP > 1, "stages")
	case HotExpert, HotExpertBlind, HotExpertMoving:
		return need(l.EP > 1, "experts")
	case HostGC, HostCheckpoint, Jitter, CheckpointStep:
		return need(f.Every > 0, "every")
	}
	return nil
}

// placed is a fault in its place.
type placed struct {
	Fault
	index  int
	seed   uint64
	ranks  []int
	peer   int // of a link
	stage  int
	kernel []int32 // by stage: the one that is slower
	expert int
	burst  [2]int64
}

// place lets the seed choose where a fault is. Places of one job do not coincide.
func (j *Job) place(i int, f Fault, taken map[int]bool) (placed, error) {
	p := placed{Fault: f, index: i, seed: hash(j.seed, forPlace, uint64(i)), peer: none, stage: none}
	if p.To <= 0 {
		p.To = int64(j.spec.Steps) - 1
	}
	p.burst = [2]int64{p.From, p.To}
	p.expert = int(hash(p.seed, 1, 0) % uint64(j.EP))
	switch f.Family {
	case Stage:
		p.stage = int(hash(p.seed, 2, 0) % uint64(j.PP))
	case JobWide, Jitter, SeqLen, SeqLenTokens, HotExpert, HotExpertBlind, HotExpertMoving, CheckpointStep:
	case Node, Switch:
		for n := range max(f.Count, 1) {
			node := int(hash(p.seed, 3, uint64(n)) % uint64(j.nodes()))
			if len(f.Ranks) > 0 {
				node = j.node(int(f.Ranks[0]))
			}
			for r := node * j.PerNode; r < min((node+1)*j.PerNode, j.world); r++ {
				if !slices.Contains(p.ranks, r) {
					p.ranks = append(p.ranks, r)
				}
				taken[r] = true
			}
		}
	default:
		if p.ranks = j.choose(&p, taken); len(p.ranks) == 0 {
			return p, fmt.Errorf("place fault %s: found no rank for it", f.Family)
		}
	}
	switch f.Family {
	case Transient:
		n := 5 + int64(hash(p.seed, 4, 0)%6)
		room := max(p.To-p.From+1-n, 0)
		p.burst[0] = p.From + int64(hash(p.seed, 5, 0)%uint64(room+1))
		p.burst[1] = min(p.burst[0]+n-1, p.To)
	case Link, NICTx, NICRx:
		p.peer = j.onward(p.ranks[0])
	case OneKernel, KernelChoice:
		for _, prog := range j.programs {
			p.kernel = append(p.kernel, chooseKernel(prog, p.seed))
		}
	}
	slices.Sort(p.ranks)
	return p, nil
}

func (j *Job) choose(p *placed, taken map[int]bool) (out []int) {
	for _, r := range p.Ranks {
		out = append(out, int(r))
		taken[int(r)] = true
	}
	for n := uint64(0); len(out) < max(p.Count, 1) && n < 1000 && len(p.Ranks) == 0; n++ {
		r := int(hash(p.seed, 6, n) % uint64(j.world))
		if !taken[r] && (p.Family != Link && p.Family != NICTx && p.Family != NICRx || j.onward(r) >= 0) {
			taken[r] = true
			out = append(out, r)
		}
	}
	return out
}

// onward returns to whom a rank sends over the network in its largest communicator
// that spans nodes, or the next stage; none where it sends to nobody.
func (j *Job) onward(r int) int {
	for _, k := range []commKind{commDP, commWorld} {
		if k == commWorld && !j.FSDP {
			continue
		}
		g, m := j.group(k, r)
		if c := &j.comms[k][g]; c.wide && j.size(k) > 1 {
			return j.next(k, c, g, m)
		}
	}
	if j.PP > 1 && j.pp(r)+1 < j.PP {
		if to := r + j.DP*j.TP; j.node(to) != j.node(r) {
			return to
		}
	}
	return none
}

// chooseKernel picks one of a program's heavy kernels, the same in all programs
// that have it.
func chooseKernel(p *program, seed uint64) int32 {
	pick, best := int32(0), uint64(0)
	sum := make([]float64, len(p.kernels))
	total := 0.0
	for i := range p.items {
		if it := &p.items[i]; it.kind == itemKernel {
			sum[it.kernel] += it.nanos
			total += it.nanos
		}
	}
	for i := range p.kernels {
		h := hash(seed, 7, textSeed(p.kernels[i].name+p.kernels[i].rest))
		if sum[i] > 0.08*total && p.kernels[i].work != workNone && h > best {
			pick, best = int32(i), h
		}
	}
	return pick
}

// active reports whether the fault is there in a step.
func (p *placed) active(n int64) bool { return n >= p.burst[0] && n <= p.burst[1] }

// effect is what faults do to one rank in one step.
type effect struct {
	device  float64 // factor on kernels
	kernel  int32
	factor  float64 // on that kernel
	chosen  bool    // which then runs under its other name
	data    float64 // ns more of loading
	launch  float64 // factor on launches
	pause   float64 // ns somewhere in the step
	pauseAt float64 // share of the program
	keep    float64 // ns before the step
	tx, rx  float64
}

var unharmed = effect{device: 1, kernel: none, factor: 1, launch: 1, tx: 1, rx: 1}

// harm sets what all faults do in a step.
func (j *Job) harm(n int64) {
	for _, r := range j.harmed {
		j.effects[r] = unharmed
	}
	j.harmed = j.harmed[:0]
	j.wires = j.wires[:0]
	j.seqSigma, j.tokSigma, j.hot, j.hotFactor, j.hotBlind = j.spec.Noise.SeqLen, 0, none, 1, false
	for i := range j.faults {
		if p := &j.faults[i]; p.index != j.skip && p.active(n) {
			j.apply(p, n)
		}
	}
	j.slowGroups()
}

func (j *Job) apply(p *placed, n int64) {
	switch p.Family {
	case JobWide:
		for r := range j.world {
			j.touch(r).device *= p.Severity
		}
	case Jitter:
		for r := range j.world {
			if (n+int64(hash(p.seed, forPause, uint64(r))%uint64(p.Every)))%p.Every == 0 {
				j.pause(p, r, n)
			}
		}
	case CheckpointStep:
		if (n-p.From)%p.Every == p.Every-1 {
			for r := range j.world {
				j.touch(r).keep += p.Severity * 1e9 * lognormal(hash(hash(p.seed, 9, uint64(n)), uint64(r), 0), 0.05)
			}
		}
	case SeqLen:
		j.seqSigma = p.Severity
	case SeqLenTokens:
		j.tokSigma = p.Severity
	case HotExpert, HotExpertBlind:
		j.hot, j.hotFactor, j.hotBlind = p.expert, p.Severity, p.Family == HotExpertBlind
	case HotExpertMoving:
		j.hot, j.hotFactor = int(hash(p.seed, 8, uint64(n/max(p.Every, 1)))%uint64(j.EP)), p.Severity
	case Stage: // the program is longer
	default:
		for _, r := range p.ranks {
			j.harmRank(p, r, n)
		}
	}
}

func (j *Job) harmRank(p *placed, r int, n int64) {
	e := j.touch(r)
	switch p.Family {
	case GPUClock, Node, Transient:
		e.device *= p.Severity
	case Ramp:
		e.device *= 1 + (p.Severity-1)*float64(n-p.From+1)/float64(p.To-p.From+1)
	case OneKernel, KernelChoice:
		e.kernel, e.factor, e.chosen = p.kernel[j.stageOf(r)], p.Severity, p.Family == KernelChoice
	case HostDataLoader:
		e.data += p.Severity * 1e9 * lognormal(hash(hash(p.seed, 10, uint64(n)), uint64(r), 0), 0.1)
	case HostGC:
		if (n-p.From)%p.Every == 0 {
			j.pause(p, r, n)
		}
	case HostCPU:
		e.launch *= p.Severity
	case HostCheckpoint:
		if (n-p.From)%p.Every == 0 {
			e.keep += p.Severity * 1e9
		}
	case NICTx, Switch:
		e.tx *= p.Severity
		j.wires = append(j.wires, wire{src: r, dst: none, factor: p.Severity})
	case NICRx:
		e.rx *= p.Severity
		j.wires = append(j.wires, wire{src: none, dst: r, factor: p.Severity})
	case Link:
		j.wires = append(j.wires, wire{src: r, dst: j.onward(r), factor: p.Severity})
	case NVLink:
		j.wires = append(j.wires, wire{src: r, dst: none, factor: p.Severity, inside: true})
	}
}

func (j *Job) touch(r int) *effect {
	j.harmed = append(j.harmed, r)
	return &j.effects[r]
}

// pause stops a rank's host once in the step.
func (j *Job) pause(p *placed, r int, n int64) {
	h := hash(hash(p.seed, forPause, uint64(n)), uint64(r), 1)
	e := j.touch(r)
	e.pause += p.Severity * 1e9 * lognormal(h, 0.2)
	e.pauseAt = 0.1 + 0.7*unit(mix(h))
}
