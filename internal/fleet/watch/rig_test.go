// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

const (
	oldDriver = "550.90.07"
	newDriver = "580.126.09"
)

// rig is a watch, its clock, and what nodes run.
type rig struct {
	*Watch
	now      time.Time
	revision int64
	drivers  []string // of each node; empty: it does not tell
	jobs     []plan
}

// plan is a job, of one rank on each of its nodes, and its communicators by ranks.
type plan struct {
	name  string
	nodes []int
	comms [][]int64
}

func newRig(change func(*Config), drivers ...string) *rig {
	cfg := NewDefaultConfig()
	if change != nil {
		change(&cfg)
	}
	return &rig{Watch: New(cfg), now: time.Unix(1_759_999_800, 0), drivers: drivers}
}

func hostName(n int) string { return fmt.Sprint("node", n) }

func version(node int, domain model.VersionDomain, v string, revision int64) model.VersionObservation {
	return model.VersionObservation{
		HostName: hostName(node), HostID: "id-" + hostName(node), Domain: domain, Version: v, Units: 1, Of: 1, Life: 1, Revision: revision,
	}
}

// observe takes a version that was told just now.
func (r *rig) observe(o *model.VersionObservation) {
	o.Time = r.now.UnixNano()
	r.Observe(o, r.now)
}

// tell has all nodes tell of their drivers, and all ranks of their communicators.
func (r *rig) tell() {
	r.revision++
	for i, v := range r.drivers {
		if v != "" {
			o := version(i, model.VersionKernelDriver, v, r.revision)
			r.observe(&o)
		}
	}
	for i := range r.jobs {
		r.states(&r.jobs[i])
	}
}

func (r *rig) states(p *plan) {
	for n := range p.nodes {
		s := state(p, int64(n))
		r.AddState(&s, r.now)
	}
}

// state is that of a rank of a job: of the communicators that it is a member of.
func state(p *plan, n int64) model.RankState {
	node := hostName(p.nodes[n])
	s := model.RankState{Source: model.StateRankEvents, Process: model.ProcessRunning, Rank: model.Rank{
		JobID: p.name, Incarnation: "life of " + p.name, Rank: n, HostName: node, HostID: "id-" + node, PID: model.Some(n + 100),
	}}
	for i, members := range p.comms {
		for _, m := range members {
			if m == n {
				s.Comms = append(s.Comms, model.CommState{Comm: model.Comm{ID: fmt.Sprintf("%s-%d", p.name, i)}, Backend: "nccl", Members: members})
			}
		}
	}
	return s
}

// pass lets time pass, with a word of all every five minutes, and returns what is said.
func (r *rig) pass(d time.Duration) (said []string) {
	for end := r.now.Add(d); r.now.Before(end); {
		if r.now.Unix()%300 == 0 {
			r.tell()
		}
		r.now = r.now.Add(time.Minute)
		for _, f := range r.Tick(r.now) {
			said = append(said, words(&f))
		}
	}
	return said
}

func evidenceOf(f *model.Finding) *evidence.Fleet {
	ev, _ := evidence.As[evidence.Fleet](f.Evidence)
	return ev
}

func words(f *model.Finding) string {
	ev := evidenceOf(f)
	text := fmt.Sprintf("%s %s", f.CommID, f.Op)
	for i, h := range ev.Held {
		text += []string{": ", ", "}[min(i, 1)] + fmt.Sprintf("%d×%s", h.Nodes, strings.Join(h.Versions, "|"))
	}
	if f.Status == model.StatusClosed {
		return text + "; ended"
	}
	return text + fmt.Sprintf("; minority %v on %v", f.Ranks, ev.Hosts)
}
