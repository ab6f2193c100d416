// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// Each place advises about the cause that its finding names, and about no other one.
func TestAction_EveryCause_AdvisesAboutItAlone(t *testing.T) {
	words := map[string]string{
		model.CauseCompile: "recompile", model.CauseDataLoader: "data", model.CauseGC: "garbage", model.CauseCheckpoint: "checkpoint",
	}
	for name, place := range map[string]place{"rank": {sort: placeRank}, "host": {sort: placeHost}, "all": {sort: placeAll}} {
		for cause := range words {
			t.Run(name+"/"+cause, func(t *testing.T) {
				c := &candidate{place: place, in: stretch{{}}, Conclusion: judge.Conclusion{
					Class: model.ClassHost, Cause: cause, Rank: 1, Ranks: []int64{1, 2}, Pauses: &evidence.Pauses{Median: 0.2, Period: 7},
				}}
				action := c.action(&model.Finding{Class: model.ClassHost, Cause: cause, Rank: model.Some(int64(1)), Host: "a", Op: "train_step"})
				for other, text := range words {
					assert.Equal(t, other == cause, strings.Contains(action, text), "%s: %s", other, action)
				}
			})
		}
	}
}

func TestAction_PausesOfUnknownCause_AsksForScopes(t *testing.T) {
	c := &candidate{place: place{sort: placeAll}}
	action := c.action(&model.Finding{Class: model.ClassJitter, Cause: model.CauseUnknown})
	assert.Contains(t, action, "Mark scopes")
	assert.NotContains(t, action, "gc.disable")
}
