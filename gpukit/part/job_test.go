// SPDX-License-Identifier: Apache-2.0

package part

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
)

// TestWithRoom_AnyRoom_RunsTheProgram holds with root and without: only the room differs.
func TestWithRoom_AnyRoom_RunsTheProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	dir, err := filepath.Abs("..")
	require.NoError(t, err)
	k := kit.New(dir, t.TempDir(), t.TempDir())
	program := filepath.Join(t.TempDir(), "work.py")
	require.NoError(t, os.WriteFile(program, []byte("import sys\nprint(sys.argv[1:])\nsys.exit(3)\n"), 0o600))
	c := withRoom(k, kit.Command{Path: python, Args: []string{program, "a b", "--world"}})
	for _, least := range []string{"0", "999999999"} {
		c.Args[1] = least
		r, err := k.Run(t.Context(), c)
		require.ErrorContains(t, err, "run work.py: exit status 3")
		assert.Equal(t, "['a b', '--world']\n", r.Stdout)
		if least != "0" {
			assert.Contains(t, r.Stderr, "room.py: ")
		} else {
			assert.Empty(t, r.Stderr)
		}
	}
}
