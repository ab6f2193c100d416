// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fleet

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// program is a stand-in for one of NVIDIA's.
func program(t *testing.T, script string) Command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	testdata.Program(t, path, "#!/bin/sh\n"+script+"\n")
	return Command{Path: path, Timeout: time.Minute}
}

func TestSMIRuns(t *testing.T) {
	path, err := filepath.Abs("testdata/smi.xml")
	require.NoError(t, err)
	r := SMI(t.Context(), program(t, `[ "$*" = "-q -x" ] && cat `+path))
	assert.Empty(t, r.Problems)
	assert.Equal(t, "12.4", versions(r)["cuda"])
}

// A node without GPUs has no nvidia-smi: that is not known, and no fault.
func TestNoSuchProgram(t *testing.T) {
	for _, path := range []string{"lockstep-no-such-program", filepath.Join(t.TempDir(), "none")} {
		c := Command{Path: path, Timeout: time.Minute}
		assert.Equal(t, &Read{}, SMI(t.Context(), c))
		assert.Equal(t, &Read{}, FabricManager(t.Context(), c))
	}
}

// What nvidia-smi says where libraries were updated below a driver that is loaded.
func TestSMITellsOfAMismatch(t *testing.T) {
	c := program(t, `echo "Failed to initialize NVML: Driver/library version mismatch"; echo "NVML library version: 580.126"; exit 18`)
	r := SMI(t.Context(), c)
	assert.Empty(t, r.Problems)
	require.Equal(t, []string{model.FactDriverMismatch}, kinds(r.Mismatches))
	assert.Equal(t, "run "+c.Path+`: exit status 18: "Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.126"`, r.Mismatches[0].What)
}

func TestProgramsThatFail(t *testing.T) {
	t.Parallel() // it waits for pipes
	c := program(t, `echo "NVIDIA-SMI has failed" >&2; exit 9`)
	assert.Equal(t, []string{"run " + c.Path + `: exit status 9: "NVIDIA-SMI has failed"`}, SMI(t.Context(), c).Problems)
	c = program(t, "yes")
	assert.Equal(t, []string{"run " + c.Path + ": got more than 4096 bytes; want at most that"}, FabricManager(t.Context(), c).Problems)
	c = program(t, "echo hello")
	assert.Equal(t, []string{"read version of " + c.Path + `: got "hello\n"; want a version`}, FabricManager(t.Context(), c).Problems)
	assert.Equal(t, []string{`read nvidia-smi -q -x: byte 6: top: got the end of the answer; want the end of nvidia_smi_log`}, SMI(t.Context(), c).Problems)
}

// A program that hangs is ended, and what it started does not hold us up.
func TestAProgramThatHangs(t *testing.T) {
	t.Parallel() // it waits for pipes
	c := program(t, "sleep 600 & sleep 600")
	c.Timeout = 200 * time.Millisecond
	began := time.Now()
	assert.Equal(t, []string{"run " + c.Path + ": got no end in 200ms: context deadline exceeded"}, SMI(t.Context(), c).Problems)
	assert.Less(t, time.Since(began), 30*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Timeout = time.Minute
	assert.Len(t, SMI(ctx, c).Problems, 1)
}

func TestFabricManager(t *testing.T) {
	for said, want := range map[string]string{
		"Fabric Manager version is : 550.90.07": "550.90.07",
		"nv-fabricmanager version 535.54.03":    "535.54.03",
	} {
		assert.Equal(t, map[string]string{"fabric_manager": want}, versions(FabricManager(t.Context(), program(t, "echo '"+said+"'"))))
	}
}
