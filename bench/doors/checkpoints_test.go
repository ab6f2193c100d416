// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckptsim"
)

// save makes a checkpoint as a framework does.
func save(t *testing.T, name, dir string, step int64) {
	t.Helper()
	jobs := ckptsim.Jobs()
	i := slices.IndexFunc(jobs, func(j ckptsim.Job) bool { return j.Name == name })
	require.GreaterOrEqual(t, i, 0)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, jobs[i].Save(step, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
}

const framework = "megatron, torch_dist"

func TestCheckpoint(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, hostile string) (tries int, what string){
		"folders": manyFolders, "strange": strangeFiles, "damaged": damagedSaves, "deep": deepFolders,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			hostile, good := filepath.Join(dir, "hostile"), filepath.Join(dir, "good")
			require.NoError(t, os.Mkdir(hostile, 0o700))
			roots := ""
			for n := range ckptsim.Jobs() {
				roots += fmt.Sprintf(", {path: '%s/job%d', job_id: hostile}", hostile, n)
			}
			c := attacked(t, dir, fmt.Sprintf(`
receivers:
  checkpoint:
    poll_interval: 1s
    timeout: 20s
    roots: [{path: '%s', job_id: hostile}, {path: '%s', job_id: good}, {path: '%s/pipe', job_id: pipe}, {path: /proc/self/mem, job_id: memory}, {path: /proc, job_id: proc}%s]`, hostile, good, dir, roots),
				"  pipelines: {logs: {receivers: [checkpoint], processors: [memory_limiter], exporters: [file]}}")
			strange(t, filepath.Join(dir, "pipe"), 0)
			tries, what := attack(t, hostile)
			looks := c.count("receiver_checkpoint_looks")
			save(t, framework, good, 77)
			c.receives(`{"stringValue":"good"}`)
			c.eventually("looks that go on", func() bool { return c.count("receiver_checkpoint_looks") > looks+8 })
			counted := "looks: " + c.reasons("receiver_checkpoint_looks")
			if faults := c.reasons("receiver_checkpoint_faults"); faults != "" {
				counted += "; faults: " + faults
			}
			c.survives("checkpoint roots", what, tries, counted)
		})
	}
}

func manyFolders(t *testing.T, hostile string) (tries int, what string) {
	t.Helper()
	const folders = 200_000
	for i := range folders {
		require.NoError(t, os.Mkdir(filepath.Join(hostile, fmt.Sprintf("checkpoint-%d", i)), 0o700))
	}
	return folders, "200,000 folders named as saves; a pipe, /proc and /proc/self/mem as roots"
}

func deepFolders(t *testing.T, hostile string) (tries int, what string) {
	t.Helper()
	at, err := os.OpenRoot(hostile)
	require.NoError(t, err)
	const deep = 5000
	for range deep {
		require.NoError(t, at.Mkdir("checkpoint-1", 0o700))
		require.NoError(t, at.Symlink("../..", "loop"))
		below, err := at.OpenRoot("checkpoint-1")
		require.NoError(t, err)
		require.NoError(t, at.Close())
		at = below
	}
	require.NoError(t, at.Close())
	return deep, "folders 5,000 deep, each with a link back to its parent's parent"
}

func strangeFiles(t *testing.T, hostile string) (tries int, what string) {
	t.Helper()
	for n, job := range ckptsim.Jobs() {
		dir := filepath.Join(hostile, fmt.Sprintf("job%d", n))
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, job.Save(10, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			tries++
			if tries%10 == 4 { // a folder stays one
				return nil
			}
			require.NoError(t, os.Remove(path))
			strange(t, path, tries)
			return nil
		}))
		// Each is looked at as a save of the root, too.
		require.NoError(t, os.Symlink(dir, filepath.Join(hostile, fmt.Sprintf("checkpoint-%d", tries))))
	}
	require.NoError(t, os.Symlink("/", filepath.Join(hostile, "checkpoint-999999")))
	require.NoError(t, os.Mkdir(hostile+"/iter_\xff\xfe\n..0000001", 0o700))
	return tries, "saves of every framework, their files replaced by pipes, devices, sockets and links"
}

func damagedSaves(t *testing.T, hostile string) (tries int, what string) {
	t.Helper()
	for n, job := range ckptsim.Jobs() {
		dir := filepath.Join(hostile, fmt.Sprintf("job%d", n))
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, job.Save(10, nil).Make(t.Context(), dir, func(ckptsim.Op) {}))
	}
	for range 20 {
		require.NoError(t, filepath.WalkDir(hostile, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			tries++
			damage(t, path)
			return nil
		}))
		time.Sleep(300 * time.Millisecond) // a look each second
	}
	return tries, "files of every framework changed while they are read: bytes, length, holes of 1 TiB, 1 MiB of brackets"
}

func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	size := max(info.Size(), 1)
	switch rand.IntN(40) {
	case 0:
		require.NoError(t, f.Truncate(rand.Int64N(size)))
	case 1:
		require.NoError(t, f.Truncate(1<<40))
	case 2:
		_, err = f.WriteAt([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f"), 0) // the length of a header
		require.NoError(t, err)
	case 3:
		if strings.HasSuffix(path, ".json") {
			_, err = f.WriteAt([]byte(strings.Repeat("[", 1<<20)), 0)
			require.NoError(t, err)
		}
	default:
		for range 8 {
			_, err = f.WriteAt([]byte{byte(rand.Uint32())}, rand.Int64N(min(size, 1<<20)))
			require.NoError(t, err)
		}
	}
}
