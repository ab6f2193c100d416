// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

func TestRingsShowTheirWitnesses(t *testing.T) {
	dir := t.TempDir()
	kill := holdRing(t, dir, "witness")
	said := ringsSay(t, dir)
	assert.Contains(t, said, "  fed by NCCL v7, scopes, CUPTI; CUPTI was left to another client, so that no kernels are recorded (its result 39)\n")
	assert.Regexp(t, `(?m)^  the main thread is in data_loading for (1\.[5-9]|[2-9]|\d\d).*\n  thread 4711 is in prefetch for `, said, "the longest first")
	kill()
	assert.Regexp(t, `(?m)^  the main thread is in data_loading for \d`, ringsSay(t, dir), "where a killed process was is still there")
}

func TestRingsWithoutWitnessesSayNothingOfThem(t *testing.T) {
	dir := t.TempDir()
	holdRing(t, dir)
	said := ringsSay(t, dir)
	assert.NotContains(t, said, "CUPTI")
	assert.NotContains(t, said, "thread")
}

func TestRingsPrintKernelsLinksAndClocks(t *testing.T) {
	dir := t.TempDir()
	holdRing(t, dir, "witness")
	lines := map[string]string{}
	for line := range strings.Lines(ringsSay(t, "--records", dir)) {
		var r ringRecord
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		lines[r.Kind] = line
		if r.Kind == "kernel" {
			assert.Equal(t, "gemm", r.Name)
			assert.Equal(t, uint64(3000), r.End-r.Begin)
			var d kernelDetail
			text, err := json.Marshal(r.Detail)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &d))
			assert.Equal(t, r.Begin+uint64(24*time.Hour), d.StartClock, "its own clock is a day ahead")
			assert.Equal(t, r.Begin-2000, d.Launch)
			assert.Equal(t, []any{uint32(7), uint16(1), uint32(42), [3]uint32{8, 1, 1}, true}, []any{d.Stream, d.Device, d.Correlation, d.Grid, d.Graph})
		}
	}
	assert.Contains(t, lines, "kernel")
	assert.Regexp(t, `"detail":{"cupti_clock":\d+,"realtime_ns":\d+,"width_ns":100,"source":1}}`, lines["clock"])
	assert.Contains(t, lines["link"], `"detail":{"step":7,"trace":"000102030405060708090a0b0c0d0e0f","span":"1011121314151617","thread":77}}`)
}

func TestKernelsWithoutAClock(t *testing.T) {
	begin, end, d := detailOfKernel(&ring.Kernel{Start: 5, End: 9}, &gpuclock.Pairs{})
	assert.Equal(t, []uint64{0, 0, 5, 9, 0}, []uint64{begin, end, d.StartClock, d.EndClock, d.Bound})
}

func TestRingsAsJSON(t *testing.T) {
	dir := t.TempDir()
	holdRing(t, dir, "witness")
	var o ringOverview
	require.NoError(t, json.Unmarshal([]byte(ringsSay(t, "--json", dir)), &o))
	assert.Equal(t, []any{int32(2), int32(4), "llama", "yielded", uint32(39), "collectives"}, []any{*o.Rank, *o.WorldSize, o.Job, o.CUPTI, o.CUPTIResult, o.Level})
	assert.Equal(t, []string{"NCCL v7", "scopes", "CUPTI"}, o.Witnesses)
	assert.Contains(t, o.Life, "live, ")
	require.Len(t, o.Scopes, 2)
	s := o.Scopes[0]
	assert.Equal(t, []any{"data_loading", "train", uint16(1), o.PID}, []any{s.Name, s.Phase, s.Depth, s.Thread})
	assert.GreaterOrEqual(t, s.For, uint64(1500*time.Millisecond))
	require.Len(t, o.Open, 2)
	assert.Equal(t, []any{"AllReduce", uint64(41), "started"}, []any{o.Open[0].Name, o.Open[0].Op.Seq, o.Open[0].State})
}
