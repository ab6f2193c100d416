// SPDX-License-Identifier: Apache-2.0

package training

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// nature is what a family of faults is.
type nature struct {
	class, cause string
	imbalance    bool
	slows        bool // severity is a factor on own time
}

var natures = map[string]nature{
	GPUClock:        {class: model.ClassCompute, slows: true},
	OneKernel:       {class: model.ClassCompute, slows: true},
	KernelChoice:    {class: model.ClassKernelChoice, slows: true},
	HostDataLoader:  {class: model.ClassHost, cause: model.CauseDataLoader},
	HostGC:          {class: model.ClassHost, cause: model.CauseGC},
	HostCPU:         {class: model.ClassHost},
	HostCheckpoint:  {class: model.ClassHost, cause: model.CauseCheckpoint},
	NICTx:           {class: model.ClassLink},
	NICRx:           {class: model.ClassLink},
	Link:            {class: model.ClassLink},
	NVLink:          {class: model.ClassLink},
	Switch:          {class: model.ClassLink, imbalance: true},
	Node:            {class: model.ClassNode, slows: true},
	Transient:       {class: model.ClassCompute, slows: true},
	Ramp:            {class: model.ClassCompute, slows: true},
	JobWide:         {class: model.ClassJobWide, imbalance: true, slows: true},
	Jitter:          {class: model.ClassJitter, cause: model.CauseGC, imbalance: true},
	SeqLen:          {class: model.ClassWorkImbalance, imbalance: true},
	SeqLenTokens:    {class: model.ClassWorkImbalance, imbalance: true},
	HotExpert:       {class: model.ClassWorkImbalance, imbalance: true},
	HotExpertBlind:  {class: model.ClassWorkImbalance, imbalance: true},
	HotExpertMoving: {class: model.ClassWorkImbalance, imbalance: true},
	Stage:           {class: model.ClassStageImbalance, imbalance: true},
}

// Truth returns what is wrong with the job. For the costs it runs the job again, once
// without each fault.
func (j *Job) Truth() Truth {
	t := j.truth()
	var with []float64
	for _, list := range [][]Culprit{t.Culprits, t.Imbalances} {
		for i := range list {
			c := &list[i]
			if c.BuiltIn {
				continue
			}
			if with == nil {
				with = j.seconds(j.skip)
			}
			without := j.seconds(c.fault)
			for n := c.First; n <= c.Last; n++ {
				c.Cost += (with[n] - without[n]) / float64(c.Last-c.First+1)
			}
		}
	}
	return t
}

// Places returns what is wrong without what it costs, which takes no time.
func (j *Job) Places() Truth { return j.truth() }

// seconds runs the job without one of its faults and returns how long each step is.
func (j *Job) seconds(skip int) []float64 {
	out := make([]float64, 0, j.spec.Steps)
	twin, err := newJob(j.spec, j.given, skip)
	if err != nil {
		panic(err) // the same job was made before
	}
	for s, ok := twin.Next(); ok; s, ok = twin.Next() {
		out = append(out, s.Seconds)
	}
	return out
}

// truth lists the faults and imbalances.
func (j *Job) truth() (t Truth) {
	for i := range j.faults {
		p := &j.faults[i]
		n := natures[p.Family]
		if n.class == "" || p.index == j.skip {
			continue
		}
		c := j.culprit(p, n)
		if n.imbalance {
			t.Imbalances = append(t.Imbalances, c)
		} else {
			t.Culprits = append(t.Culprits, c)
		}
	}
	all := int64(j.spec.Steps) - 1
	if j.PP > 1 {
		stage := Culprit{Family: Stage, Class: model.ClassStageImbalance, Stage: j.PP - 1, Peer: none, Last: all, BuiltIn: true}
		for r := range j.world {
			if j.pp(r) == stage.Stage {
				stage.Ranks = append(stage.Ranks, int64(r))
			}
		}
		t.Imbalances = append(t.Imbalances, stage)
	}
	if j.EP > 1 && j.spec.Noise.Experts > 0 {
		t.Imbalances = append(t.Imbalances, Culprit{Family: "experts", Class: model.ClassWorkImbalance, Stage: none, Peer: none, Last: all, BuiltIn: true})
	}
	return t
}

func (j *Job) culprit(p *placed, n nature) Culprit {
	c := Culprit{Family: p.Family, Class: n.class, Cause: n.cause, Stage: none, Peer: none, First: p.burst[0], Last: p.burst[1], fault: p.index}
	for _, r := range p.ranks {
		c.Ranks = append(c.Ranks, int64(r))
	}
	if n.slows {
		c.Slowdown = p.Severity
	}
	switch p.Family {
	case Stage:
		c.First, c.Last, c.Stage = 0, int64(j.spec.Steps)-1, p.stage
	case Node:
		c.Host = hostName(j.node(p.ranks[0]))
	case HotExpert, HotExpertBlind:
		for r := range j.world {
			if j.ep(r) == p.expert {
				c.Ranks = append(c.Ranks, int64(r))
			}
		}
	}
	if n.class == model.ClassLink {
		j.linkEnds(p, &c)
	}
	c.Ops = j.places(p)
	c.Unseen = len(p.ranks) > 0 && !slices.ContainsFunc(p.ranks, func(r int) bool { return !j.missing(r) })
	return c
}

// linkEnds notes in which groups a slow link is, and of what a card receives, who sends
// it.
func (j *Job) linkEnds(p *placed, c *Culprit) {
	add := func(list *[]int64, r int) {
		if !slices.Contains(*list, int64(r)) && !slices.Contains(c.Ranks, int64(r)) {
			*list = append(*list, int64(r))
		}
	}
	for _, r := range p.ranks {
		for k := range commPP {
			g, m := j.group(k, r)
			cm := &j.comms[k][g]
			if j.size(k) == 1 || cm.wide == (p.Family == NVLink) || j.programs[j.stageOf(r)].slots[k] == 0 {
				continue
			}
			if p.Family != Link || j.next(k, cm, g, m) == p.peer {
				c.Comms = append(c.Comms, cm.id)
			}
			if p.Family == NICRx {
				add(&c.Also, j.previous(k, cm, g, m))
			}
		}
		if j.PP > 1 && p.Family != NVLink {
			g, m := j.group(commPP, r)
			c.Comms = append(c.Comms, j.comms[commPP][g].id)
			if p.Family == NICRx { // both sides send to it
				add(&c.Also, j.member(commPP, g, (m+1)%j.PP))
				add(&c.Also, j.member(commPP, g, (m+j.PP-1)%j.PP))
			}
		}
	}
	if p.Family == Link {
		c.Peer = int64(p.peer)
	}
}

// previous returns who sends to a rank in a ring of the communicator.
func (g *grid) previous(k commKind, c *communicator, group, member int) int {
	step, n := 1, g.size(k)
	if c.wide {
		step = c.perNode
	}
	return g.member(k, group, (member-step%n+n)%n)
}

// places names where the excess lies: comparison keys of kernels and collectives, or
// scopes by both of their names.
func (j *Job) places(p *placed) (out []string) {
	scope := func(ss ...uint8) {
		for _, s := range ss {
			for _, name := range []string{scopeNames[s], profilerScopes[s]} {
				if name != "" {
					out = append(out, name)
				}
			}
		}
	}
	kernels := func(of func(s int, k int32) bool) {
		for s, prog := range j.programs {
			if len(p.ranks) > 0 && !slices.ContainsFunc(p.ranks, func(r int) bool { return j.stageOf(r) == s }) {
				continue
			}
			for k := range prog.kernels {
				if key := prog.kernels[k].key; of(s, int32(k)) && !slices.Contains(out, key) {
					out = append(out, key)
				}
			}
		}
	}
	switch p.Family {
	case OneKernel, KernelChoice:
		kernels(func(s int, k int32) bool { return k == p.kernel[s] })
	case HostDataLoader:
		scope(inData)
	case HostGC, Jitter:
		scope(inPause, inForward, inBackward, inOptimizer)
	case HostCPU:
		scope(inForward, inBackward, inOptimizer)
	case HostCheckpoint:
		scope(inCheckpoint)
	case NICTx, NICRx, Link, NVLink, Switch:
		for fn := range fns {
			out = append(out, fnNames[fn])
		}
		out = append(out, model.SendRecv)
	default:
		kernels(func(s int, k int32) bool { return j.programs[s].kernels[k].copied == 0 })
	}
	return out
}
