// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// recall follows the findings that were open before a restart, once their communicator is known again.
// One of which nothing is observed for twice Silent is closed.
func (w *Watch) recall(now time.Time) {
	w.book.End(now, func(e *finding.Episode[struct{}]) bool {
		if !e.Restored {
			return false
		}
		ev, ok := evidence.As[evidence.Fleet](e.Finding.Evidence)
		if !ok {
			return true
		}
		if s, c := w.spanBefore(e, ev, now); s != nil && w.enter(s, c) {
			w.book.Confirm(e, now)
		}
		return e.Restored && now.Sub(e.Confirmed) >= 2*w.cfg.Silent
	})
}

// spanBefore returns what a finding was about, and its communicator; nil where that is not known.
func (w *Watch) spanBefore(e *finding.Episode[struct{}], ev *evidence.Fleet, now time.Time) (*span, *comm) {
	j, f := w.jobs[e.Place.Incarnation], &e.Finding
	place, known := places[model.VersionDomain(ev.Domain)]
	if j == nil || !known {
		return nil, nil
	}
	for _, c := range j.comms {
		k := caseKey{j.key, c.key, place, ev.Model}
		if c.key.id != f.CommID || c.torn || placeOf(j, &k).Name != e.Place.Name {
			continue
		}
		return &span{
			key: k, place: e.Place, jobName: f.JobName, commName: f.CommName, judgement: judgementOf(f, ev), began: time.Unix(0, f.Start),
			mixed: now, least: ev.Known,
		}, c
	}
	return nil, nil
}

func judgementOf(f *model.Finding, ev *evidence.Fleet) Judgement {
	j := Judgement{
		Model: ev.Model, Ranks: ev.Ranks, Known: ev.Known, Minority: f.Ranks, MinorityCount: int(f.RanksCount.V), MinorityHosts: ev.Hosts,
	}
	for _, h := range ev.Held {
		j.Held = append(j.Held, Held{h.Versions, h.Nodes, h.Ranks, h.First})
	}
	return j
}
