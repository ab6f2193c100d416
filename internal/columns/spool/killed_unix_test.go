// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spool

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

const envDirectory = "LOCKSTEP_TEST_SPOOL"

// TestSpool_Killed_LeavesWholeFiles runs itself in another process, which writes files until it is killed.
func TestSpool_Killed_LeavesWholeFiles(t *testing.T) {
	if dir := os.Getenv(envDirectory); dir != "" {
		writeWithoutEnd(t, dir)
		return
	}
	kills := 5
	if tier.Full(t) {
		kills = 50
	}
	c := testConfig(t)
	reported := int64(0)
	for i := range kills {
		reported += killOne(t, c.Directory, i)
		written := int64(0)
		s, _ := opened(t, c) // the lock of a process ends with it
		for _, in := range files(t, c.Directory) {
			written += int64(len(in))
		}
		require.NoError(t, s.Close(begin))
		assert.GreaterOrEqual(t, written, reported, "what was reported as written is there")
	}
	assert.Positive(t, reported)
}

// killOne runs a writer, kills it, and returns how many operations it reported as written.
func killOne(t *testing.T, dir string, delay int) (reported int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSpool_Killed_LeavesWholeFiles$")
	cmd.Env = append(os.Environ(), envDirectory+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); {
		var more int64
		if _, err := fmt.Sscanf(lines.Text(), "written %d", &more); err != nil {
			continue
		}
		reported += more
		if n++; n == 3+delay%5 {
			time.Sleep(time.Duration(delay%7) * time.Millisecond) // within the next file
			require.NoError(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // it was killed
	return reported
}

func writeWithoutEnd(t *testing.T, dir string) {
	t.Helper()
	c := testConfig(t)
	c.Directory, c.MaxFileRows = dir, 100
	e := (&seen{}).events()
	e.Written = func(operations, _ int64) { fmt.Printf("written %d\n", operations) } //nolint:forbidigo // for the other process
	s, err := Open(c, e)
	require.NoError(t, err)
	for step := int64(0); ; step++ {
		require.NoError(t, s.Add(steps("job", step), time.Now()))
	}
}
