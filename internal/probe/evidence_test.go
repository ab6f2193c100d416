// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

func kinds(n ...int) (legs []leg) {
	for kind, n := range n {
		for range n {
			legs = append(legs, leg{ok: true, ours: int64(-len(legs)), kind: uint8(kind)})
		}
	}
	return legs
}

func TestWorseStampsAreLeftOutWhereBetterOnesSuffice(t *testing.T) {
	e := evidence{out: kinds(0, 3, 97), back: kinds(0, 50, 50)}
	assert.Equal(t, uint8(stamp.KindKernel), e.settle())
	assert.Len(t, e.out, 97)
	assert.Len(t, e.back, 50)
	assert.Less(t, e.out[0].ours, e.out[1].ours, "by time")
}

func TestWorseStampsServeWhereThereIsNothingElse(t *testing.T) {
	e := evidence{out: kinds(0, 90, 10), back: kinds(0, 50, 50)}
	assert.Equal(t, uint8(stamp.KindUser), e.settle(), "of the way out, a tenth only has better ones")
	assert.Len(t, e.out, 100)
	e = evidence{out: kinds(0, 0, 20, 80), back: nil}
	assert.Equal(t, uint8(stamp.KindHardware), e.settle())
	assert.Len(t, e.out, 80)
}

func TestEveryMessageCountsWithoutATolerance(t *testing.T) {
	trips := coded(0, 50_000, 0)
	var all, pure evidence
	p, _ := all.add(trips, 0)
	assert.Equal(t, purity{pairs: 3, pure: 2}, p, "and pure pairs are counted")
	assert.Len(t, all.out, 6)
	pure.add(trips, 1000)
	assert.Len(t, pure.out, 4)
	var alone evidence
	alone.add(trips[:1], 1000)
	assert.Len(t, alone.out, 1, "loss left no pair")
}
