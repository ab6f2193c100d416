// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// blocksOf returns 8 pairs of blocks; recording costs the share of a step, and pairs
// vary by a share to either side.
func blocksOf(cost, vary float64) []block {
	var out []block
	for i, kind := range "ABBABAABBAABABBA" {
		took := 10e6
		if kind == 'A' {
			took *= 1 + cost
			if i/2%2 == 0 {
				took *= 1 + vary
			} else {
				took *= 1 - vary
			}
		}
		begin := uint64(i+1) * apart
		out = append(out, block{Kind: string(kind), Begin: begin, End: begin + apart/2, Took: []float64{took, took * 2, took}})
	}
	return out
}

// costSession returns a session whose ring has the kernels of the blocks that record.
func costSession(blocks []block) *session {
	s := &session{right: report.Shown, facts: &facts{Blocks: blocks}, ring: &record{}}
	for _, b := range blocks {
		if b.Kind == "A" {
			s.ring.kernels = append(s.ring.kernels, kernelsFrom(b.Begin, 1, false)...)
		}
	}
	return s
}

func TestCost_KernelsOfOurs_InRecordingBlocksOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *session)
		text   string
	}{
		"an empty ring":            {func(s *session) { s.ring.kernels = nil }, "got no kernel in the ring from block 1"},
		"a block without a kernel": {func(s *session) { s.ring.kernels = s.ring.kernels[:7*(sentinels+len(work))] }, "got no kernel in the ring from block 16"},
		"kernels while paused": {func(s *session) {
			s.ring.kernels = append(s.ring.kernels, kernelsFrom(2*apart, 1, false)...)
		}, "kernels in the ring from block 2, which was paused; want none"},
	} {
		blocks := blocksOf(0, 0.001)
		blocks[14].Kind, blocks[15].Kind = "B", "A"
		s := costSession(blocks)
		tt.change(s)
		c := s.cost()
		assert.Equal(t, report.Failed, c.Status, name)
		assert.Contains(t, c.Text, tt.text, name)
	}
}

func TestCost_Blocks_DecideByTheirInterval(t *testing.T) {
	for _, tt := range []struct {
		cost, vary float64
		want       report.Status
	}{
		{0.002, 0.001, report.Shown},
		{-0.004, 0.001, report.Shown},
		{0.05, 0.001, report.Failed},
		{0.012, 0.0001, report.Failed},
		{0.015, 0.02, report.NotShown}, // above the limit, which the interval holds
		{0.002, 0.03, report.NotShown},
	} {
		s := costSession(blocksOf(tt.cost, tt.vary))
		c := s.cost()
		assert.Equal(t, tt.want, c.Status, "%+v: %s", tt, c.Text)
		assert.InDelta(t, 100*tt.cost, c.Figures[0].Value, 0.05)
	}
}

func TestCost_APauseThatWasNotObeyed_Fails(t *testing.T) {
	blocks := blocksOf(0, 0.001)
	blocks[3].Code = -1
	assert.Equal(t, report.Failed, costSession(blocks).cost().Status)
}

func TestCost_NotAlone_DecidesNothing(t *testing.T) {
	for _, cost := range []float64{0.002, 0.05} {
		s := costSession(blocksOf(cost, 0.001))
		s.company = "compile is not ready"
		c := s.cost()
		assert.Equal(t, report.NotShown, c.Status)
		assert.Contains(t, c.Text, "not alone: compile is not ready")
	}
}

func TestCost_BlocksThatAreNoPairs_Fail(t *testing.T) {
	for name, tt := range map[string]struct {
		change func([]block) []block
		text   string
	}{
		"the last is missing":  {func(b []block) []block { return b[:15] }, "got 15 blocks; want pairs"},
		"two of a kind":        {func(b []block) []block { b[4].Kind = b[5].Kind; return b }, "pair 3 is of kinds"},
		"an unknown kind":      {func(b []block) []block { b[0].Kind = "C"; return b }, "pair 1 is of kinds C and B"},
		"one has fewer steps":  {func(b []block) []block { b[9].Took = b[9].Took[:2]; return b }, "pair 5 has"},
		"a pair without steps": {func(b []block) []block { b[0].Took, b[1].Took = nil, nil; return b }, "pair 1 has"},
	} {
		s := costSession(tt.change(blocksOf(0, 0.001)))
		c := s.cost()
		assert.Equal(t, report.Failed, c.Status, name)
		assert.Contains(t, c.Text, tt.text, name)
	}
}

func TestCostBetween_Turns_AreComparedPairwise(t *testing.T) {
	slow := [][]float64{{10e6}, {12e6}, {14e6}, {16e6}}
	fast := [][]float64{{9.99e6}, {11.98e6}, {13.98e6}, {15.98e6}}
	assert.Equal(t, report.Shown, costBetween("cost", "recording", slow, fast, report.Shown, "").Status)
	assert.Equal(t, report.Failed, costBetween("cost", "recording", [][]float64{{11e6}, {13.2e6}, {15.4e6}, {17.6e6}}, fast, report.Shown, "").Status)
	assert.Equal(t, report.Failed, costBetween("cost", "recording", slow[:2], fast[:2], report.Shown, "").Status)
	c := costBetween("cost", "recording", slow[:3], fast, report.Shown, "")
	assert.Equal(t, report.Failed, c.Status)
	assert.Contains(t, c.Text, "got 3 with and 4 without")
	c = costBetween("cost", "recording", slow, fast, report.Shown, "other programs use it")
	assert.Equal(t, report.NotShown, c.Status)
	assert.Contains(t, c.Text, "not alone: other programs use it")
}

func TestPairedRatio_KnownPairs_GivesStudentsInterval(t *testing.T) {
	// Logarithms -0.1, 0, 0.1: mean 0, standard error 0.1/sqrt 3, times 4.303.
	r, err := pairedRatio([]float64{0.9048374180359595, 1, 1.1051709180756477}, []float64{1, 1, 1})
	require.NoError(t, err)
	assert.InDelta(t, 1, r.value, 1e-12)
	assert.InDelta(t, 1.28199, r.high, 1e-4)
	assert.InDelta(t, 1/1.28199, r.low, 1e-4)
}
