// SPDX-License-Identifier: Apache-2.0

//go:build unix

package kineto

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipe under the name of a trace has no writer: opening it must not wait for one.
func TestParseFile_Pipe_IsRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank0.json")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	done := make(chan error, 1)
	go func() {
		_, err := ParseFile(t.Context(), path, DefaultOptions())
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorContains(t, err, "want a regular file")
	case <-time.After(10 * time.Second):
		t.Fatal("ParseFile still waits for a writer of the pipe")
	}
}
