// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

// look has an observer tell of a save of one model: with an optimizer that is absent, or as one that is whole.
func (r *rig) look(t *testing.T, save int64, whole bool) {
	t.Helper()
	r.revision++
	model0 := model.EpochObservation{Domain: model.Domain{Kind: model.DomainModel, ID: "rank 0"}, State: model.DomainCommitted, Epoch: model.Some(save)}
	place := model.EpochObservation{Domain: model.Domain{Kind: model.DomainPlace}, State: model.DomainTentative, Of: 1, Parts: 1}
	all := []model.EpochObservation{model0, {Domain: model.Domain{Kind: model.DomainOptimizer}, State: model.DomainAbsent}, place}
	if whole {
		place.State, place.Epoch = model.DomainCommitted, model.Some(save)
		all = []model.EpochObservation{model0, place}
	}
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	epochmap.JobToResource("job", "llama", rl.Resource())
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for _, o := range all {
		o.JobID, o.Generation, o.Save, o.Observer, o.Revision = "job", "1 rank", save, "node0", r.revision
		epochmap.ObservationToLog(&o, records.AppendEmpty())
	}
	r.beats[save] = ld
	r.send(t, ld)
}

// Weights alone are told as what they are: a warning where nothing else can be recovered.
func TestWeightsAloneAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		before bool
		want   model.Severity
		says   string
	}{
		"alone":                {false, model.SeverityWarn, "no save is known that can be recovered"},
		"after one to recover": {true, model.SeverityInfo, "the newest that can be recovered is 10"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				defer r.stop(t)
				r.look(t, 20, false)
				if tc.before {
					r.look(t, 10, true)
				}
				r.pass(t, 30*time.Minute)
				said := r.said(t)
				require.Len(t, said, 1)
				assert.Contains(t, said[0], "epoch (weights_only): save 20 is complete, weights only: cannot resume training; "+tc.says)
				f, ok := otelmap.LogToFinding(r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0), nil)
				require.True(t, ok)
				assert.Equal(t, tc.want, f.Severity)
				assert.Contains(t, f.Action, "begin a job from these weights")
			})
		})
	}
}
