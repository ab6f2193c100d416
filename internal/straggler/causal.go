// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Nobody leaves a meeting before the one whom all wait for has come. Where stamps say so,
// they are wrong (two clocks under one id, numbers that lead to the wrong partners), and
// tell nothing of who kept whom.

// causalSigmas is how many times their uncertainty stamps of two clocks may be apart.
const causalSigmas = 3

// impossible is what meetings said that cannot be.
type impossible struct {
	meetings, by int64 // and the most that one was too early, ns
	odd, rank    int64 // of them, those that could be but for one rank; the last one's
}

// early returns by how much a member left before the one whom it had to wait for came, ns,
// beyond what clocks are uncertain by; 0 where none did.
func (m *meeting) early() (most int64) {
	if m.rule == waitNobody || (m.rule == waitAll && !model.Synchronising(m.name())) {
		return 0
	}
	for i := range m.parties {
		if i != m.last && !m.parties[i].op.inferred {
			most = max(most, m.arrived-m.exit[i]-m.uncertain(i, m.last))
		}
	}
	return most
}

// uncertain returns how far apart the stamps of two members may be said to be, ns.
func (m *meeting) uncertain(i, k int) int64 {
	a, b := &m.parties[i], &m.parties[k]
	slack := clock.DefaultResolution
	if a.at.clockOf(a.op) != b.at.clockOf(b.op) {
		slack += causalSigmas * (a.sigma() + b.sigma())
	}
	return int64(slack)
}

// sigma returns how uncertain the clock of a member's operation is.
func (p *party) sigma() time.Duration {
	if p.op.clock == "" {
		return p.at.offset.Sigma
	}
	o, _ := p.at.clocks.Offset(p.op.clock)
	return o.Sigma
}

// odd returns the only member without whom the meeting could have been; -1 where there is
// none, or more than one.
func (m *meeting) odd() int {
	out := -1
	for i := range m.parties {
		if len(m.parties) < 3 || !m.possibleWithout(i) {
			continue
		}
		if out >= 0 {
			return -1
		}
		out = i
	}
	return out
}

func (m *meeting) possibleWithout(i int) bool {
	came, left := int64(math.MinInt64), int64(math.MaxInt64)
	for k := range m.parties {
		if k == i {
			continue
		}
		came = max(came, m.enter[k])
		if !m.parties[k].op.inferred {
			left = min(left, m.exit[k])
		}
	}
	return came <= left || came-left <= int64(clock.DefaultResolution)
}

// doubtOrder takes the attribution from meetings that cannot have been, and counts them.
func (j *job) doubtOrder(meetings []*meeting) {
	f := &j.faults.impossible
	for _, m := range meetings {
		by := m.early()
		if by <= 0 {
			continue
		}
		m.attributed, m.impossible = false, true
		f.meetings++
		f.by = max(f.by, by)
		if i := m.odd(); i >= 0 {
			v := m.parties[i].at
			v.odd++
			f.odd, f.rank = f.odd+1, v.rank.Rank
		}
	}
}

func (f *impossible) say() string {
	s := fmt.Sprintf("in %d collectives or messages a member left before one that it waits for had come, by up to %v, which cannot be: their waits are owed to nobody", f.meetings, time.Duration(f.by).Round(time.Microsecond))
	if f.odd > 0 {
		s += fmt.Sprintf("; in %d of them it could be without one rank, the last: rank %d", f.odd, f.rank)
	}
	return s + ". Do two clocks bear one id, or does somebody count collectives differently?"
}

// strays reports whether the rank's stamps are on no clock of the others, in most of what
// it took part in.
func (v *rankView) strays() bool { return 2*v.odd > len(v.comms) }
