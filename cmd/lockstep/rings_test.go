// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// holdRing runs a process that holds a ring, until the function that is
// returned kills it.
func holdRing(t *testing.T, dir string, more ...string) (kill func()) {
	t.Helper()
	cbuild.Make(t, "inject", "tests")
	cmd := exec.Command(filepath.Join(testdata.Root(t), "bin", "inject", "ring_holder"), more...)
	cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+dir, "LOCKSTEP_RING_RECORDS=64", "LOCKSTEP_RING_LANES=3",
		"RANK=2", "WORLD_SIZE=4", "LOCKSTEP_JOB_ID=llama", "LOCKSTEP_JOB_NAME=pretraining")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = stdin.Close()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return kill
}

func TestRingsShowWhatIsInFlight(t *testing.T) {
	dir := t.TempDir()
	kill := holdRing(t, dir)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitNothing, Main([]string{"rings", dir}, &stdout, &stderr), "%s", &stderr)
	for _, want := range []string{
		"rank 2 of 4, job llama (pretraining)", "live, last heartbeat", "2 records written on 1 lanes of 3, 1 taken\n",
		"AllReduce  41 ", "0000000000000abc world  1048576  started", "waits for the peer to be ready, peer 3",
		"; receiving: waits for the peer or the wire, peer 1, for ",
	} {
		assert.Contains(t, stdout.String(), want)
	}
	assert.Less(t, strings.Index(stdout.String(), "AllReduce  41 "), strings.Index(stdout.String(), "AllReduce  42 "), "the blocking one first")

	kill()
	stdout.Reset()
	require.Equal(t, exitNothing, Main([]string{"rings", dir}, &stdout, &stderr), "%s", &stderr)
	assert.Regexp(t, "no lock, but a heartbeat .* ago: alive|the process died", stdout.String(), "a death shows after some seconds of silence")
	assert.Contains(t, stdout.String(), "AllReduce  41 ", "what a killed process had in flight is still there")
}

func TestRingsPrintRecords(t *testing.T) {
	dir := t.TempDir()
	holdRing(t, dir)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitNothing, Main([]string{"rings", "--records", dir}, &stdout, &stderr), "%s", &stderr)
	var kinds, names []string
	for line := range strings.Lines(stdout.String()) {
		var r ringRecord
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		assert.LessOrEqual(t, r.Begin, r.End)
		kinds, names = append(kinds, r.Kind), append(names, r.Name)
	}
	assert.Equal(t, []string{"step", "scope"}, kinds)
	assert.Equal(t, []string{"", "forward"}, names)
	assert.Regexp(t, `"begin_ns":\d+,"end_ns":\d+,"detail":{"step":7,"thread":\d+}}`, stdout.String())
	assert.Regexp(t, `"name":"forward","detail":{"step":7,"thread":\d+,"depth":0,"phase":"train"}}`, stdout.String())

	stdout.Reset()
	require.Equal(t, exitNothing, Main([]string{"rings", "--records", "--last", "1ns", dir}, &stdout, &stderr))
	assert.Empty(t, stdout.String())
}

func TestRingsAskForALevel(t *testing.T) {
	dir := t.TempDir()
	holdRing(t, dir)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitNothing, Main([]string{"rings", "--level", "all", dir}, &stdout, &stderr), "%s", &stderr)
	assert.Contains(t, stdout.String(), "records level collectives (asked for all)")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		stdout.Reset()
		require.Equal(c, exitNothing, Main([]string{"rings", dir}, &stdout, &stderr))
		assert.Contains(c, stdout.String(), "records level all,", "the process takes it up within a second")
	}, 10*time.Second, 200*time.Millisecond)
}

func TestRingsRefuseWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "1-2-00000000.ring")
	require.NoError(t, os.WriteFile(fake, bytes.Repeat([]byte{7}, 8192), 0o600))
	for _, tc := range []struct{ args, want string }{
		{dir, fake},
		{filepath.Join(dir, "absent"), "absent"},
		{t.TempDir(), "no ring in"},
		{"--last=-1s " + dir, "check --last: got -1s; want 0 or more"},
		{"--last=1s " + dir, "check --last: got 1s without --records"},
		{"--json --records " + dir, "check --json: got it with --records"},
		{"--level=most " + dir, `check --level: got "most"; want default, summary, collectives or all`},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUnusable, Main(append([]string{"rings"}, strings.Fields(tc.args)...), &stdout, &stderr), tc.args)
		assert.Contains(t, stderr.String(), tc.want)
		assert.Empty(t, stdout.String())
	}
}

// Where threads have no lane of their own, nothing is shown of them, and that is said.
func TestRingsSayWhoHasNoLane(t *testing.T) {
	dir := t.TempDir()
	holdRing(t, dir, "crowd")
	said := ringsSay(t, dir)
	assert.Contains(t, said, "lanes of 3, 2 taken\n")
	assert.Contains(t, said, "  all 2 lanes of threads are taken, the main thread has none; "+
		"at least 3 threads on the shared lane: their scopes are not shown (LOCKSTEP_RING_LANES)\n")
	var o ringOverview
	require.NoError(t, json.Unmarshal([]byte(ringsSay(t, "--json", dir)), &o))
	assert.Equal(t, []any{2, 2, 3, "pretraining"}, []any{o.Lanes, o.LanesTaken, o.Sharing, o.JobName})
}

func TestRingsSayWhetherLanesAreLeft(t *testing.T) {
	for want, l := range map[string]ringLanes{
		"": {own: 3, taken: 2},
		"all 3 lanes of threads are taken; a further thread is on the shared lane, and its scopes are not shown (LOCKSTEP_RING_LANES)":                      {own: 3, taken: 3, main: true},
		"no thread has a lane of its own, the main thread has none; at least 1 thread on the shared lane: their scopes are not shown (LOCKSTEP_RING_LANES)": {sharing: 1},
	} {
		assert.Equal(t, want, l.crowded())
	}
}

func TestRingsNameTheJob(t *testing.T) {
	for want, h := range map[string]ring.Header{
		"":                  {},
		"job 7":             {JobID: "7", JobName: "7"},
		"job of name llama": {JobName: "llama"},
		"job 7 (llama)":     {JobID: "7", JobName: "llama"},
	} {
		assert.Equal(t, want, jobWords(&h))
	}
}

// One style of keys for all kinds, and no codes of the ring's own.
func TestRingRecordsHaveOneStyleOfKeys(t *testing.T) {
	details := []any{
		opDetail{Waits: &waitDetail{}},
		stepDetail{},
		detailOfScope(&ring.Scope{InStep: true}), detailOfProxyStep(&ring.ProxyStep{InStep: true}),
		kernelDetail{LaunchClock: 1, Launch: 1, Bound: 1, GraphID: 1, Bytes: 1},
		detailOfClock(&ring.Clock{}), detailOfLink(&ring.Link{}),
		ringOverview{Scopes: []ringScope{{}}, Open: []ringOpen{{}}},
		detailOfKernelChannel(&ring.KernelChannel{InStep: true}), detailOfAPI(&ring.API{InStep: true}), detailOfNet(&ring.Net{}),
	}
	for _, d := range details {
		text, err := json.Marshal(ringRecord{Detail: d})
		require.NoError(t, err)
		assert.NotRegexp(t, `"[^"]*[A-Z][^"]*":`, string(text))
	}
	assert.Nil(t, detailOfScope(&ring.Scope{Step: 3}).Step, "outside of any step")
	assert.Nil(t, detailOfLink(&ring.Link{Step: -1}).Step, "outside of any step")
}
