// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// straggler is a finding as the collector makes it.
func straggler(id string, revision, rank int64, class, cause string) model.Finding {
	return model.Finding{
		ID: id, Revision: revision, Kind: model.FindingStraggler, Class: class, Cause: cause,
		Rank: model.Some(rank), Confidence: 0.8,
	}
}

func TestVerdict(t *testing.T) {
	cases := map[string]rankCase{}
	for _, c := range rankCases {
		cases[c.name] = c
	}
	for name, c := range map[string]struct {
		name  string
		found []model.Finding
		right bool
	}{
		"healthy, nothing found":        {"healthy", nil, true},
		"healthy, a rank accused":       {"healthy", []model.Finding{straggler("a", 0, 0, model.ClassHost, "")}, false},
		"right rank and class":          {"compute", []model.Finding{straggler("a", 0, 1, model.ClassCompute, "")}, true},
		"nothing found":                 {"compute", nil, false},
		"other rank":                    {"compute", []model.Finding{straggler("a", 0, 0, model.ClassCompute, "")}, false},
		"other class":                   {"compute", []model.Finding{straggler("a", 0, 1, model.ClassHost, "")}, false},
		"right, and a bystander":        {"compute", []model.Finding{straggler("a", 0, 1, model.ClassCompute, ""), straggler("b", 0, 0, model.ClassHost, "")}, false},
		"right cause":                   {"data", []model.Finding{straggler("a", 0, 1, model.ClassHost, model.CauseDataLoader)}, true},
		"no cause":                      {"data", []model.Finding{straggler("a", 0, 1, model.ClassHost, "")}, false},
		"no rank":                       {"cpu", []model.Finding{{ID: "a", Kind: model.FindingStraggler, Class: model.ClassHost}}, false},
		"other kind":                    {"cpu", []model.Finding{{ID: "a", Kind: "desync", Class: model.ClassHost, Rank: model.Some[int64](1)}}, false},
		"put right by a later revision": {"compute", []model.Finding{straggler("a", 0, 1, model.ClassHost, ""), straggler("a", 1, 1, model.ClassCompute, "")}, true},
		"spoiled by a later revision":   {"compute", []model.Finding{straggler("a", 1, 1, model.ClassCompute, ""), straggler("a", 2, 0, model.ClassCompute, "")}, false},
		"an older revision comes late":  {"compute", []model.Finding{straggler("a", 1, 1, model.ClassCompute, ""), straggler("a", 0, 1, model.ClassHost, "")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := cases[c.name].verdict(report.Shown, latest(c.found))
			want := report.Failed
			if c.right {
				want = report.Shown
			}
			assert.Equal(t, want, status, text)
		})
	}
}

func TestVerdict_CostOfATurn_DoesNotDecide(t *testing.T) {
	costs := func(rank int64, seconds float64) model.Finding {
		f := straggler(fmt.Sprint(rank), 0, rank, model.ClassCompute, "")
		f.CostSeconds = model.Some(seconds)
		return f
	}
	healthy, compute := rankCase{fault: "none"}, rankCase{fault: "compute", classes: onlyCompute}
	for name, c := range map[string]struct {
		of    rankCase
		right report.Status
		found []model.Finding
		want  report.Status
	}{
		"healthy, within a turn":            {healthy, report.Shown, []model.Finding{costs(0, 0.003)}, report.NotShown},
		"healthy, beyond a turn":            {healthy, report.Shown, []model.Finding{costs(0, 0.003), costs(1, 0.009)}, report.Failed},
		"healthy, the stand-in has no turn": {healthy, report.StandIn, []model.Finding{costs(0, 0.003)}, report.Failed},
		"fault, another within a turn":      {compute, report.Shown, []model.Finding{costs(1, 0.02), costs(0, 0.003)}, report.Shown},
		"fault, another beyond a turn":      {compute, report.Shown, []model.Finding{costs(1, 0.02), costs(0, 0.009)}, report.Failed},
		"fault, another alone":              {compute, report.Shown, []model.Finding{costs(0, 0.003)}, report.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := c.of.verdict(c.right, c.found)
			assert.Equal(t, c.want, status, text)
		})
	}
}

func TestJudge_HealthyJob(t *testing.T) {
	accused := func(rank int64, costSeconds float64) []model.Finding {
		f := straggler("a", 0, rank, model.ClassCompute, "")
		f.CostSeconds = model.Some(costSeconds)
		return []model.Finding{f}
	}
	for name, c := range map[string]struct {
		fault string
		found []model.Finding
		later float64 // rank 1, ms
		want  report.Status
	}{
		"nothing found":                      {"healthy", nil, 5, report.Shown},
		"the rank named came later":          {"healthy", accused(1, 0.012), 15, report.NotShown},
		"the other rank came later":          {"healthy", accused(0, 0.012), 15, report.Failed},
		"it came later by less":              {"healthy", accused(1, 0.040), 15, report.Failed},
		"rank 0 came later":                  {"healthy", accused(0, 0.012), -15, report.NotShown},
		"no cost":                            {"healthy", []model.Finding{straggler("a", 0, 1, model.ClassCompute, "")}, 5, report.Failed},
		"a fault, of which nothing is found": {"compute", nil, 5, report.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			did := []rankDid{{Rank: 0, CameMS: []float64{10, 20, 30}}, {Rank: 1, CameMS: []float64{10 + c.later, 20 + c.later, 90}}}
			p := report.NewPart("ranks", "", 0)
			rankCase{name: c.fault, fault: c.fault, classes: map[string][]string{"compute": onlyCompute}[c.fault]}.judge(p, report.Shown, c.found, did)
			require.Len(t, p.Checks, 1)
			assert.Equal(t, c.want, p.Checks[0].Status, p.Checks[0].Text)
		})
	}
	_, known := laterBy([]rankDid{{CameMS: []float64{1}}, {}}, 1)
	assert.False(t, known)
}

func TestNCCLRefusal(t *testing.T) {
	const extend = "Error: failed to extend /dev/shm/nccl-x to 33030532 bytes, error: No space left on device (28)"
	assert.Equal(t, extend, ncclRefusal("a\nvm:1:2 [0] misc/shmutils.cc:87 NCCL WARN "+extend+"\nb\n"))
	assert.Equal(t, "Duplicate GPU detected : rank 0", ncclRefusal("NCCL WARN Duplicate GPU detected : rank 0"))
	assert.Empty(t, ncclRefusal("NCCL WARN Cuda failure"))
}

func TestWasRead_OperationsOfBothRanks_OrError(t *testing.T) {
	for printed, right := range map[string]bool{
		"Read 2368 operations of 2 ranks.\n\nNo finding reached an exporter.\n": true,
		"Read 2368 operations of 1 ranks.\n":                                    false,
		"Read 0 operations of 2 ranks.\n":                                       false,
		"Nothing was read: no operation came from any receiver.\n":              false,
		"": false,
	} {
		if err := wasRead(printed); right {
			assert.NoError(t, err)
		} else {
			line, _, _ := strings.Cut(printed, "\n")
			assert.ErrorContains(t, err, fmt.Sprintf("got %q; want operations of 2 ranks", line))
		}
	}
}

// ranksKit returns a kit whose collector and ranks are scripts.
func ranksKit(t *testing.T, collector, rank string) *kit.Kit {
	t.Helper()
	k := testKit(t)
	k.Torch, k.Python = &kit.Torch{}, filepath.Join(k.Dir, "python3")
	require.NoError(t, os.MkdirAll(filepath.Dir(k.Lockstep()), 0o700))
	for path, script := range map[string]string{k.Lockstep(): collector, k.Python: rank} {
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	return k
}

const (
	readNothing = `trap 'echo "Nothing was read: no operation came from any receiver."; exit 0' INT; while :; do sleep 0.01; done`
	didSteps    = `echo "{\"rank\":$RANK,\"step_ms\":60}"`
)

func TestRun_CollectorReadNothing_HealthyJobFailed(t *testing.T) {
	drain := ranksDrain
	ranksDrain = 50 * time.Millisecond
	t.Cleanup(func() { ranksDrain = drain })
	k := ranksKit(t, readNothing, didSteps)
	p := report.NewPart("ranks", "", 0)
	rankCases[0].run(t.Context(), k, p)
	require.NotEmpty(t, p.Checks)
	assert.Equal(t, report.Failed, p.Checks[0].Status)
	assert.Contains(t, p.Checks[0].Text, `got "Nothing was read: no operation came from any receiver."; want operations of 2 ranks`)
}

func TestTrain_ProcessEndsLateAfterItsAnswer_AnswerCounts(t *testing.T) {
	k := ranksKit(t, "", didSteps+`; [ $RANK = 0 ] || sleep 600`)
	did, err := rankCase{fault: "none"}.trainFor(t.Context(), k, t.TempDir(), 300*time.Millisecond)
	require.NoError(t, err)
	assert.Equal(t, []rankDid{{Rank: 0, StepMS: 60}, {Rank: 1, StepMS: 60, Late: true}}, did)

	k = ranksKit(t, "", "sleep 600")
	_, err = rankCase{fault: "none"}.trainFor(t.Context(), k, t.TempDir(), 50*time.Millisecond)
	require.ErrorIs(t, err, kit.ErrLimit)
	part, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = rankCase{fault: "none"}.trainFor(part, k, t.TempDir(), time.Minute)
	require.ErrorIs(t, err, kit.ErrNoTime)
}

func TestRun_ProcessEndsLate_FindingCountsAndTheEndFailed(t *testing.T) {
	drain, limit := ranksDrain, ranksLimit
	ranksDrain, ranksLimit = 50*time.Millisecond, 300*time.Millisecond
	t.Cleanup(func() { ranksDrain, ranksLimit = drain, limit })
	read := `trap 'echo "Read 9 operations of 2 ranks."; exit 0' INT; : >"$LOCKSTEP_FINDINGS"; while :; do sleep 0.01; done`
	k := ranksKit(t, read, didSteps+`; [ $RANK = 0 ] || sleep 600`)
	p := report.NewPart("ranks", "", 0)
	rankCases[0].run(t.Context(), k, p)
	got := map[string]report.Check{}
	for _, c := range p.Checks {
		got[c.Name] = c
	}
	assert.Equal(t, report.StandIn, got["healthy"].Status, got["healthy"].Text)
	assert.Equal(t, report.Failed, got["healthy-end"].Status)
	assert.Contains(t, got["healthy-end"].Text, "the process of rank 1 gave its answer and did not end within 300ms")
}

func TestRunRanks_NoTimeLeft_NotShown(t *testing.T) {
	part, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	p := report.NewPart("ranks", "", 0)
	runRanks(part, ranksKit(t, readNothing, didSteps), p)
	require.Len(t, p.Checks, len(rankCases))
	for i, c := range p.Checks {
		assert.Equal(t, report.NotShown, c.Status, c.Name)
		if !rankCases[i].nccl {
			assert.Contains(t, c.Text, "not run: ")
		}
	}
}

func TestRankCases_WhatMattersMost_First(t *testing.T) {
	var names []string
	for _, c := range rankCases {
		names = append(names, c.name)
	}
	assert.Equal(t, []string{"healthy", "compute", "cpu", "nccl-compute", "traces-compute", "data", "nccl-healthy", "work", "traces-cpu"}, names)
}

// sourcesSeen is the ring of a rank with NCCL, in which two of seven operations have waits.
func sourcesSeen() *ringSeen {
	_, seen := ncclJob()
	s := seen[1]
	s.Witnesses, s.CUPTI = ring.WitnessNCCL|ring.WitnessCUPTI, ring.CUPTIActive
	s.Kinds = map[string]uint64{ring.KindScope.String(): 9, ring.KindKernel.String(): 30}
	for i := range s.Comms[0].Ops[2:] {
		s.Comms[0].Ops[2+i].Flags &^= ring.FlagWaits
	}
	s.Comms[1].Ops[0].Flags &^= ring.FlagWaits
	return s
}

func TestRingRows_CountsOfEachRow(t *testing.T) {
	s := sourcesSeen()
	rows := rowsOf(s)
	assert.Empty(t, rows.problems(s, true))
	assert.Equal(t, "capability rows in the rings: NCCL host events (7 operations), kernel channels (7 operations with kernel times), "+
		"proxy steps (2 operations with waits), scopes (9 scopes), CUPTI (30 kernels and copies)", rows.String())
	s.Witnesses = ring.WitnessProgram
	rows = rowsOf(s)
	assert.Empty(t, rows.problems(s, false))
	assert.Equal(t, "capability rows in the rings: scopes (9 scopes), CUPTI (30 kernels and copies); and 7 collectives that the program reported", rows.String())
}

func TestRingRows_RowIsMissing_Problem(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *ringSeen)
		want  string
	}{
		"CUPTI is off":    {func(s *ringSeen) { s.CUPTI = 0 }, "want active"},
		"no kernel":       {func(s *ringSeen) { delete(s.Kinds, ring.KindKernel.String()) }, "with 0 kernels"},
		"no operation":    {func(s *ringSeen) { s.Comms = nil }, "got no collective"},
		"no scope":        {func(s *ringSeen) { delete(s.Kinds, ring.KindScope.String()) }, "got no scope"},
		"not NCCL's":      {func(s *ringSeen) { s.Witnesses = ring.WitnessProgram }, "got NCCL as a source of its ring: false; want true"},
		"no kernel times": {func(s *ringSeen) { s.flags(ring.FlagKernel) }, "got 0 operations with kernel times"},
		"no waits at all": {func(s *ringSeen) { s.flags(ring.FlagWaits) }, "and 0 with waits"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sourcesSeen()
			c.spoil(s)
			rows := rowsOf(s)
			assert.Contains(t, strings.Join(rows.problems(s, true), "\n"), c.want)
		})
	}
}

// flags takes a flag from all operations.
func (s *ringSeen) flags(f ring.Flags) {
	for i := range s.Comms {
		for j := range s.Comms[i].Ops {
			s.Comms[i].Ops[j].Flags &^= f
		}
	}
}

func TestSources_NoRing_Failed(t *testing.T) {
	p := report.NewPart("ranks", "", 0)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "rings"), 0o700))
	rankCases[0].sources(p, report.Shown, dir)
	require.Len(t, p.Checks, 1)
	assert.Equal(t, report.Failed, p.Checks[0].Status)
	assert.Contains(t, p.Checks[0].Text, "got 0 rings; want 2")
}

func TestDecodeFindings(t *testing.T) {
	want := straggler("a", 1, 1, model.ClassCompute, "")
	line, err := new(plog.JSONMarshaler).MarshalLogs(otelmap.FindingsToLogs([]model.Finding{want}))
	require.NoError(t, err)
	foreign := plog.NewLogs()
	foreign.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("other")
	other, err := new(plog.JSONMarshaler).MarshalLogs(foreign)
	require.NoError(t, err)

	found, err := decodeFindings(bytes.NewReader(bytes.Join([][]byte{line, other, line}, []byte("\n"))))
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, want.Rank, found[0].Rank)
	assert.Equal(t, want.Class, found[1].Class)

	_, err = decodeFindings(bytes.NewReader([]byte("{cut")))
	assert.ErrorContains(t, err, "read findings: line 1")
}
