// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	torchRanks = 2
	// agreeWithin is how far the two records of one run may lie apart.
	agreeWithin = 0.01
	// agreeTries is how often a run is made whose processes may have lost the core
	// between the places at which the two records look.
	agreeTries = 3
)

// torchKinds are the scopes that torch.profiler has a record of its own of.
var torchKinds = []string{"forward", "backward", "optimizer", "data_loading", "garbage_collection", "compile"}

// total is how often something was, and for how long altogether.
type total struct {
	Count int   `json:"count"`
	NS    int64 `json:"ns"`
}

// Scopes that the hooks record agree with what torch.profiler records of the same
// run: in count, and in time.
func TestTorchScopesAgreeWithItsProfiler(t *testing.T) {
	python, lockstep := torchPython(t), built(t, "lockstep")
	for try := 1; ; try++ {
		apart := compareRecords(t, python, lockstep)
		if apart == nil {
			return
		}
		t.Logf("run %d: %v", try, apart)
		require.Less(t, try, agreeTries, "%v", apart)
	}
}

// compareRecords makes one run, prints both records, and says where times are apart.
// Counts are never allowed to be.
func compareRecords(t *testing.T, python, lockstep string) (apart error) {
	t.Helper()
	rings, traces := ringDirectory(t), t.TempDir()
	ranks := startTorch(t, python, rings, torchRanks, map[string]string{"TRACES": traces},
		filepath.Join(repoRoot(t), "e2e", "testdata", "torch", "agreement.py"))
	theirs := make([]map[string]total, torchRanks)
	for rank, p := range ranks {
		require.Zero(t, p.wait(t, 5*time.Minute))
		theirs[rank] = profilerTotals(t, p.output.String())
	}
	ours := scopeTotals(t, lockstep, rings)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "rank\tkind\tscopes\tprofiler\tms\tms of the profiler\tapart\t")
	for rank := range torchRanks {
		for _, kind := range torchKinds {
			we, they := ours[rank][kind], theirs[rank][kind]
			part := float64(we.NS-they.NS) / float64(they.NS)
			fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%.3f\t%.3f\t%+.2f %%\t\n", rank, kind, we.Count, they.Count,
				float64(we.NS)/1e6, float64(they.NS)/1e6, 100*part)
			require.NotZero(t, they.Count, "%s: the profiler recorded none", kind)
			assert.Equal(t, they.Count, we.Count, "rank %d: count of %s", rank, kind)
			if math.Abs(part) > agreeWithin {
				apart = fmt.Errorf("compare %s of rank %d: got %d ns; want %d within %g", kind, rank, we.NS, they.NS, agreeWithin)
			}
		}
	}
	require.NoError(t, table.Flush())
	t.Logf("scopes of the hooks, and torch.profiler's own record:\n%s", text.String())
	return apart
}

// profilerTotals reads the line that agreement.py prints, which is the last with a
// brace.
func profilerTotals(t *testing.T, output string) (totals map[string]total) {
	t.Helper()
	at := strings.LastIndex(output, `{"forward"`)
	require.GreaterOrEqual(t, at, 0, output)
	require.NoError(t, json.NewDecoder(strings.NewReader(output[at:])).Decode(&totals))
	return totals
}

// record is a line of `lockstep rings --records`.
type record struct {
	Rank  int    `json:"rank"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Begin int64  `json:"begin_ns"`
	End   int64  `json:"end_ns"`
}

// scopeTotals sums the scopes of each rank that began within its scope "profiled".
func scopeTotals(t *testing.T, lockstep, rings string) []map[string]total {
	t.Helper()
	all := make([][]record, torchRanks)
	window := make([]record, torchRanks)
	for _, r := range ringRecords(t, lockstep, rings) {
		if r.Kind != "scope" {
			continue
		}
		if r.Name == "profiled" {
			window[r.Rank] = r
		}
		all[r.Rank] = append(all[r.Rank], r)
	}
	totals := make([]map[string]total, torchRanks)
	for rank := range totals {
		require.NotZero(t, window[rank].End, "rank %d recorded its window", rank)
		totals[rank] = map[string]total{}
		for _, r := range all[rank] {
			if r.Begin >= window[rank].Begin && r.Begin < window[rank].End {
				sum := totals[rank][r.Name]
				totals[rank][r.Name] = total{sum.Count + 1, sum.NS + r.End - r.Begin}
			}
		}
	}
	return totals
}

func ringRecords(t *testing.T, lockstep, rings string) (all []record) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), lockstep, "rings", "--records", rings).Output()
	require.NoError(t, err, "read rings")
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		all = append(all, r)
	}
	require.NoError(t, lines.Err())
	return all
}

// An ordinary training program, run through `python -m lockstep_scope`, one rank of
// which loads its data slowly: the finding names that rank, its host, and the
// loading. Without the fault nobody's host is slow.
func TestTorchJob(t *testing.T) {
	python := torchPython(t)
	train := filepath.Join(repoRoot(t), "demo", "torch", "train.py")
	t.Run("dataloader", func(t *testing.T) {
		c, ranks := watchTorch(t, python, train, "--steps", "0", "--fault", "dataloader", "--fault-rank", "1")
		eventually(t, 3*time.Minute, func() error {
			found, err := findingsIn(c.findings)
			for _, f := range found {
				if f["lockstep.finding.rank"] == "1" && f["lockstep.finding.class"] == "host" &&
					f["lockstep.finding.op"] == "data_loading" && f["lockstep.finding.cause"] == "dataloader" {
					return nil
				}
			}
			return fmt.Errorf("find rank 1, class host, in data_loading, cause dataloader: got %v, %w", found, err)
		}, append(ranks, c.process)...)
		for _, p := range ranks {
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		}
		for _, p := range ranks {
			assert.Zero(t, p.wait(t, time.Minute), "all stop at the same step")
			assert.Contains(t, p.output.String(), `"weights_identical": true`)
		}
	})
	// Ranks that share few cores do wait for each other; but for no data.
	t.Run("healthy", func(t *testing.T) {
		c, ranks := watchTorch(t, python, train, "--steps", "150")
		for _, p := range ranks {
			require.Zero(t, p.wait(t, 5*time.Minute))
		}
		require.Zero(t, c.terminate(t, stopLimit))
		found, err := findingsIn(c.findings)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		for _, f := range found {
			assert.NotEqual(t, "data_loading", f["lockstep.finding.op"], "a finding of a job without a fault: %v", f)
		}
	})
}

// watchTorch starts a collector, and a job that it watches.
func watchTorch(t *testing.T, python string, args ...string) (*collector, []*process) {
	t.Helper()
	rings := ringDirectory(t)
	c := startCollector(t, "standalone.yaml", map[string]string{
		"LOCKSTEP_DIR": rings, "LOCKSTEP_TRACES": t.TempDir(), "LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"),
		"LOCKSTEP_JAEGER_ENDPOINT": freePorts(t, 1)[0], // nobody: spans are not what is looked at
	})
	return c, startTorch(t, python, rings, torchRanks, nil, args...)
}

// startTorch starts a program on each rank through `python -m lockstep_scope`.
func startTorch(t *testing.T, python, rings string, ranks int, env map[string]string, args ...string) []*process {
	t.Helper()
	port := strings.TrimPrefix(freePorts(t, 1)[0], "127.0.0.1:")
	all := make([]*process, ranks)
	for rank := range all {
		of := map[string]string{
			"LOCKSTEP_DIR": rings, "LOCKSTEP_LIBRARY": built(t, "libnccl-profiler-lockstep.so"), "LOCKSTEP_JOB_ID": "torch",
			"PYTHONPATH": filepath.Join(repoRoot(t), "inject", "python"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
			"RANK": strconv.Itoa(rank), "LOCAL_RANK": strconv.Itoa(rank), "WORLD_SIZE": strconv.Itoa(ranks),
			"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
		}
		for name, value := range env {
			of[name] = value
		}
		all[rank] = start(t, of, python, append([]string{"-m", "lockstep_scope"}, args...)...)
	}
	return all
}

// torchPython is LOCKSTEP_TORCH_PYTHON, which `make e2e-torch` sets: PyTorch is
// gigabytes, so that other tests go without.
func torchPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("LOCKSTEP_TORCH_PYTHON")
	if python == "" {
		t.Skip("LOCKSTEP_TORCH_PYTHON is not set; `make e2e-torch` sets it")
	}
	return python
}
