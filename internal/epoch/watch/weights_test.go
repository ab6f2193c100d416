// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// weights has an observer tell of a save whose model is whole, and which has no optimizer; more is what it tells beside.
func (r *rig) weights(save int64, where string, more ...model.EpochObservation) {
	r.revision += 2
	all := append([]model.EpochObservation{
		{Domain: model.Domain{Kind: model.DomainModel, ID: "rank 0" + where}, State: model.DomainCommitted, Epoch: model.Some(save)},
		{Domain: model.Domain{Kind: model.DomainOptimizer, ID: where}, State: model.DomainAbsent},
		{Domain: model.Domain{Kind: model.DomainPlace, ID: where}, State: model.DomainTentative, Of: 1, Parts: 1},
	}, more...)
	for _, o := range all {
		o.JobID, o.Generation, o.Save, o.Observer, o.Life, o.Revision = "job", "g", save, "node0", 1, r.revision
		if o.Domain.Kind == model.DomainPlace {
			o.Revision++
		}
		r.hear(o)
	}
}

// Weights alone are no save that a job can recover, and no loss.
func TestWeightsAloneAreTold(t *testing.T) {
	for _, where := range []string{"", "of node7"} {
		r := newRig(func(c *Config) { c.Silent = time.Hour })
		r.weights(10, where)
		assert.Empty(t, r.pass(9*time.Minute))
		assert.Equal(t, []string{"10 weights_only 1"}, r.pass(30*time.Minute), where)
		assert.False(t, r.Frontier("job", "g").OK)
		assert.Zero(t, r.Jobs()[0].Mixed)
		data, err := r.Snapshot()
		assert.NoError(t, err)
		assert.NoError(t, newRig(nil).Restore(data, r.now))
	}
}

// Of several such saves the newest is told alone, and none where a newer one can be recovered.
func TestOneSaveOfWeightsAloneIsTold(t *testing.T) {
	r := newRig(func(c *Config) { c.Silent = time.Hour })
	r.weights(10, "")
	assert.Equal(t, []string{"10 weights_only 1"}, r.pass(30*time.Minute))
	r.weights(20, "")
	r.weights(30, "")
	assert.Equal(t, []string{"10 weights_only 2 ended", "30 weights_only 1"}, r.pass(30*time.Minute))
	r.revision += 10
	for _, o := range []model.EpochObservation{
		{Domain: model.Domain{Kind: model.DomainModel, ID: "rank 0"}, State: model.DomainCommitted, Epoch: model.Some[int64](40)},
		{Domain: model.Domain{Kind: model.DomainPlace}, State: model.DomainCommitted, Epoch: model.Some[int64](40), Of: 1, Parts: 1},
	} {
		o.JobID, o.Generation, o.Save, o.Observer, o.Life, o.Revision = "job", "g", 40, "node0", 1, r.revision
		r.hear(o)
	}
	assert.Equal(t, []string{"30 weights_only 2 ended"}, r.pass(time.Minute))
	assert.Equal(t, model.Some[int64](40), r.Frontier("job", "g"))
}

// A save that lacks more than an optimizer, or has some of one, is partial.
func TestPartialIsNotWeightsAlone(t *testing.T) {
	part := func(kind model.DomainKind, id string, state model.DomainState) model.EpochObservation {
		o := model.EpochObservation{Domain: model.Domain{Kind: kind, ID: id}, State: state}
		if state == model.DomainCommitted {
			o.Epoch = model.Some[int64](10)
		}
		return o
	}
	for _, more := range []model.EpochObservation{
		part(model.DomainModel, "rank 1", model.DomainAbsent),
		part(model.DomainScheduler, "scheduler", model.DomainTentative),
		part(model.DomainOptimizer, "rank 1", model.DomainAbsent),
		part(model.DomainOptimizer, "rank 1", model.DomainCommitted),
	} {
		r := newRig(func(c *Config) { c.Silent = time.Hour })
		r.weights(10, "", more)
		assert.Equal(t, []string{"10 partial 1"}, r.pass(30*time.Minute), fmt.Sprint(more.Domain))
	}
}

// A save that gets its optimizer later is whole.
func TestWeightsThatAreNotAlone(t *testing.T) {
	r := newRig(func(c *Config) { c.Silent = time.Hour })
	r.weights(10, "")
	assert.Equal(t, []string{"10 weights_only 1"}, r.pass(30*time.Minute))
	r.revision += 10
	for _, o := range []model.EpochObservation{
		{Domain: model.Domain{Kind: model.DomainOptimizer}, State: model.DomainWithdrawn},
		{Domain: model.Domain{Kind: model.DomainPlace}, State: model.DomainCommitted, Epoch: model.Some[int64](10), Of: 1, Parts: 1},
	} {
		o.JobID, o.Generation, o.Save, o.Observer, o.Life, o.Revision = "job", "g", 10, "node0", 1, r.revision
		r.hear(o)
	}
	assert.Equal(t, []string{"10 weights_only 2 ended"}, r.pass(time.Minute))
	assert.Equal(t, model.Some[int64](10), r.Frontier("job", "g"))
}
