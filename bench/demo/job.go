// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// job is one run of the workers, without a collector.
type job struct {
	bin    string // where worker and plugin are
	in     string // where to make the rings; a tmpfs, as in production
	ranks  int
	steps  int
	level  string // "": without our plugin
	empty  int    // else the mask of the plugin that does nothing; 0: none
	pace   bool
	poll   int  // pause of the profiler thread, µs; 0: the worker's default
	times  bool // keep the times of all steps
	clocks bool // measure the time in callbacks
}

// result is what a rank said at its end.
type result struct {
	Iteration struct {
		P50  float64 `json:"p50"`
		Mean float64 `json:"mean"`
	} `json:"iteration_ms"`
	Identical bool `json:"weights_identical"`
	steps     []stepTime
	cpu       time.Duration // user and system, of the whole process
}

// stepTime is one step of a rank, ns; start is MONOTONIC_RAW.
type stepTime struct{ start, took, callbacks uint64 }

// run runs the job to its end; beside is called with the directory of the rings
// while it runs, and ends when its context does.
func (j *job) run(ctx context.Context, beside func(ctx context.Context, rings string)) ([]result, error) {
	dir, err := os.MkdirTemp(j.in, "lockstep-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if beside != nil {
			beside(ctx, rings)
		}
	}()
	results, err := j.runRanks(ctx, dir)
	cancel()
	<-done
	return results, err
}

func (j *job) runRanks(ctx context.Context, dir string) ([]result, error) {
	cmds := make([]*exec.Cmd, j.ranks)
	outs := make([]bytes.Buffer, j.ranks)
	for i := range cmds {
		cmds[i] = j.command(ctx, dir, i)
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], os.Stderr
		if err := cmds[i].Start(); err != nil {
			return nil, fmt.Errorf("start rank %d: %w", i, err) // the context ends the others
		}
	}
	results := make([]result, j.ranks)
	var errs []error
	for i, cmd := range cmds {
		err := cmd.Wait()
		if err == nil {
			err = json.Unmarshal(outs[i].Bytes(), &results[i])
		}
		results[i].cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if err == nil && j.times {
			results[i].steps, err = readTimes(timesFile(dir, i))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("run rank %d: %w", i, err))
		}
	}
	return results, errors.Join(errs...)
}

func timesFile(dir string, rank int) string { return filepath.Join(dir, "times"+strconv.Itoa(rank)) }

func (j *job) command(ctx context.Context, dir string, rank int) *exec.Cmd {
	args := []string{"--meet", dir, "--rank", strconv.Itoa(rank), "--ranks", strconv.Itoa(j.ranks), "--steps", strconv.Itoa(j.steps)}
	if !j.pace {
		args = append(args, "--no-pace")
	}
	if j.poll != 0 {
		args = append(args, "--poll-us", strconv.Itoa(j.poll))
	}
	if !j.clocks {
		args = append(args, "--no-callback-times")
	}
	if j.times {
		args = append(args, "--times", timesFile(dir, rank))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(j.bin, "lockstep-demo-worker"), args...)
	cmd.Env = []string{
		"LOCKSTEP_DIR=" + filepath.Join(dir, "rings"), "RANK=" + strconv.Itoa(rank), "WORLD_SIZE=" + strconv.Itoa(j.ranks),
		"LOCKSTEP_RING_LANES=8", "LOCKSTEP_RING_RECORDS=4096", "LOCKSTEP_RING_SLOTS=1024",
	}
	if j.empty != 0 {
		cmd.Env = append(cmd.Env, "EMPTY_MASK="+strconv.Itoa(j.empty), "NCCL_PROFILER_PLUGIN="+filepath.Join(j.bin, "empty-profiler.so"))
	}
	if j.level != "" {
		cmd.Env = append(cmd.Env, "LOCKSTEP_LEVEL="+j.level, "NCCL_PROFILER_PLUGIN="+filepath.Join(j.bin, "libnccl-profiler-lockstep.so"))
	}
	return cmd
}

func readTimes(path string) (all []stepTime, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read times: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s stepTime
		if _, err := fmt.Sscan(lines.Text(), &s.start, &s.took, &s.callbacks); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}
