// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// alone has a whole save of weights alone.
func alone(epoch int64) *ckpt.Root {
	r := root(epoch, model.DomainCommitted)
	r.Saves[0].WeightsOnly = "it has no state of an optimizer"
	return r
}

// A save that is whole and has weights alone is not confirmed: its optimizer is told to be absent. The rule is that of
// preflight.
func TestASaveOfWeightsAlone(t *testing.T) {
	const why = "complete, weights only: cannot resume training, as it has no state of an optimizer"
	absent := []string{"10 place : tentative", "10 model rank 0: committed 10", "10 model rank 1: committed 10", "10 optimizer : absent"}
	whole := []string{"10 place : reflecting", "10 model rank 0: committed 10", "10 model rank 1: committed 10", "10 place : committed 10"}
	for name, tc := range map[string]struct {
		change func(*ckpt.Root)
		want   []string
	}{
		"one":       {func(*ckpt.Root) {}, absent},
		"an export": {func(r *ckpt.Root) { r.Saves[0].Export = true }, whole},
		"beside one that has all": {func(r *ckpt.Root) {
			r.Saves = append(r.Saves, root(10, model.DomainCommitted).Saves...)
		}, whole},
		"a copy beside it": {func(r *ckpt.Root) { r.Saves = append(r.Saves, r.Saves[0]) }, absent},
		"with a time that is late": {func(r *ckpt.Root) {
			d := &r.Saves[0].Domains[1]
			d.State, d.Late, d.Epoch = model.DomainTentative, true, model.Optional[int64]{}
		}, absent},
	} {
		t.Run(name, func(t *testing.T) {
			r := alone(10)
			tc.change(r)
			obs := watcher().Look(r, at(0))
			require.ElementsMatch(t, tc.want, told(obs))
			if len(tc.want) == len(absent) && tc.want[0] == absent[0] {
				assert.Equal(t, why, obs[0].Witness)
				for i := range obs {
					if obs[i].Domain.Kind == model.DomainOptimizer {
						assert.Equal(t, why, obs[i].Witness)
					}
				}
			}
		})
	}
	torn := alone(10)
	torn.Saves[0].Domains[1].State = model.DomainTentative
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 0: committed 10"}, told(watcher().Look(torn, at(0))), "it is not complete")
}

// That a save has no optimizer is taken back where it has one later, and goes with the save.
func TestWeightsAloneForAWhile(t *testing.T) {
	w := watcher()
	w.Look(alone(10), at(0))
	assert.Empty(t, w.Look(alone(10), at(1)))
	now := told(w.Look(root(10, model.DomainCommitted), at(2)))
	assert.Equal(t, []string{"10 place : reflecting", "10 optimizer : withdrawn", "10 place : committed 10"}, now)
	again := told(w.Look(alone(10), at(3)))
	assert.Equal(t, []string{"10 place : tentative", "10 optimizer : absent"}, again)
	gone := told(w.Look(&ckpt.Root{}, at(4)))
	assert.Contains(t, gone, "10 model rank 0: absent 10")
	assert.Contains(t, gone, "10 optimizer : withdrawn", "nothing of the save is there")
}

// Of a node's own part it is said of that node.
func TestWeightsAloneOfANode(t *testing.T) {
	w := New(Config{JobID: "job", Observer: "here", Heartbeat: 60, MaxDomains: 100, Where: "of node7", Places: 2})
	r := alone(10)
	r.Saves = append(r.Saves, root(10, model.DomainCommitted).Saves...)
	assert.Contains(t, told(w.Look(r, at(0))), "10 optimizer of node7: absent", "each node must have its part")
}

// An optimizer that was there and is gone was lost, and not left out.
func TestAnOptimizerThatIsLost(t *testing.T) {
	with := root(10, model.DomainCommitted)
	with.Saves[0].Domains[1].Domain = model.Domain{Kind: model.DomainOptimizer, ID: "optimizer"}
	w := watcher()
	w.Look(with, at(0))
	left := alone(10)
	left.Saves[0].Domains = left.Saves[0].Domains[:1]
	assert.Equal(t, []string{"10 place : tentative", "10 optimizer optimizer: absent 10"}, told(w.Look(left, at(1))))
}
