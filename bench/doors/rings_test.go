// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
)

func attackedRings(t *testing.T, mode os.FileMode) (c *collector, rings string) {
	t.Helper()
	program(t)
	cbuild.Make(t, "inject", "tests")
	dir := t.TempDir()
	rings = filepath.Join(dir, "rings")
	require.NoError(t, os.Mkdir(rings, 0o700))
	require.NoError(t, os.Chmod(rings, mode))
	c = attacked(t, dir, fmt.Sprintf(`
receivers:
  rank_events: {directory: '%s', poll_interval: 50ms}`, rings),
		"  pipelines: {traces: {receivers: [rank_events], processors: [memory_limiter], exporters: [file]}}")
	return c, rings
}

// ringOf runs a job of one rank that makes a ring and ends.
func ringOf(t *testing.T, rings, job string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository(t), "bin", "inject", "ring_events"), "20", "close")
	cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+rings, "RANK=0", "WORLD_SIZE=1", "LOCKSTEP_JOB_ID="+job, "LOCKSTEP_RING_LANES=4", "LOCKSTEP_RING_RECORDS=1024")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func ringsSurvive(c *collector, rings, attack string, tries int) {
	c.t.Helper()
	ringOf(c.t, rings, "good-job")
	c.receives("good-job")
	counted := "refused: " + c.reasons("receiver_rank_events_rings_refused")
	if ended := c.reasons("receiver_rank_events_rings_ended"); ended != "" {
		counted += "; ended: " + ended
	}
	c.survives("rings, two users", attack, tries, counted)
}

// TestRings_Neighbour: the directory is as /tmp, and another user fills it.
func TestRings_Neighbour(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("two users need root")
	}
	c, rings := attackedRings(t, os.ModeSticky|0o777)
	const tries = 3000
	model := filepath.Join(c.dir, "model")
	require.NoError(t, os.Mkdir(model, 0o700))
	ringOf(t, model, "foreign-job")
	found, err := filepath.Glob(filepath.Join(model, "*.ring"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	content, err := os.ReadFile(found[0])
	require.NoError(t, err)
	for i := range tries {
		path := filepath.Join(rings, fmt.Sprintf("%d-%d-%08x.ring", i, i, i))
		switch i % 30 {
		case 0:
			write(t, path, content) // a whole ring of a foreign user
		case 1:
			write(t, path, nil)
			require.NoError(t, os.Truncate(path, 1<<40))
		default:
			strange(t, path, i)
		}
		require.NoError(t, os.Lchown(path, 12345, 12345))
	}
	c.eventually("refusals", func() bool { return c.count("receiver_rank_events_rings_refused") >= tries })
	require.False(t, c.received("foreign-job"))
	ringsSurvive(c, rings, "pipes, links, devices, holes of 1 TiB and whole rings of another user in a directory that all may write", tries)
}

// TestRings_Hostile: a job writes what it likes into its own ring, and cuts it while it is read.
func TestRings_Hostile(t *testing.T) {
	c, rings := attackedRings(t, 0o700)
	model := filepath.Join(c.dir, "model")
	require.NoError(t, os.Mkdir(model, 0o700))
	ringOf(t, model, "model-job")
	found, err := filepath.Glob(filepath.Join(model, "*.ring"))
	require.NoError(t, err)
	content, err := os.ReadFile(found[0])
	require.NoError(t, err)
	const tries, at = 1000, 8
	for i := range tries {
		path := filepath.Join(rings, fmt.Sprintf("%d-%d-%08x.ring", i%at, i%at, i%at))
		replace(t, path, content)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		for range 200 {
			var word [8]byte
			for k := range word {
				word[k] = byte(rand.Uint32())
			}
			to := rand.Int64N(int64(len(content)) - 8)
			if i%3 == 0 {
				to = rand.Int64N(4096)
			}
			_, err = f.WriteAt(word[:], to&^7)
			require.NoError(t, err)
		}
		if i%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			require.NoError(t, f.Truncate(rand.Int64N(int64(len(content)))))
		}
		require.NoError(t, f.Close())
	}
	remains, err := filepath.Glob(filepath.Join(rings, "*.ring"))
	require.NoError(t, err)
	for _, path := range remains {
		require.True(t, strings.HasSuffix(path, ".ring"))
		require.NoError(t, os.Remove(path))
	}
	ringsSurvive(c, rings, "rings whose words change at random and that are cut while they are read", tries)
}
