// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// lessKnown takes some of the evidence of a case away, in every way that happens, and checks
// that nobody is picked who was not, and that who was is still among those named.
func lessKnown(t *testing.T, text string, whole *desync.Report) {
	t.Helper()
	n := len(statetest.Read(t, text).States)
	for i := range n {
		c := statetest.Read(t, text)
		lost := c.States[i].Rank.Rank
		c.States = slices.Delete(c.States, i, i+1)
		if !slices.ContainsFunc(c.Absent, func(a model.Absence) bool { return a.Rank == lost }) {
			c.Absent = append(c.Absent, model.Absence{Rank: lost, Reason: model.AbsentMissing})
		}
		noWorse(t, fmt.Sprintf("without the dump of rank %d", lost), whole, c)

		c = statetest.Read(t, text)
		tear(&c.States[i])
		noWorse(t, fmt.Sprintf("with a torn dump of rank %d", lost), whole, c)

		c = statetest.Read(t, text)
		if overwrite(&c.States[i]) {
			noWorse(t, fmt.Sprintf("with an overwritten ring of rank %d", lost), whole, c)
		}
	}
	c := statetest.Read(t, text)
	if !slices.ContainsFunc(c.States, overwritten) {
		for i := range c.States {
			active(&c.States[i])
		}
		noWorse(t, "with what is open alone", whole, c)
	}
}

// tear loses the newest half of the operations; frontiers stand before them in a dump.
func tear(s *model.RankState) {
	s.Partial = "it ends within an entry"
	s.Ops = s.Ops[:len(s.Ops)/2]
}

// overwrite loses the oldest half of the operations, and says from where on they are kept, as
// readers do; false where they do not say it.
func overwrite(s *model.RankState) bool {
	if s.OnlyActive || s.Partial != "" || overwritten(*s) {
		return false
	}
	s.Ops = s.Ops[len(s.Ops)/2:]
	for i := range s.Comms {
		c := &s.Comms[i]
		if c.Scope != model.ScopeComm {
			return false
		}
		if len(c.Frontiers) == 0 {
			c.Frontiers = []model.Frontier{{Enqueued: model.Some(int64(99))}} // of messages
		}
		f := &c.Frontiers[0]
		f.FirstKept = model.Some(f.Enqueued.Or(99) + 1)
		for k := range s.Ops {
			if o := &s.Ops[k]; o.Comm == i && o.Kind == model.KindCollective {
				f.FirstKept = model.Some(min(f.FirstKept.V, o.Seq))
			}
		}
	}
	return true
}

func overwritten(s model.RankState) bool {
	return slices.ContainsFunc(s.Comms, func(c model.CommState) bool {
		return len(c.Frontiers) > 0 && c.Frontiers[0].FirstKept.OK
	})
}

// active leaves out what is over.
func active(s *model.RankState) {
	s.OnlyActive = true
	s.Ops = slices.DeleteFunc(s.Ops, func(o model.StateOp) bool { return o.Done })
}

func noWorse(t *testing.T, how string, whole *desync.Report, c statetest.Case) {
	t.Helper()
	truth := named(whole)
	rep := judge(c, desync.NewDefaultConfig(), 0)
	for i := range rep.Roots {
		if f := &rep.Roots[i].Finding; f.Rank.OK {
			assert.Contains(t, truth, f.Rank.V, "%s: %v, but was %v", how, said(rep), said(whole))
		}
	}
	if len(rep.Roots) == 0 || len(truth) == 0 {
		return // who waited is gone
	}
	found := slices.ContainsFunc(named(rep), func(id int64) bool { return slices.Contains(truth, id) })
	assert.True(t, found, "%s: %v, but was %v", how, said(rep), said(whole))
}
