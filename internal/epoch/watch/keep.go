// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// keptVersion is that of the form in which a watch survives a restart.
const keptVersion = 1

// kept is what nobody would tell again: which save was whole, and what is open. What observers say
// they say again.
type kept struct {
	Version   int            `json:"version"`
	Frontiers []keptFrontier `json:"frontiers,omitempty"`
	Episodes  []keptEpisode  `json:"episodes,omitempty"`
}

type keptFrontier struct {
	Job        string `json:"job"`
	Generation string `json:"generation"`
	Save       int64  `json:"save"`
	// Observers, without their lives, spoke of the save; not all of a large job.
	Observers []string `json:"observers,omitempty"`
}

type keptEpisode struct {
	Job        string          `json:"job"`
	Generation string          `json:"generation"`
	Save       int64           `json:"save"`
	Class      Class           `json:"class"`
	Began      int64           `json:"began"` // Unix ns
	Revision   int64           `json:"revision"`
	Judgement  epoch.Judgement `json:"judgement"`
}

// Snapshot returns what is to be known after a restart, as JSON. Of two watches that know the same it is
// the same.
func (w *Watch) Snapshot() ([]byte, error) {
	k, looked := kept{Version: keptVersion}, 0
	for _, of := range slices.SortedFunc(maps.Keys(w.frontiers), genKey.compare) {
		f := keptFrontier{of.job, of.generation, w.frontiers[of].V, nil}
		for _, name := range w.looked(of) {
			if looked += len(name); looked <= maxLooked {
				f.Observers = append(f.Observers, name)
			}
		}
		k.Frontiers = append(k.Frontiers, f)
	}
	for _, of := range slices.SortedFunc(maps.Keys(w.open), saveKey.compare) {
		e := w.open[of]
		k.Episodes = append(k.Episodes, keptEpisode{e.Job, e.Generation, e.Save, e.Class, e.Began.UnixNano(), e.Revision, e.Judgement})
	}
	return json.Marshal(k)
}

// maxLooked bounds the names of observers of all frontiers that are kept, in bytes.
const maxLooked = 16 << 20

// brief returns a judgement as an episode keeps it. Of the domains that hold an epoch it keeps only the
// first, and it copies the names of domains.
func brief(j epoch.Judgement) epoch.Judgement {
	own := func(d model.Domain) model.Domain {
		return model.Domain{Kind: model.DomainKind(strings.Clone(string(d.Kind))), ID: strings.Clone(d.ID)}
	}
	j.Missing = slices.Clone(j.Missing[:min(len(j.Missing), epoch.MaxNamed)])
	for i := range j.Missing {
		j.Missing[i].Domain = own(j.Missing[i].Domain)
	}
	j.Held = slices.Clone(j.Held[:min(len(j.Held), epoch.MaxNamed)])
	for i := range j.Held {
		if d := j.Held[i].Domains; len(d) > 0 {
			j.Held[i].Domains = []model.Domain{own(d[0])}
		}
	}
	return j
}

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
		if by := w.observers[life]; by != nil {
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
	w.restored = now
	for _, f := range k.Frontiers {
		of := genKey{f.Job, f.Generation}
		w.frontiers[of] = model.Some(f.Save)
		w.before[of] = before{f.Save, f.Observers}
	}
	for _, e := range k.Episodes {
		of := saveKey{genKey{e.Job, e.Generation}, e.Save}
		w.begin(of, &Episode{
			Job: e.Job, Generation: e.Generation, Save: e.Save, Class: e.Class, Judgement: brief(e.Judgement),
			Began: time.Unix(0, e.Began), Revision: e.Revision, unseen: true,
		})
	}
	return nil
}

func (k *kept) check(cfg *Config) error {
	switch {
	case k.Version != keptVersion:
		return fmt.Errorf("check version: got %d; want %d", k.Version, keptVersion)
	case len(k.Frontiers) > cfg.Engine.Jobs*cfg.Engine.Generations:
		return fmt.Errorf("check frontiers: got %d; want at most %d", len(k.Frontiers), cfg.Engine.Jobs*cfg.Engine.Generations)
	case len(k.Episodes) > cfg.MaxEpisodes:
		return fmt.Errorf("check episodes: got %d; want at most %d", len(k.Episodes), cfg.MaxEpisodes)
	}
	for i := range k.Frontiers {
		if f := &k.Frontiers[i]; f.Job == "" || len(f.Observers) > epoch.MaxNamed {
			return fmt.Errorf("check frontiers: %d: got job %.40q and %d observers; want a job and at most %d", i, f.Job, len(f.Observers), epoch.MaxNamed)
		}
	}
	for i := range k.Episodes {
		e := &k.Episodes[i]
		switch {
		case e.Job == "":
			return fmt.Errorf("check episodes: %d: got no job; want one", i)
		case e.Class != Mixed && e.Class != Partial && e.Class != WeightsOnly && e.Class != Revoked:
			return fmt.Errorf("check episodes: %d: got class %.40q; want mixed, partial, weights_only or revoked", i, e.Class)
		case e.Revision < 1:
			return fmt.Errorf("check episodes: %d: got revision %d; want 1 or more", i, e.Revision)
		}
	}
	return nil
}

// away looks at what was known before a restart, and is told of by nobody since: a save that was the
// newest and is gone, where who spoke of it looks again, and sees others of its job alone; and what was
// open, which ends when nobody says anything of it for as long as observers may be silent.
func (w *Watch) away(out []Episode, now time.Time) []Episode {
	for _, of := range slices.SortedFunc(maps.Keys(w.before), genKey.compare) {
		k := saveKey{of, w.before[of].save}
		if w.saves[k] != nil || w.frontiers[of] != model.Some(k.save) { // it is told of, or there is a newer one
			delete(w.before, of)
			if e := w.open[k]; e != nil {
				e.unseen = true
			}
			continue
		}
		if !w.newest(k) || !w.overlooked(of, now) {
			continue
		}
		if e := w.open[k]; e != nil {
			e.unseen = false
			continue
		}
		e := &Episode{
			Job: of.job, Generation: of.generation, Save: k.save, Class: Revoked, Began: now, Revision: 1,
			Judgement: epoch.Judgement{Verdict: epoch.Revoked, Epoch: model.Some(k.save)},
		}
		if w.begin(k, e) {
			w.stats.Opened++
			out = append(out, *e)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(w.open), saveKey.compare) {
		if w.saves[k] != nil {
			continue
		}
		if e := w.open[k]; !w.newest(k) && e.Class == Revoked || e.unseen && now.Sub(w.restored) >= 2*w.cfg.Silent {
			out = w.close(out, k, now)
		}
	}
	return out
}

// overlooked reports whether one who spoke of a generation's newest save before a restart speaks of
// others of that generation now, has looked at its files for long enough, and is silent of that one.
func (w *Watch) overlooked(of genKey, now time.Time) bool {
	for _, save := range w.engine.Saves(of.job, of.generation) {
		for _, life := range w.engine.Tellers(of.job, of.generation, save) {
			by := w.observers[life]
			if by == nil || by.gone || !by.looks || !slices.Contains(w.before[of].observers, by.name) {
				continue
			}
			if by.seen.Sub(by.since) >= w.cfg.Settle && now.Sub(by.since) >= w.cfg.Settle {
				return true
			}
		}
	}
	return false
}
