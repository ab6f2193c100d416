// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestEpochSentences(t *testing.T) {
	for want, f := range map[string]model.Finding{
		"job j: epoch (mixed): save 20 is mixed: 6 domains hold 10, 2 domains hold 20 (the first model rank 1); the newest that can be recovered is 10 (confidence 1.00)": {
			Class: model.ClassMixed, Evidence: evidence.Text(`{"save":20,"held":[{"epoch":10,"domains":6,"first":"model rank 0"},{"epoch":20,"domains":2,"first":"model rank 1"}],"frontier":10}`),
		},
		"job j: epoch (mixed): save 20 is mixed: 1 domain holds 10 (model rank 0); no save is known that can be recovered (confidence 1.00)": {
			Class: model.ClassMixed, Evidence: evidence.Text(`{"save":20,"held":[{"epoch":10,"domains":1,"first":"model rank 0"}]}`),
		},
		"job j: epoch (partial): save 20 is not whole, and nothing of it moves: 3 of 8 domains do not confirm it, the first rng rank 7, which is not heard of; the newest that can be recovered is 0 (confidence 1.00)": {
			Class: model.ClassPartial, Evidence: evidence.Text(`{"save":20,"domains":8,"missing":[{"domain":"rng rank 7","state":"not heard of"}],"missing_count":3,"frontier":0}`),
		},
		"job j: epoch (revoked): save 20, the newest that could be recovered, can be no more; no save is known that can be recovered (confidence 1.00)": {
			Class: model.ClassRevoked, Evidence: evidence.Text(`{"save":20}`),
		},
		"job j: epoch (weights_only): save 20 is complete, weights only: cannot resume training; the newest that can be recovered is 10 (confidence 1.00)": {
			Class: model.ClassWeightsOnly, Evidence: evidence.Text(`{"save":20,"domains":3,"missing":[{"domain":"optimizer","state":"absent"}],"missing_count":2,"frontier":10}`),
		},
		"job j: epoch (mixed) (confidence 1.00)":     {Class: model.ClassMixed, Evidence: evidence.Text(`{`)},
		"job j: epoch (something) (confidence 1.00)": {Class: "something", Evidence: evidence.Text(`{"save":20}`)},
	} {
		f.Kind, f.JobID, f.Confidence = model.FindingEpoch, "j", 1
		assert.Equal(t, want, Sentence(&f))
	}
}
