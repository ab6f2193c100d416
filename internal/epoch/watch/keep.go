// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// keptVersion is that of the form in which a watch survives a restart. The version before had findings
// in another form, which are left out.
const keptVersion = 2

// kept is what observers do not report again: which save was whole, and what is open.
type kept struct {
	Version   int             `json:"version"`
	Frontiers []keptFrontier  `json:"frontiers,omitempty"`
	Findings  json.RawMessage `json:"findings,omitempty"` // of the book
}

type keptFrontier struct {
	Job        string `json:"job"`
	Generation string `json:"generation"`
	Save       int64  `json:"save"`
	// Observers, without their lives, spoke of the save; not all of a large job.
	Observers []string `json:"observers,omitempty"`
}

// Snapshot returns what is to be known after a restart, as JSON. Of two watches that know the same it is
// the same.
func (w *Watch) Snapshot() ([]byte, error) {
	findings, part := w.book.Snapshot()
	if findings == nil {
		return nil, part
	}
	k, looked := kept{Version: keptVersion, Findings: findings}, 0
	for _, of := range slices.SortedFunc(maps.Keys(w.frontiers), genKey.compare) {
		f := keptFrontier{of.job, of.generation, w.frontiers[of].V, nil}
		for _, name := range w.looked(of) {
			if looked += len(name); looked <= maxLooked {
				f.Observers = append(f.Observers, name)
			}
		}
		k.Frontiers = append(k.Frontiers, f)
	}
	data, err := json.Marshal(k)
	return data, errors.Join(part, err)
}

// maxLooked bounds the names of observers of all frontiers that are kept, in bytes.
const maxLooked = 16 << 20

func (k genKey) compare(o genKey) int {
	return cmp.Or(cmp.Compare(k.job, o.job), cmp.Compare(k.generation, o.generation))
}

func (k saveKey) compare(o saveKey) int {
	return cmp.Or(k.genKey.compare(o.genKey), cmp.Compare(k.save, o.save))
}

// looked are the names of those who spoke of a generation's newest whole save, now or before a restart.
func (w *Watch) looked(of genKey) []string {
	names := map[string]bool{}
	for _, life := range w.engine.Tellers(of.job, of.generation, w.frontiers[of].V) {
		if by, ok := w.observers.Peek(life); ok {
			names[by.name] = true
		}
	}
	if len(names) == 0 {
		return w.before[of].observers
	}
	return slices.Sorted(maps.Keys(names))
}

// before is what a restart has left of a frontier.
type before struct {
	save      int64
	observers []string
}

// Restore takes what a snapshot holds, before anything is observed. Of one that is not right nothing is
// taken.
func (w *Watch) Restore(data []byte, now time.Time) error {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("restore saves: %w", err)
	}
	if err := k.check(&w.cfg); err != nil {
		return fmt.Errorf("restore saves: %w", err)
	}
	if k.Version == keptVersion {
		if err := w.book.Restore(k.Findings, now); err != nil {
			return fmt.Errorf("restore saves: %w", err)
		}
	}
	w.restored = now
	for _, f := range k.Frontiers {
		of := genKey{f.Job, f.Generation}
		w.frontiers[of] = model.Some(f.Save)
		w.before[of] = before{f.Save, f.Observers}
	}
	w.find()
	return nil
}

// find sets the save of each restored finding. It drops findings whose evidence does not name one.
func (w *Watch) find() {
	for _, e := range w.book.Episodes() {
		ev, ok := evidence.As[evidence.Checkpoint](e.Finding.Evidence)
		if !ok {
			w.book.Drop(e)
			continue
		}
		e.Data = state{saveKey{genKey{e.Place.Job, ev.Generation}, ev.Save}, true}
	}
}

func (k *kept) check(cfg *Config) error {
	switch {
	case k.Version != 1 && k.Version != keptVersion:
		return fmt.Errorf("check version: got %d; want 1 or %d", k.Version, keptVersion)
	case len(k.Frontiers) > cfg.Engine.Jobs*cfg.Engine.Generations:
		return fmt.Errorf("check frontiers: got %d; want at most %d", len(k.Frontiers), cfg.Engine.Jobs*cfg.Engine.Generations)
	}
	for i := range k.Frontiers {
		if f := &k.Frontiers[i]; f.Job == "" || len(f.Observers) > epoch.MaxNamed {
			return fmt.Errorf("check frontiers: %d: got job %.40q and %d observers; want a job and at most %d", i, f.Job, len(f.Observers), epoch.MaxNamed)
		}
	}
	return nil
}

// away looks at what was known before a restart, and was not observed since: a save that was the newest
// and is gone, where the observer of it looks again, and sees others of its job alone; and what was open,
// which ends when nothing of it is observed for as long as observers may be silent.
func (w *Watch) away(now time.Time) {
	for _, of := range slices.SortedFunc(maps.Keys(w.before), genKey.compare) {
		k := saveKey{of, w.before[of].save}
		e := w.at(k)
		switch {
		case w.saves[k] != nil || w.frontiers[of] != model.Some(k.save): // it is observed, or there is a newer one
			delete(w.before, of)
			if e != nil {
				e.Data.unseen = true
			}
		case !w.newest(k) || !w.overlooked(of, now):
		case e != nil:
			e.Data.unseen = false
		default:
			w.found(k, Revoked, &epoch.Judgement{Verdict: epoch.Revoked, Epoch: model.Some(k.save)}, now, now)
		}
	}
	w.book.End(now, func(e *episode) bool {
		k := e.Data.key
		if w.saves[k] != nil {
			return false
		}
		return !w.newest(k) && Class(e.Finding.Class) == Revoked || e.Data.unseen && now.Sub(w.restored) >= 2*w.cfg.Silent
	})
}

// overlooked reports whether one who spoke of a generation's newest save before a restart speaks of
// others of that generation now, has looked at its files for long enough, and is silent of that one.
func (w *Watch) overlooked(of genKey, now time.Time) bool {
	for _, save := range w.engine.Saves(of.job, of.generation) {
		for _, life := range w.engine.Tellers(of.job, of.generation, save) {
			by, ok := w.observers.Peek(life)
			if !ok || by.gone || !by.looks || !slices.Contains(w.before[of].observers, by.name) {
				continue
			}
			if by.seen.Sub(by.since) >= w.cfg.Settle && now.Sub(by.since) >= w.cfg.Settle {
				return true
			}
		}
	}
	return false
}
