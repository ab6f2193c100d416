// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Steps whose stamps can be no nanoseconds are told, with what they would be, and are read.
func TestStampsInAnotherUnit(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).UnixNano()
	rank := model.Rank{JobID: "job", Incarnation: "life", Rank: 3}
	const want = "; want nanoseconds since 1970, from 631152000000000000 (1990) to 4102444800000000000 (2100) (2 times)"
	for name, tc := range map[string]struct {
		start, end int64
		says       string
	}{
		"nanoseconds":  {at, at + 1e9, ""},
		"microseconds": {at / 1e3, at/1e3 + 1e6, "doubt span: start: got 1772600767000000, which is 1970-01-21, and in microseconds 2026-03-04" + want},
		"milliseconds": {at / 1e6, at/1e6 + 1e3, "doubt span: start: got 1772600767000, which is 1970-01-01, and in milliseconds 2026-03-04" + want},
		"since boot":   {7, 1e9, "doubt span: start: got 7, which is 1970-01-01" + want},
		"far ahead":    {at, 5e18, "doubt span: end: got 5000000000000000000, which is 2128-06-11" + want},
	} {
		t.Run(name, func(t *testing.T) {
			step := model.Op{Kind: model.KindStep, Name: "step", Step: model.Some[int64](1), Start: tc.start, End: tc.end}
			next := step
			next.Step = model.Some[int64](2)
			td := OpsToTraces(&rank, []model.Op{step, next})
			var p Problems
			ranks := ReadOps(td, &p)
			require.Len(t, ranks, 1)
			assert.Len(t, ranks[0].Ops, 2)
			assert.Zero(t, p.Count(), "all of it was read")
			var said []string
			for _, one := range p.List() {
				said = append(said, one.What)
				assert.Equal(t, int64(3), *one.Rank)
			}
			if tc.says == "" {
				assert.Empty(t, said)
				return
			}
			assert.Equal(t, []string{tc.says}, said)
		})
	}
}
