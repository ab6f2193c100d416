// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bits are NCCL's; each row asks for what those before it do.
func TestDemoWitnesses(t *testing.T) {
	parts := &demoParts{plugin: "/bin/p.so", cupti: "/bin/c.so"}
	for witness, want := range map[string]struct {
		env   []string
		marks bool
	}{
		"host-events": {[]string{"LOCKSTEP_EVENT_MASK=7"}, false},
		"kernels":     {[]string{"LOCKSTEP_EVENT_MASK=71"}, false},
		"proxy":       {[]string{"LOCKSTEP_EVENT_MASK=95"}, false},
		"scopes":      {nil, true},
		"cupti":       {[]string{"CUDA_INJECTION64_PATH=/bin/p.so", "LOCKSTEP_CUPTI=/bin/c.so"}, true},
	} {
		o := &demoOptions{ranks: 2, fault: "none", witness: witness, level: "collectives"}
		more, err := o.jobEnv(parts)
		require.NoError(t, err)
		env := append(o.workerEnv(1, "/d", parts), more...)
		told := slices.DeleteFunc(slices.Clone(env), func(e string) bool {
			return !strings.HasPrefix(e, "LOCKSTEP_EVENT_MASK") && !strings.Contains(e, "CU")
		})
		assert.Equal(t, want.env, append([]string(nil), told...), witness)
		assert.Contains(t, env, "NCCL_PROFILER_PLUGIN=/bin/p.so", witness)
		assert.Equal(t, !want.marks, slices.Contains(o.workerArgs(1, "/d"), "--no-markers"), witness)
	}
	assert.Len(t, demoWitnesses, 5)
}

func TestDemoScreenSaysWhatIsSeen(t *testing.T) {
	for _, witness := range demoWitnesses {
		s, out := screenFor(&demoOptions{ranks: 2, fault: "none", witness: witness})
		s.begin()
		assert.Equal(t, witness != witnessScopes, strings.Contains(words(out.String()), " seen"), out.String())
	}
}

// The stand-in for CUPTI is asked for by the row that has it alone.
func TestDemoSaysThatTheStandInIsNotBuilt(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("LOCKSTEP_BIN", bin)
	for _, file := range []string{demoWorkerFile, demoPluginFile} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, file), nil, 0o600))
	}
	status, _, stderr := call("demo", "--witness", "cupti")
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "find lockstep-demo-cupti.so: got none in "+bin)
	_, err := (&demoOptions{witness: "proxy"}).findParts()
	assert.NoError(t, err)
}

// All ranks save checkpoints, or one that does would be the slow one.
func TestDemoCheckpointsAreOfAllRanks(t *testing.T) {
	for _, fault := range demoFaults {
		o := &demoOptions{ranks: 2, rank: 1, fault: fault}
		assert.Equal(t, fault == "checkpoint", slices.Contains(o.workerArgs(0, "/d"), "--checkpoint-every"), fault)
	}
}
