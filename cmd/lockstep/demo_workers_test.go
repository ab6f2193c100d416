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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// demoWorker builds the worker; the profiler is none.
func demoWorker(t *testing.T) demoParts {
	t.Helper()
	needsDemo(t)
	cbuild.Make(t, "demo")
	return demoParts{worker: filepath.Join(testdata.Root(t), "bin", demoWorkerFile), plugin: "none"}
}

func startJob(t *testing.T, o *demoOptions) (job *demoJob, stderr *bytes.Buffer) {
	t.Helper()
	dir, err := makeDemoDir(t.TempDir())
	require.NoError(t, err)
	stderr = &bytes.Buffer{}
	job, err = startDemoJob(o, demoWorker(t), dir, stderr)
	require.NoError(t, err)
	return job, stderr
}

func collect(job *demoJob) (done []demoLine, steps int) {
	for l := range job.lines {
		if l.Done {
			done = append(done, l)
		} else {
			steps++
		}
	}
	return done, steps
}

func TestDemoJobEndsByItself(t *testing.T) {
	job, stderr := startJob(t, &demoOptions{ranks: 3, steps: 8, fault: "compute", rank: 1, level: "all"})
	done, steps := collect(job)
	require.NoError(t, job.err, stderr)
	require.Len(t, done, 3)
	assert.Positive(t, steps, "rank 0 says how it goes")
	for i := range done {
		assert.True(t, done[i].Identical)
		assert.Equal(t, int64(8), done[i].Steps)
		assert.Greater(t, done[i].times().P50, 55.0, "a slow rank makes all slow")
	}
}

func TestDemoJobStops(t *testing.T) {
	job, stderr := startJob(t, &demoOptions{ranks: 2, fault: "none", level: "summary"})
	<-job.lines
	defer job.stop().Stop()
	done, _ := collect(job)
	require.NoError(t, job.err, stderr)
	assert.Len(t, done, 2)
}

// A job that gets a signal while its ranks look for each other ends, and blames no rank.
func TestDemoJobStopsBeforeItsFirstStep(t *testing.T) {
	for wait := range 6 {
		job, stderr := startJob(t, &demoOptions{ranks: 4, fault: "none", level: "summary"})
		time.Sleep(time.Duration(4*wait) * time.Millisecond)
		timer := job.stop()
		collect(job)
		timer.Stop()
		require.NoError(t, job.err, stderr)
		assert.NotContains(t, stderr.String(), " s\n", "no rank waited for so long")
	}
}

// A rank that has closed its output has answered, however long its process takes to end.
func TestDemoJobThatEndsSlowly(t *testing.T) {
	dir, err := makeDemoDir(t.TempDir())
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "worker")
	script := "#!/bin/sh\ntrap 'exec >&- 2>&-; exec sleep 60' TERM\necho '{}'\nwhile :; do sleep 0.02; done\n"
	testdata.Program(t, program, script)
	job, err := startDemoJob(&demoOptions{ranks: 1, fault: "none"}, demoParts{worker: program, plugin: "none"}, dir, &bytes.Buffer{})
	require.NoError(t, err)
	<-job.lines // it handles signals
	job.grace = time.Second
	defer job.stop().Stop()
	collect(job)
	require.EqualError(t, job.err, "end worker of rank 0: its output ended, and it did not within 1s; killed")
}

func TestDemoJobFailsAsAWhole(t *testing.T) {
	job, stderr := startJob(t, &demoOptions{ranks: 3, fault: "none", level: "summary"})
	<-job.lines
	require.NoError(t, job.cmds[1].Process.Kill())
	done, _ := collect(job)
	assert.Empty(t, done)
	require.ErrorContains(t, job.err, "run worker of rank 1: signal: killed")
	assert.Contains(t, stderr.String(), "is gone")
}

func TestDemoJobStartsWhollyOrNot(t *testing.T) {
	dir, err := makeDemoDir(t.TempDir())
	require.NoError(t, err)
	_, err = startDemoJob(&demoOptions{ranks: 2}, demoParts{worker: filepath.Join(dir, "absent")}, dir, os.Stderr)
	assert.ErrorContains(t, err, "start worker of rank 0")
}

// Whoever kills this process with a signal that cannot be caught leaves neither
// workers nor files behind.
func TestDemoJobDoesNotOutliveItsParent(t *testing.T) {
	if in := os.Getenv("LOCKSTEP_TEST_DEMO"); in != "" {
		beAParent(in)
		return
	}
	in := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoJobDoesNotOutliveItsParent$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_DEMO="+in, "LOCKSTEP_TEST_WORKER="+demoWorker(t).worker)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	for _, text := range strings.Fields(line) {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		assert.Eventually(t, func() bool { return isGone(pid) }, 10*time.Second, 20*time.Millisecond, "worker %d", pid)
	}
	left, err := os.ReadDir(in)
	require.NoError(t, err)
	assert.Empty(t, left, "the directory of the rings")
}

// isGone reports whether a process has ended; who waits for it is not ours to see.
func isGone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

func beAParent(in string) {
	dir, err := makeDemoDir(in)
	if err != nil {
		panic(err)
	}
	parts := demoParts{worker: os.Getenv("LOCKSTEP_TEST_WORKER"), plugin: "none"}
	job, err := startDemoJob(&demoOptions{ranks: 2, fault: "none", level: "all"}, parts, dir, os.Stderr)
	if err != nil {
		panic(err)
	}
	<-job.lines
	fmt.Println(job.cmds[0].Process.Pid, job.cmds[1].Process.Pid)
	for range job.lines {
	}
}

// Signals from the terminal reach workers through us alone.
func TestDemoWorkersHaveTheirOwnGroup(t *testing.T) {
	job, _ := startJob(t, &demoOptions{ranks: 2, fault: "none", level: "summary"})
	<-job.lines
	for _, cmd := range job.cmds {
		group, err := syscall.Getpgid(cmd.Process.Pid)
		require.NoError(t, err)
		assert.Equal(t, cmd.Process.Pid, group)
	}
	defer job.stop().Stop()
	collect(job)
}
