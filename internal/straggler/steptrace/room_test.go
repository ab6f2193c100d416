// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

// A sender that never repeats itself is kept from taking more than the bound, and from taking the
// place of another job.
func TestHolder_Flood_IsBoundedAndLeavesOthersAlone(t *testing.T) {
	const held = 256
	text := strings.Repeat("x", 1000)
	for name, flood := range map[string]func(n int64) (model.Rank, model.Op){
		"texts": func(n int64) (model.Rank, model.Op) { return model.Rank{Incarnation: "flood"}, longOp(n/8, text) },
		"stack traces": func(n int64) (model.Rank, model.Op) {
			op := longOp(n, "x")
			op.Stack = strings.Repeat("s", 60_000)
			return model.Rank{Incarnation: "flood"}, op
		},
		"jobs": func(n int64) (model.Rank, model.Op) {
			return model.Rank{Incarnation: fmt.Sprint("flood", n), HostName: text}, longOp(1, text)
		},
		"ranks that do nothing": func(n int64) (model.Rank, model.Op) {
			op := longOp(1, text)
			op.Kind = model.KindScope
			return model.Rank{Incarnation: "flood", Rank: n, HostName: text}, op
		},
		"steps that hold nothing": func(n int64) (model.Rank, model.Op) {
			op := longOp(n, text)
			op.Kind = model.KindScope
			return model.Rank{Incarnation: "flood", HostName: text}, op
		},
	} {
		t.Run(name, func(t *testing.T) {
			holder := NewHolder(2000, held, stragglertest.Now)
			n := int64(0)
			reports, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) {
				holder.Keep(r, ops)
				for range 16 {
					rank, op := flood(n)
					holder.Keep(&rank, []model.Op{op})
					n++
				}
				require.Less(t, holder.bytes, int64(held*heldBytes+100_000), "one operation more than the bound")
			})
			names := namesOf(holder.Take(reports[5], findings))
			for r := range int64(4) {
				assert.Contains(t, names[r], "all_reduce", "rank %d of the other job", r)
			}
		})
	}
}

func longOp(step int64, text string) model.Op {
	return model.Op{Kind: model.KindCollective, Name: text, Key: text, Step: model.Some(step), Comm: model.Comm{ID: text}, End: 1}
}

// Operations that are kept twice, replaced and taken leave no bytes counted.
func TestHolder_Take_CountsNothingThatIsGone(t *testing.T) {
	holder := NewHolder(2000, 1000, stragglertest.Now)
	reports, _ := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) {
		for range 5 {
			holder.Keep(r, ops)
		}
	})
	for _, rep := range reports {
		holder.Take(rep, nil)
	}
	assert.Zero(t, holder.bytes)
	assert.Empty(t, holder.jobs)
}
