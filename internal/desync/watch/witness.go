// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// witness is a fact of somebody else that counts for as long as it is told.
type witness struct {
	desync.Witness
	id, job string // of the finding that tells it
	heard   time.Time
}

// AddFinding takes what another analysis says of a network or a node, where it says that.
func (w *Watch) AddFinding(f *model.Finding, what string, now time.Time) {
	if f.Kind != "fabric" {
		return
	}
	w.stats.Witnesses++
	until := int64(0)
	if f.Status == model.StatusClosed {
		until = f.Time
	}
	x := witness{id: f.ID, job: f.JobID, heard: now, Witness: desync.Witness{
		Kind: f.Kind, What: what, Host: f.Host, Rank: f.Rank, Peer: f.Peer, Link: f.Link, Network: true, From: f.Start, Until: until,
	}}
	w.addWitness(x)
}

// AddFact takes a fact of a rank; that it is told again says that it still is one.
func (w *Watch) AddFact(f *model.Fact, now time.Time) {
	w.stats.Witnesses++
	w.addWitness(witness{id: fmt.Sprintf("%s %d", f.Kind, f.Rank.Rank), job: f.Rank.JobID, heard: now, Witness: desync.Witness{
		Kind: f.Source, What: f.What, Host: f.Rank.HostName, Rank: model.Some(f.Rank.Rank), Network: f.Network, From: f.Time,
	}})
}

// addWitness adds a fact at the end, so that the latest report is last. If there is no room, it drops the
// first fact: of the job that has most facts if that job exceeds its part, else of the jobs that are not
// followed, else of all.
func (w *Watch) addWitness(x witness) {
	for _, text := range []*string{&x.id, &x.job, &x.Kind, &x.What, &x.Host, &x.Link} {
		*text = bounded.Text(*text, bounded.MaxName)
	}
	at := slices.IndexFunc(w.witnesses, func(o witness) bool { return o.id == x.id && o.job == x.job })
	if at < 0 && len(w.witnesses) >= w.cfg.MaxWitnesses {
		w.stats.WitnessesDropped++
		at = w.leavingWitness()
	}
	if at >= 0 {
		w.witnesses = slices.Delete(w.witnesses, at, at+1)
	}
	w.witnesses = append(w.witnesses, x)
}

// crowd is the part of MaxWitnesses that the facts of one job may be before they make room for others.
const crowd = 4

// leavingWitness is the place of the fact that makes room.
func (w *Watch) leavingWitness() int {
	count, most := map[string]int{}, 0
	for i := range w.witnesses {
		of := w.witnesses[i].job
		count[of]++
		most = max(most, count[of])
	}
	if crowd*most <= w.cfg.MaxWitnesses {
		return max(0, slices.IndexFunc(w.witnesses, w.unfollowed))
	}
	return slices.IndexFunc(w.witnesses, func(o witness) bool { return count[o.job] == most })
}

// unfollowed reports whether a fact is of a job of which the watch holds nothing else.
func (w *Watch) unfollowed(x witness) bool {
	_, followed := w.latest[x.job]
	return x.job != "" && !followed
}

// forgetWitnesses gives up what nobody has told for long.
func (w *Watch) forgetWitnesses(now time.Time) {
	w.witnesses = slices.DeleteFunc(w.witnesses, func(x witness) bool { return now.Sub(x.heard) >= w.cfg.Forget })
}
