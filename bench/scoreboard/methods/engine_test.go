// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// slowJob feeds steps of 16 ranks, of which one computes twice as long, and returns after
// which of them the method named it; -1 for none. Of fewer ranks than 11 no value is more
// than three deviations above the mean.
func slowJob(t *testing.T, about *About, steps int) (first int) {
	t.Helper()
	const n, slow = 16, 5
	m := about.New()
	m.Begin(ranksOf(n))
	for k := range steps {
		begin := int64(k+1) * 1000 * ms
		for r := range int64(n) {
			took := 20*ms + (r+int64(k))%n*10_000
			if r == slow {
				took += 20 * ms
			}
			ops := []model.Op{
				kernel("gemm", begin, took),
				reduce("ncclDevKernel_AllReduce", int64(k), begin+took, begin+45*ms),
				step(begin, begin+45*ms),
			}
			for i := range ops {
				ops[i].Step = model.Some(int64(k))
			}
			m.Add(int(r), ops)
		}
		m.Close(int64(k))
		if len(m.Named()) > 0 {
			assert.Equal(t, []int64{slow}, ranksNamed(m.Named()[:1]), about.Name)
			return k
		}
	}
	return -1
}

// Both are asked after every step, not KAIR once in a span of 16.
func TestKAIRIsAskedAsOftenAsTheEngine(t *testing.T) {
	for _, name := range []string{Lockstep, KAIR, KAIRPlus} {
		about, err := Select(name)
		require.NoError(t, err)
		at := slowJob(t, &about[0], 16)
		assert.Positive(t, at, name)
		assert.Less(t, at, 15, name)
	}
}

func TestKAIRSuspects(t *testing.T) {
	about, err := Select(KAIRPlus)
	require.NoError(t, err)
	m := about[0].New()
	m.Begin(ranksOf(4))
	for k := range 2 { // too few to accuse anybody
		begin := int64(k+1) * 1000 * ms
		for r := range int64(4) {
			ops := []model.Op{kernel("gemm", begin, 20*ms), kernel("copy", begin+20*ms, 1*ms), step(begin, begin+50*ms)}
			if r == 2 {
				ops[0].End, ops[1].Start, ops[1].End = begin+40*ms, begin+40*ms, begin+41*ms
			}
			for i := range ops {
				ops[i].Step = model.Some(int64(k))
			}
			m.Add(int(r), ops)
		}
		m.Close(int64(k))
	}
	end := m.End()
	require.NotEmpty(t, end)
	assert.False(t, end[0].Decided)
	assert.Equal(t, []int64{2}, end[0].Ranks)
}

func TestAFindingWhoseClassChangesIsTwo(t *testing.T) {
	f := model.Finding{ID: "a", Class: model.ClassCompute, Rank: model.Some(int64(1))}
	first := accusation(&f)
	f.Class = model.ClassHost
	assert.NotEqual(t, first.ID, accusation(&f).ID)
}
