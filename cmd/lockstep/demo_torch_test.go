// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// interpreter is a program that takes the place of Python.
func interpreter(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	testdata.Program(t, path, "#!/bin/sh\n"+script)
	return path
}

func TestDemoWrongUsageWithTorch(t *testing.T) {
	for args, want := range map[string]string{
		"--torch --fault link":      `check --fault: got "link"; want none, compute, compile, dataloader, gc, checkpoint`,
		"--torch --witness kernels": `check --witness: got "kernels" with --torch; want scopes`,
		"--torch --fault-from 3":    "check --fault-from: got 3 with --torch",
		"--torch --no-pace":         "check --no-pace: got it with --torch",
		"--torch python3":           "unknown command",
	} {
		status, _, stderr := call(append([]string{"demo"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUnusable, status, args)
		assert.Contains(t, stderr, want, args)
	}
}

// Before anything starts, an interpreter without PyTorch is refused.
func TestDemoWantsPyTorch(t *testing.T) {
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, trainerFile)), 0o700))
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, demoPluginFile), nil, 0o600))
	t.Setenv("LOCKSTEP_BIN", bin)
	t.Chdir(root)

	none := interpreter(t, `echo no`)
	_, _, stderr := call("demo", "--torch="+none)
	assert.Contains(t, stderr, "find demo/torch/train.py: got none in "+root)
	require.NoError(t, os.WriteFile(filepath.Join(root, trainerFile), nil, 0o600))

	for python, want := range map[string]string{
		none:                            "find PyTorch: got none of " + none,
		interpreter(t, `exit 3`):        "exit status 3",
		filepath.Join(root, "nonesuch"): "no such file",
	} {
		status, stdout, stderr := call("demo", "--torch="+python)
		assert.Equal(t, exitFailed, status)
		assert.Contains(t, stderr, want)
		assert.Contains(t, stderr, "`make run-torch` in the source tree makes one in .venv, or name one with --torch=PYTHON")
		assert.Empty(t, stdout, "nothing has begun")
	}

	o := demoOptions{torch: interpreter(t, `echo yes`)}
	p, err := o.findTorch(bin)
	require.NoError(t, err)
	assert.Equal(t, torchParts{o.torch, filepath.Join(root, trainerFile), filepath.Join(root, packagesDir)}, p)
}

// Without a path the interpreter is the project's own, where there is one.
func TestDemoChoosesAnInterpreter(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, trainerFile)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, trainerFile), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, ownPython)), 0o700))
	python := filepath.Join(root, ownPython)
	require.NoError(t, os.Rename(interpreter(t, "echo yes"), python))
	p, err := (&demoOptions{torch: anyPython}).findTorch(filepath.Join(root, "bin"))
	require.NoError(t, err)
	assert.Equal(t, python, p.python)
}

// The ranks are processes like the C workers: what they print is read, and what
// they are told is the job's.
func TestDemoTorchJob(t *testing.T) {
	dir, err := makeDemoDir(t.TempDir())
	require.NoError(t, err)
	t.Setenv("PYTHONPATH", "/more")
	python := interpreter(t, `echo "$RANK of $WORLD_SIZE $LOCAL_RANK|$@|$MASTER_ADDR:$MASTER_PORT|$PYTHONPATH|$LOCKSTEP_LIBRARY" >&2
echo '{"step":0,"loss":2,"iteration_ms":9.5}'
echo '{"done":true,"steps":7,"weights_identical":true,"iteration_ms":{"p50":10}}'
`)
	parts := demoParts{plugin: "/p.so", torch: torchParts{python, "/train.py", "/packages"}}
	var stderr bytes.Buffer
	job, err := startDemoJob(&demoOptions{torch: "x", ranks: 2, rank: 1, fault: "gc", steps: 7}, parts, dir, &stderr)
	require.NoError(t, err)
	done, steps := collect(job)
	require.NoError(t, job.err)
	assert.Len(t, done, 2)
	assert.Equal(t, 2, steps)
	var port string
	for rank, progress := range []string{" --progress", ""} {
		r := strconv.Itoa(rank)
		want := r + " of 2 " + r + "|-m lockstep_scope /train.py --steps 7 --fault gc --fault-rank 1" + progress + "|127.0.0.1:"
		_, rest, ok := strings.Cut(stderr.String(), want)
		require.True(t, ok, stderr.String())
		line, _, _ := strings.Cut(rest, "\n")
		at, paths, _ := strings.Cut(line, "|")
		assert.Equal(t, "/packages:/more|/p.so", paths)
		if port == "" {
			port = at
		}
		assert.Equal(t, port, at, "they meet")
	}
}

// PyTorch takes seconds to load, in which a signal ends it: that is no failure of a
// job that was called off, and one of any other.
func TestDemoTorchJobIsCalledOff(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		stop   bool
		want   string
	}{
		"while it loads":       {"echo up >&2; exec sleep 600", true, ""},
		"a rank had begun":     {`echo up >&2; echo '{"step":0}'; exec sleep 600`, true, "signal: terminated"},
		"nobody called it off": {"echo up >&2; kill $$; sleep 600", false, "signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := makeDemoDir(t.TempDir())
			require.NoError(t, err)
			up, w, err := os.Pipe()
			require.NoError(t, err)
			defer up.Close()
			parts := demoParts{torch: torchParts{python: interpreter(t, tc.script)}}
			job, err := startDemoJob(&demoOptions{torch: "x", ranks: 1, fault: "none"}, parts, dir, w)
			require.NoError(t, err)
			_, err = bufio.NewReader(up).ReadString('\n')
			require.NoError(t, err)
			if tc.want != "" && tc.stop {
				<-job.lines
			}
			if tc.stop {
				defer job.stop().Stop()
			}
			collect(job)
			require.NoError(t, w.Close())
			if tc.want == "" {
				assert.NoError(t, job.err)
			} else {
				assert.ErrorContains(t, job.err, tc.want)
			}
		})
	}
}

// Who kills the command leaves nothing behind, though the ranks know of nothing.
func TestDemoJanitorOutlivesUs(t *testing.T) {
	if in := os.Getenv("LOCKSTEP_TEST_JANITOR"); in != "" {
		if _, err := startJanitor(in); err != nil {
			panic(err)
		}
		fmt.Println("started")
		select {}
	}
	in := filepath.Join(t.TempDir(), "-rf $HOME")
	require.NoError(t, os.MkdirAll(filepath.Join(in, "rings"), 0o700))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoJanitorOutlivesUs$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_JANITOR="+in)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	assert.DirExists(t, in)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	assert.Eventually(t, func() bool {
		_, err := os.Stat(in)
		return os.IsNotExist(err)
	}, 20*time.Second, 20*time.Millisecond)
}

func TestDemoJanitorEnds(t *testing.T) {
	in := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.Mkdir(in, 0o700))
	j, err := startJanitor(in)
	require.NoError(t, err)
	j.end()
	assert.NoDirExists(t, in)
}

func TestDemoScreenWithTorch(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 4, fault: "gc", rank: 3, torch: "x"})
	s.begin()
	assert.Contains(t, words(out.String()), "4 ranks train a small model with PyTorch on this machine; rank 3 collects its garbage in every step.")
	for _, f := range torchFaults {
		assert.NotEmpty(t, torchFaultTold[f], f)
	}
	for _, f := range demoFaults {
		assert.NotEmpty(t, faultTold[f], f)
	}
}
