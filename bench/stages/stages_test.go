// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

// rowsOf returns rows whose costs grow as the ranks to a power.
func rowsOf(power float64) (rows []row) {
	for _, ranks := range []int{64, 512, 4096} {
		r := row{ranks: ranks, first: 40, second: 30, alone: 5000}
		for part := range r.cpu {
			r.cpu[part] = 1000 * float64(part+1) * math.Pow(float64(ranks)/64, power)
		}
		r.peak[concluder] = int64(ranks) << 20
		rows = append(rows, r)
	}
	return rows
}

func TestSlope_PowerOfRanks_IsFound(t *testing.T) {
	for _, power := range []float64{-0.2, 0, 0.1, 1} {
		rows := rowsOf(power)
		assert.InDelta(t, power, slope(rows, (*row).stages), 1e-9)
		assert.InDelta(t, math.Pow(64, math.Abs(power)), spread(rows, (*row).stages), 1e-9)
	}
}

// 1 million spans a second that cost 2 µs in stage one and 3 µs in stage two.
func TestPlanOf_LevelCosts_AreMultiplied(t *testing.T) {
	p := planOf(rowsOf(0), load{100_000, 10})
	assert.InDelta(t, 1, p.cores[agent], 1e-9)
	assert.InDelta(t, 2, p.cores[gateway], 1e-9)
	assert.InDelta(t, 3, p.cores[concluder], 1e-9)
	assert.False(t, p.fits)
	assert.Equal(t, 3, p.gateways, "two cores used to 70 %")
	assert.Equal(t, 16, p.partitions)
	assert.InDelta(t, 70e6, p.in, 1e-3)
	assert.InDelta(t, 70e6*3*86_400, p.disk, 1)
	assert.InDelta(t, 100_000<<20, p.memory, 1)
	// Each copy costs 4 cores: 12, of hosts with 8 that are used to 70 %.
	assert.Equal(t, 3, p.brokers)
}

// A job that is twice as large as the largest measured costs twice to the power as much, and never less.
func TestPlanOf_CostsGrow_AreExtrapolated(t *testing.T) {
	cost := func(power float64) float64 {
		rows := rowsOf(power)
		return planOf(rows, load{8192, 1}).cores[gateway] / 8192 * 1e9 / rows[2].cpu[gateway]
	}
	assert.InDelta(t, 2, cost(1), 1e-9)
	assert.InDelta(t, math.Sqrt2, cost(0.5), 1e-9)
	assert.InDelta(t, 1, cost(-0.5), 1e-9)
}

func TestCounters_PrometheusText_IsSummedByName(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# HELP otelcol_a_b x\notelcol_a_b_total{signal=\"traces 1\"} 3\notelcol_a_b_total{signal=\"logs\"} 4\notelcol_c 5\ngo_d 1\n"))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	c := &collector{meter: server.URL}
	got, err := c.counters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"a_b": 7, "c": 5}, got)
	require.EqualError(t, c.check(t.Context(), map[string]int64{"a_b": 8, "e": 0}), "check a_b of : got 7; want 8")
	server.Close()
	_, err = c.counters(t.Context())
	require.Error(t, err)
}

// What this process has used is what the kernel says of it in another way.
func TestUsedBy_ThisProcess_IsWhatItUsed(t *testing.T) {
	for began := processorTime(); processorTime()-began < 50*time.Millisecond; { //nolint:revive // uses the processor
	}
	got, err := usedBy([]process{{os.Getpid()}})
	require.NoError(t, err)
	assert.InDelta(t, processorTime().Seconds(), got[0].cpu.Seconds(), 0.05)
	assert.Greater(t, got[0].peak, int64(1<<20))
	_, err = usedBy([]process{{-1}})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFindings_LineThatIsBeingWritten_IsLeftForLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "findings.jsonl")
	all, err := findings(path)
	require.NoError(t, err)
	assert.Empty(t, all)
	require.NoError(t, os.WriteFile(path, []byte(`{"resourceLogs":[]}`+"\n"+`{"resource`), 0o600))
	_, err = findings(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("no JSON\n"), 0o600))
	_, err = findings(path)
	require.ErrorContains(t, err, "read findings")
}

func TestParse_BadFlags_SayWhatIsAccepted(t *testing.T) {
	for args, want := range map[string]string{
		"-ranks 12": `parse -ranks: got "12"; want multiples of 8 up to 32768`,
		"-steps 2":  "parse -steps: got 2; want at least 3",
		"more":      `parse flags: got argument "more"; want none`,
	} {
		_, err := parse(strings.Fields(args), &bytes.Buffer{})
		require.ErrorContains(t, err, want)
	}
	o, err := parse([]string{"-ranks", "512,64"}, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, []int{64, 512}, o.ranks)
	assert.Equal(t, aim/(64*opsOfRank), o.stepsOf(64))
	assert.Equal(t, leastSteps, o.stepsOf(16_384))
	assert.Equal(t, recording.PerNode, warmRanks)
}

func TestRender_OneSize_ShowsNoSlope(t *testing.T) {
	rows := rowsOf(0)
	var one, all bytes.Buffer
	render(&one, "experts", rows[:1])
	assert.NotContains(t, one.String(), "to the power")
	render(&all, "experts", rows)
	assert.Contains(t, all.String(), "stage two: largest over least 1.00, cost grows as ranks to the power of +0.000\n")
	assert.Contains(t, all.String(), "3.00: does not fit")
	assert.NotContains(t, all.String(), "NaN")
}
