// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A save without an optimizer is weights only where an older one of its form has one, and not where
// only a newer one, or one of another form, has.
func TestJudgeState_OlderSaveHasAnOptimizer(t *testing.T) {
	save := func(format Format, epoch int64, kinds ...model.DomainKind) Save {
		s := Save{Format: format, Path: "x", Epoch: model.Some(epoch)}
		for _, kind := range kinds {
			s.Domains = append(s.Domains, Domain{Domain: model.Domain{Kind: kind, ID: "a"}, State: model.DomainCommitted})
		}
		return s
	}
	const form, another = FormatOrbax, FormatNeMo
	for name, tc := range map[string]struct {
		saves []Save
		want  bool
	}{
		"an older one":    {[]Save{save(form, 1, model.DomainModel, model.DomainOptimizer), save(form, 2, model.DomainModel)}, true},
		"none":            {[]Save{save(form, 1, model.DomainModel), save(form, 2, model.DomainModel)}, false},
		"itself":          {[]Save{save(form, 1, model.DomainModel, model.DomainOptimizer), save(form, 2, model.DomainModel, model.DomainOptimizer)}, false},
		"of another form": {[]Save{save(another, 1, model.DomainModel, model.DomainOptimizer), save(form, 2, model.DomainModel)}, false},
		"a newer one":     {[]Save{save(form, 2, model.DomainModel), save(form, 3, model.DomainModel, model.DomainOptimizer)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scan{root: &Root{Saves: tc.saves}}
			s.judgeState()
			for i := range s.root.Saves {
				if of := &s.root.Saves[i]; of.Epoch.V == 2 {
					require.Equal(t, tc.want, of.WeightsOnly != "")
				}
			}
		})
	}
}
