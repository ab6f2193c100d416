// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
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
		"nobody":                        {"cpu", []model.Finding{{ID: "a", Kind: model.FindingStraggler, Class: model.ClassHost}}, false},
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
