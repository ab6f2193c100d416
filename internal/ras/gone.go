// SPDX-License-Identifier: Apache-2.0

package ras

import "strings"

// lost is one GPU of a process that an answer in text lists as dead, or as one that does not answer.
type lost struct {
	Process
	dead bool
}

// lose notes a process of such a list: one entry for each of its GPUs.
func (p *proseParser) lose(pid int, host, gpus string) {
	for gpu := range strings.SplitSeq(gpus, ",") {
		if len(p.gone) >= maxRanks {
			return
		}
		process := Process{Rank: -1, Host: host, PID: pid, CUDADev: atoi(gpu)}
		at, _ := process.seat()
		i, twice := p.goneAt[at]
		if !twice {
			i = len(p.gone)
			p.goneAt[at] = i
			p.gone = append(p.gone, lost{Process: process})
		}
		if p.inDead && !p.gone[i].dead {
			p.gone[i].dead = true
			p.status.Dead = append(p.status.Dead, process)
		}
	}
}

// attribute says of members that the answer lists by their ranks alone whether they are dead. A member
// that does not answer is one of the processes that are gone: where there is one of each, it is that one.
func (p *proseParser) attribute(c *proseComm) {
	gone, living := p.goneBeside(c), false
	for i := range gone {
		living = living || !gone[i].dead
	}
	var unnamed []*MissingRank
	for i := range c.Missing {
		if m := &c.Missing[i]; m.Unresponsive && m.PID < 0 {
			unnamed = append(unnamed, m)
		}
	}
	if len(unnamed) == 0 || len(unnamed) > len(gone) {
		return
	}
	for _, m := range unnamed {
		m.ConsideredDead = m.ConsideredDead || !living
	}
	if len(unnamed) == 1 && len(gone) == 1 {
		m := unnamed[0]
		m.Host, m.PID, m.CUDADev = gone[0].Host, gone[0].PID, gone[0].CUDADev
	}
}

// goneBeside are the GPUs that are gone and that no member which the answer names has.
func (p *proseParser) goneBeside(c *proseComm) (rest []lost) {
	named := map[seat]bool{}
	for i := range c.Missing {
		named[seat{host: c.Missing[i].Host, pid: c.Missing[i].PID}] = true
	}
	for _, l := range p.gone {
		if !named[seat{host: l.Host, pid: l.PID}] {
			rest = append(rest, l)
		}
	}
	return rest
}
