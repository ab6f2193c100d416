// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Messages of which only the other side's place in the communicator was recorded meet,
// as those of a pipeline over several nodes.
func TestMessagesMeetByTheirPlacesInTheCommunicator(t *testing.T) {
	const steps = 3
	for name, tc := range map[string]struct {
		comm      func(rank int64) string
		unmatched int64
	}{
		"each pipeline its own": {func(rank int64) string { return fmt.Sprintf("pipe%d", rank%2) }, 0},
		// Then nobody knows which of two is meant.
		"two by one name": {func(int64) string { return "pipe" }, 8 * steps},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4) // two stages of two replicas
			for step := range int64(steps) {
				for r := range int64(4) {
					stage := r / 2
					op := func(kind model.OpKind, from, to float64) model.Op {
						return model.Op{
							Kind: kind, Name: string(kind), Step: model.Some(step), Stream: model.Some(int64(3)), Start: nanos(from), End: nanos(to),
							Comm:      model.Comm{ID: tc.comm(r), Size: model.Some(int64(2)), Rank: model.Some(stage)},
							PeerLocal: model.Some(1 - stage),
							Collective: model.Collective{
								Name: string(kind), Seq: model.Some(step), SeqScope: model.ScopeCommFunc,
							},
						}
					}
					at := float64(100 * step)
					ops := []model.Op{op(model.KindSend, at+10, at+20), op(model.KindRecv, at+50, at+60)}
					if stage == 1 {
						ops = []model.Op{op(model.KindRecv, at+5, at+20), op(model.KindSend, at+50, at+60)}
					}
					w.e.Add(w.rank(r), append(ops, stepOp(step, at, at+90)))
				}
			}
			assert.Equal(t, tc.unmatched, w.e.Stats().UnmatchedOps)
			for _, r := range w.e.Jobs()[0].Ranks {
				assert.Equal(t, 2*steps, r.Meetings)
				assert.Equal(t, 2*steps-int(tc.unmatched)/4, r.Met)
			}
		})
	}
}
