// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Agree judges what the domains of one save hold: one observation for each domain. It joins
// their epochs (Agreement); only domains that are committed to an epoch contribute.
func Agree(save int64, obs []model.EpochObservation) Judgement {
	j := Judgement{Domains: len(obs), Verdict: Unknown}
	at := map[int64]int{} // of an epoch in Held
	for i := range obs {
		o := &obs[i]
		if !confirms(o) {
			j.doubt(o.Domain, o.State)
			continue
		}
		j.hold(at, o.Epoch.V, o.Domain)
	}
	slices.SortFunc(j.Held, func(a, b Held) int { return cmp.Compare(a.Epoch, b.Epoch) })
	switch {
	case j.agreement(save).Mixed():
		j.Verdict = MixedEpoch
	case len(j.Held) == 0:
	case j.MissingCount > 0:
		j.Verdict = Converging
	default:
		j.Verdict, j.Epoch = Converged, model.Some(save)
	}
	return j
}

// confirms: a domain that is committed, and nobody knows to what, confirms nothing.
func confirms(o *model.EpochObservation) bool {
	return o.State == model.DomainCommitted && o.Epoch.OK
}

func (j *Judgement) doubt(d model.Domain, s model.DomainState) {
	j.MissingCount++
	if len(j.Missing) < MaxNamed {
		j.Missing = append(j.Missing, Doubt{d, s})
	}
}

func (j *Judgement) hold(at map[int64]int, e int64, d model.Domain) {
	i, known := at[e]
	if !known {
		i, at[e] = len(j.Held), len(j.Held)
		j.Held = append(j.Held, Held{Epoch: e})
	}
	h := &j.Held[i]
	h.Count++
	if len(h.Domains) < MaxNamed {
		h.Domains = append(h.Domains, d)
	}
}
