// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// words joins what wrapping parted.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// lateHost is a finding on rank 2, for which others wait.
func lateHost() model.Finding {
	return model.Finding{
		Kind: model.FindingStraggler, Class: model.ClassHost, Rank: model.Some(int64(2)), Host: "node0",
		Op: "data", StepFirst: model.Some(int64(1)), StepLast: model.Some(int64(2)), BeforeWindow: true,
		CostSeconds: model.Some(0.003), CostShare: model.Some(0.158), CostJoint: model.Some(0.003),
		WaitCaused: model.Some(0.011), WaitCausedShare: model.Some(1.0), Confidence: 0.62,
		Evidence: evidence.Text(`{"meetings":2,"last_arrivals":2}`), Action: "look at the loader",
	}
}

func finding(t *testing.T, f *model.Finding) string {
	t.Helper()
	f.Kind = model.FindingStraggler
	var b strings.Builder
	require.NoError(t, Finding(&b, f, "Finding 1", Style{Width: 200}))
	return words(b.String())
}

// Rank 2 hides behind a slower one; of two that are slow alike both are waited for.
func TestWhoHoldsUpNobodyYetIsSaidTo(t *testing.T) {
	f := &model.Finding{
		Class: model.ClassCompute, Rank: model.Some(int64(2)), CostSeconds: model.Some(0.0),
		Evidence: evidence.Text(`{"cost_once_others_are_mended_seconds":0.0018}`),
	}
	assert.Contains(t, finding(t, f), "rank 2 would make the others wait once those that are slower are mended (class compute")
	f.WaitCaused = model.Some(0.012)
	assert.Contains(t, finding(t, f), "rank 2 makes the others wait (class compute")
}

func TestASlowDeviceIsNotOneKernel(t *testing.T) {
	f := &model.Finding{Class: model.ClassCompute, Rank: model.Some(int64(3)), Op: "gemm_1", Evidence: evidence.Text(`{"excess_seconds":0.004,"place_excess_seconds":0.001}`)}
	assert.Contains(t, finding(t, f), `where many kernels, 4.00 ms per step more than its peers' in all; most of it in "gemm_1", 1.00 ms per step more than its peers' median`)
	f.Evidence = evidence.Text(`{"excess_seconds":0.004,"place_excess_seconds":0.003}`)
	assert.Contains(t, finding(t, f), `where "gemm_1", 3.00 ms per step more`)
}

func TestKAIRHasNoConfidence(t *testing.T) {
	f := &model.Finding{Class: model.ClassCompute, Rank: model.Some(int64(3)), Confidence: 0.99, Evidence: evidence.Text(`{"method":"kair"}`)}
	said := finding(t, f)
	assert.Contains(t, said, "confidence none: method kair knows no probability of error; the rank was blamed in 99.0 % of the recent steps")
	assert.NotContains(t, said, "of 1")
}

func TestPausesOutsideOfScopesAreSaidToBe(t *testing.T) {
	said := finding(t, &model.Finding{Class: model.ClassJitter, Op: model.OpOther, Evidence: evidence.Text(`{"blame_share":0.1,"blame_op":"(other)"}`)})
	assert.Contains(t, said, "where outside of any scope")
	assert.NotContains(t, said, "(other)")
}

func TestFindingsAloneMostCostlyFirst(t *testing.T) {
	cheap := lateHost()
	dear := cheap
	dear.Rank, dear.CostSeconds = model.Some(int64(5)), model.Some(1.0)
	unknown := model.Finding{Kind: "desync", Class: "process_dead", Ranks: []int64{1, 2}, Evidence: evidence.Text("free text"), Confidence: 0.5}
	var b strings.Builder
	require.NoError(t, Findings(&b, []model.Finding{unknown, cheap, dear}, Style{}))
	said := words(b.String())
	assert.Contains(t, said, "Finding 1 of 3: rank 5")
	assert.Contains(t, said, "Finding 2 of 3: rank 2")
	assert.Contains(t, said, "Finding 3 of 3: ranks 1 and 2: desync (process_dead)")
	assert.Contains(t, said, "evidence free text", "what is not of the known shape is shown as it is")
}

func TestBrief(t *testing.T) {
	f := lateHost()
	f.Evidence = evidence.Text(`{"steps":64}`)
	assert.Equal(t, "rank 2 on node0, host, cost 3.00 ms per step (64 steps judged); since step 1", Brief(&f))
	f.Status, f.Evidence = model.StatusClosed, evidence.Text(`{"steps":1}`)
	assert.Equal(t, "rank 2 on node0, host, cost 3.00 ms per step (1 step judged); seen in steps 1 to 2", Brief(&f))
	f.Evidence = evidence.Text("none")
	assert.Contains(t, Brief(&f), "cost 3.00 ms per step; seen in")
	f.Class, f.Cause = "host\x1b", "compile"
	assert.Contains(t, Brief(&f), "host? (compile)")
}

func TestFindingUnderATitleOfItsOwn(t *testing.T) {
	f := lateHost()
	var b strings.Builder
	require.NoError(t, Finding(&b, &f, "Finding 7", Style{}))
	assert.True(t, strings.HasPrefix(b.String(), "Finding 7: rank 2"), b.String())
}

// The range is that in which it was seen; the numbers may be of fewer steps.
func TestFindingSaysOfHowManyStepsItsNumbersAre(t *testing.T) {
	f := lateHost()
	f.Evidence = evidence.Text(`{"steps":64}`)
	f.StepFirst, f.StepLast = model.Some(int64(0)), model.Some(int64(199))
	said := func() string {
		var b strings.Builder
		require.NoError(t, Finding(&b, &f, "Finding 1", Style{}))
		return words(b.String())
	}
	assert.Contains(t, said(), "steps 0 to 199; numbers are of 64 steps")
	f.StepLast = model.Some(int64(63))
	assert.NotContains(t, said(), "numbers are of")
}

func TestParagraphIsWrapped(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Paragraph(&b, strings.Repeat("word ", 40), Style{Width: 80}))
	for line := range strings.Lines(b.String()) {
		assert.LessOrEqual(t, len(line), 81)
	}
	assert.Equal(t, 3, strings.Count(b.String(), "\n"))
}

func TestFindings_OfSeveral_MendingAllIsSaid(t *testing.T) {
	const all = "; mending all findings together saves 5.00 ms"
	f := lateHost()
	f.CostJoint = model.Some(0.005)
	var b strings.Builder
	require.NoError(t, Findings(&b, []model.Finding{f, f}, Style{Width: 300}))
	assert.Contains(t, words(b.String()), all)
	b.Reset()
	require.NoError(t, Finding(&b, &f, "Finding 1", Style{Width: 300}))
	assert.NotContains(t, words(b.String()), "mending all")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrors(t *testing.T) {
	require.ErrorContains(t, Findings(brokenWriter{}, nil, Style{}), "disk full")
	require.ErrorContains(t, Finding(brokenWriter{}, &model.Finding{}, "Finding 1", Style{}), "disk full")
	require.ErrorContains(t, Paragraph(brokenWriter{}, "text", Style{}), "disk full")
}
