// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"slices"
	"strings"
)

// maxGPUs bounds the GPUs of one process that is gone.
const maxGPUs = 64

// lost is a process that an answer in text lists as dead, or as one that does not answer.
type lost struct {
	gpus []int
	dead bool
}

// process is its process with one of its GPUs.
func (l *lost) process(at seat, gpu int) Process {
	return Process{Rank: -1, Host: at.host, PID: at.pid, CUDADev: gpu}
}

// lose notes a process of such a list, with its GPUs.
func (p *proseParser) lose(at seat, gpus string) {
	l := p.gone[at]
	if l == nil {
		if len(p.gone) >= maxRanks {
			return
		}
		l = &lost{}
		p.gone[at] = l
	}
	if p.inDead && !l.dead {
		l.dead = true
		p.living -= len(l.gpus)
		for _, gpu := range l.gpus {
			p.status.Dead = append(p.status.Dead, l.process(at, gpu))
		}
	}
	for text := range strings.SplitSeq(gpus, ",") {
		gpu := atoi(text)
		if len(l.gpus) >= maxGPUs || slices.Contains(l.gpus, gpu) {
			continue
		}
		l.gpus = append(l.gpus, gpu)
		p.goneGPUs++
		if l.dead {
			p.status.Dead = append(p.status.Dead, l.process(at, gpu))
		} else {
			p.living++
		}
	}
}

// attribute says which members are dead. One that the answer lists by its rank alone is one of the
// processes that are gone and that no other member has: where there is one of each, it is that one.
func (p *proseParser) attribute(c *proseComm) {
	gone, living, named := p.goneGPUs, p.living, map[seat]bool{}
	var unnamed []*MissingRank
	for i := range c.Missing {
		m := &c.Missing[i]
		at := seat{host: m.Host, pid: m.PID}
		switch l := p.gone[at]; {
		case m.PID < 0 && m.Unresponsive:
			unnamed = append(unnamed, m)
		case l == nil:
		default:
			m.ConsideredDead = l.dead
			if named[at] {
				continue
			}
			named[at] = true
			gone -= len(l.gpus)
			if !l.dead {
				living -= len(l.gpus)
			}
		}
	}
	if len(unnamed) > gone {
		return
	}
	for _, m := range unnamed {
		m.ConsideredDead = living == 0
	}
	if len(unnamed) != 1 || gone != 1 {
		return
	}
	for at, l := range p.gone {
		if !named[at] && len(l.gpus) == 1 {
			unnamed[0].Host, unnamed[0].PID, unnamed[0].CUDADev = at.host, at.pid, l.gpus[0]
		}
	}
}
