// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Teller says what of a node's versions is told over time: of each domain when it changes, and all
// again with each look at everything. It is not safe for concurrent use.
type Teller struct {
	of       model.VersionObservation // who tells, and of which node
	revision int64
	told     map[model.VersionDomain][]model.VersionObservation
	facts    map[Mismatch]bool // those that were told
}

// NewTeller returns one that has told nothing. began is when this life of who looks did.
func NewTeller(hostName, hostID string, began time.Time) *Teller {
	return &Teller{
		of:   model.VersionObservation{HostName: hostName, HostID: hostID, Life: began.UnixNano()},
		told: map[model.VersionDomain][]model.VersionObservation{}, facts: map[Mismatch]bool{},
	}
}

// Tell takes what was read. all: everything was looked at, and is told; else only what differs from
// what was told is, and nothing follows from what is not there.
func (t *Teller) Tell(r *Read, all bool, source string, now time.Time) (obs []model.VersionObservation, facts []model.NodeFact) {
	t.revision++
	by := map[model.VersionDomain][]model.VersionObservation{}
	for _, o := range observations(r.Versions) {
		by[o.Domain] = append(by[o.Domain], o)
	}
	for _, domain := range slices.Sorted(maps.Keys(by)) {
		of := by[domain]
		if !all && slices.EqualFunc(of, t.told[domain], same) {
			continue
		}
		t.told[domain] = of
		for _, o := range of {
			o.Time, o.HostName, o.HostID, o.Life, o.Revision = now.UnixNano(), t.of.HostName, t.of.HostID, t.of.Life, t.revision
			obs = append(obs, o)
		}
	}
	stand := map[Mismatch]bool{}
	for _, m := range r.Mismatches {
		if stand[m] {
			continue
		}
		stand[m] = true
		if all || !t.facts[m] {
			facts = append(facts, model.NodeFact{
				Time: now.UnixNano(), HostName: t.of.HostName, HostID: t.of.HostID, Source: source, Kind: m.Kind, What: m.What,
			})
		}
	}
	if all {
		t.facts = stand
	} else {
		maps.Copy(t.facts, stand)
	}
	return obs, facts
}

// Refused takes back that anything was told.
func (t *Teller) Refused() {
	clear(t.told)
	clear(t.facts)
}

// same reports whether two observations say the same.
func same(a, b model.VersionObservation) bool {
	return a.Unit == b.Unit && a.Model == b.Model && a.Version == b.Version && a.Units == b.Units && a.Of == b.Of
}
