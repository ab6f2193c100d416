// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// joinSaves brings together what the places hold of each epoch, newest first.
func joinSaves(places []Place) []Save {
	type key struct {
		epoch model.Optional[int64]
		path  string // tells those apart that nothing names
	}
	found := map[key][][]*ckpt.Save{} // per place, those of one epoch
	var order []key
	for i, p := range places {
		for j := range p.Root.Saves {
			s := &p.Root.Saves[j]
			k := key{epoch: s.Called()}
			if !k.epoch.OK {
				k.path = s.Path
			}
			if found[k] == nil {
				found[k] = make([][]*ckpt.Save, len(places))
				order = append(order, k)
			}
			found[k][i] = append(found[k][i], s)
		}
	}
	saves := make([]Save, 0, len(order))
	for _, k := range order {
		saves = append(saves, join(k.epoch, places, found[k]))
	}
	slices.SortStableFunc(saves, byEpoch)
	return saves
}

// join judges one epoch over all places.
func join(e model.Optional[int64], places []Place, parts [][]*ckpt.Save) Save {
	out := Save{Epoch: e}
	var obs, contents []model.EpochObservation
	for i, p := range places {
		if len(parts[i]) == 0 {
			none := model.EpochObservation{
				Domain: model.Domain{Kind: model.DomainModel, ID: "of " + p.Name}, Save: e.V, State: model.DomainAbsent,
			}
			obs, contents = append(obs, none), append(contents, none)
		}
		// Two saves of one epoch in one folder: which of them a resume takes is not known, so
		// both must hold.
		for n, s := range parts[i] {
			out.Format = s.Format
			out.Paths = append(out.Paths, s.Path)
			switch {
			case s.Unproven != "":
				out.unproven = s.Unproven
			case s.WorldUnknown:
				out.unproven = "nothing in it says how many ranks wrote it, so that one that is missing would leave no trace; give --world-size"
			}
			out.addState(s, len(places))
			if s.Misnamed != "" {
				out.misnamed = s.Misnamed
			}
			where := ""
			if len(places) > 1 {
				where = " of " + p.Name
			}
			if n > 0 {
				where += " in " + s.Path
			}
			obs = append(obs, observations(e, s, where, false)...)
			contents = append(contents, observations(e, s, where, true)...)
			for _, problem := range s.Problems {
				out.Problems = append(out.Problems, Problem{p.Name, problem})
			}
		}
	}
	out.severalFormats(places, parts)
	out.Judgement = agree(e, obs)
	out.contents = agree(e, contents).Verdict
	if out.unproven != "" && out.Judgement.Verdict == epoch.Converged {
		out.Judgement.Verdict = epoch.Unknown
	}
	if out.unproven != "" {
		out.contents = out.Judgement.Verdict
	}
	return out
}

// severalFormats notes that places hold saves of different formats: they are no parts of one.
func (s *Save) severalFormats(places []Place, parts [][]*ckpt.Save) {
	var of []string
	formats := map[ckpt.Format]bool{}
	for i, p := range places {
		for _, part := range parts[i][:min(1, len(parts[i]))] {
			formats[part.Format] = true
			of = append(of, fmt.Sprintf("%s (%s)", p.Name, part.Format))
		}
	}
	if len(formats) > 1 {
		s.unproven = "the folders are of several frameworks, and hold no parts of one save: " + strings.Join(of, ", ") + "; give only folders of one job"
	}
}

// observations are what a save's domains hold; with trusted times, as if those that only times put in doubt
// were committed.
func observations(e model.Optional[int64], s *ckpt.Save, where string, trusted bool) []model.EpochObservation {
	out := make([]model.EpochObservation, 0, len(s.Domains))
	for i := range s.Domains {
		d := s.Domains[i]
		if trusted {
			d = d.Trusted(e)
		}
		out = append(out, model.EpochObservation{
			Save: e.V, Domain: model.Domain{Kind: d.Kind, ID: d.ID + where},
			Epoch: d.Epoch, State: d.State, Witness: d.Witness, Confidence: 1,
		})
	}
	return out
}

// agree judges what was observed of one save. Where nothing at all names the epoch, a save
// that is whole is of one epoch nevertheless, which is unknown.
func agree(e model.Optional[int64], obs []model.EpochObservation) epoch.Judgement {
	if e.OK {
		return epoch.Agree(e.V, obs)
	}
	const some = 0
	named := slices.ContainsFunc(obs, func(o model.EpochObservation) bool { return o.Epoch.OK })
	if named {
		return epoch.Agree(some, obs) // they differ, else one would be its name
	}
	for i := range obs {
		obs[i].Epoch = model.Some[int64](some)
	}
	j := epoch.Agree(some, obs)
	j.Epoch = model.Optional[int64]{}
	j.Held = nil
	return j
}
