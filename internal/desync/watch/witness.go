// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// witness is a fact of somebody else that counts for as long as it is told.
type witness struct {
	desync.Witness
	witnessKey

	heard time.Time
}

// witnessKey names the finding that tells a fact.
type witnessKey struct{ id, job string }

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
	x := witness{witnessKey: witnessKey{f.ID, f.JobID}, heard: now, Witness: desync.Witness{
		Kind: f.Kind, What: what, Host: f.Host, Rank: f.Rank, Peer: f.Peer, Link: f.Link, Network: true, From: f.Start, Until: until,
	}}
	w.addWitness(x)
}

// AddFact takes a fact of a rank; that it is told again says that it still is one.
func (w *Watch) AddFact(f *model.Fact, now time.Time) {
	w.stats.Witnesses++
	w.addWitness(witness{witnessKey: witnessKey{fmt.Sprintf("%s %d", f.Kind, f.Rank.Rank), f.Rank.JobID}, heard: now, Witness: desync.Witness{
		Kind: f.Source, What: f.What, Host: f.Rank.HostName, Rank: model.Some(f.Rank.Rank), Network: f.Network, From: f.Time,
	}})
}

// addWitness adds a fact at the end, so that the latest report is last. If there is no room, it drops the
// first fact: of the job that has most facts if that job exceeds its part, else of the jobs that are not
// followed, else of all.
func (w *Watch) addWitness(x witness) {
	for _, text := range []*string{&x.id, &x.job, &x.Kind, &x.What, &x.Host, &x.Link} {
		*text = cut.Text(*text, cut.MaxName)
	}
	if !w.witnesses.Has(x.witnessKey) && w.witnesses.Len() >= w.cfg.MaxWitnesses {
		w.stats.WitnessesDropped++
		w.witnesses.Delete(w.leavingWitness())
	}
	w.witnesses.Set(x.witnessKey, x)
}

// crowd is the part of MaxWitnesses that the facts of one job may be before they make room for others.
const crowd = 4

// leavingWitness is the fact that makes room.
func (w *Watch) leavingWitness() witnessKey {
	count, most := map[string]int{}, 0
	for of := range w.witnesses.All() {
		count[of.job]++
		most = max(most, count[of.job])
	}
	may := w.unfollowed
	if crowd*most > w.cfg.MaxWitnesses {
		may = func(of witnessKey, _ witness) bool { return count[of.job] == most }
	}
	if of, _, ok := w.witnesses.OldestWhere(may); ok {
		return of
	}
	of, _, _ := w.witnesses.Oldest()
	return of
}

// unfollowed reports whether a fact is of a job of which the watch holds nothing else.
func (w *Watch) unfollowed(of witnessKey, _ witness) bool {
	_, followed := w.latest[of.job]
	return of.job != "" && !followed
}
