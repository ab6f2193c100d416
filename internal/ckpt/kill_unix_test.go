// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ckpt_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// childEnv tells a child what to do: "folder|job|operations".
const childEnv = "LOCKSTEP_CKPT_CHILD"

const (
	keptSaves     = 2
	savesOfAChild = 5
	betweenSaves  = 5 // steps of training after a save, at which it may be killed too
)

// savesOf are the saves that a child makes, one after the other.
func savesOf(job *ckptsim.Job) []*ckptsim.Save {
	var saves []*ckptsim.Save
	for i := range savesOfAChild {
		var old *ckptsim.Save
		if i >= keptSaves {
			old = saves[i-keptSaves]
		}
		saves = append(saves, job.Save(int64(10*(i+1)), old))
	}
	return saves
}

// TestKilledChild is no test but what TestKilled starts and kills.
func TestKilledChild(t *testing.T) {
	what := strings.Split(os.Getenv(childEnv), "|")
	if len(what) != 3 {
		t.Skip("TestKilled starts this")
	}
	var left atomic.Int64
	n, err := strconv.ParseInt(what[2], 10, 64)
	require.NoError(t, err)
	left.Store(n)
	jobs := ckptsim.Jobs()
	for i := range jobs {
		if jobs[i].Name != what[1] {
			continue
		}
		for _, s := range savesOf(&jobs[i]) {
			step := func(op ckptsim.Op) {
				awaitPhase(t, what[0], op)
				if op.Kind != ckptsim.Barrier && left.Add(-1) == 0 {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
			}
			require.NoError(t, s.Make(context.Background(), what[0], step))
			for range betweenSaves {
				step(ckptsim.Op{})
			}
		}
	}
}

// TestKilled: a job of several ranks is killed at a point of its saves, overwrites and
// deletions, and what it leaves is judged rightly. LOCKSTEP_CKPT_KILLS sets how often each job is killed.
func TestKilled(t *testing.T) {
	kills := tier.NOr(t, "LOCKSTEP_CKPT_KILLS", 1, 20)
	for of, job := range ckptsim.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel() // they mostly wait for the disk
			n := tally{distinct: map[uint64]bool{}}
			killed := 0
			for i := range kills {
				if killOne(t, &job, rand.New(rand.NewPCG(uint64(of+i), 9)), &n) {
					killed++
				}
			}
			t.Logf("%s: %d of %d children killed; saves that they left: %d whole, %d finished, %d called converged, %d wrongly judged",
				job.Name, killed, kills, n.whole, n.finished, n.converged, n.wrong)
			require.Positive(t, killed)
		})
	}
}

func killOne(t *testing.T, job *ckptsim.Job, rng *rand.Rand, n *tally) (killed bool) {
	t.Helper()
	dir := t.TempDir()
	saves := savesOf(job)
	steps := 0
	for _, s := range saves {
		steps += s.Steps() + betweenSaves
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledChild$") //nolint:gosec // this test
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", childEnv, dir, job.Name, 1+rng.IntN(steps)))
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	err := cmd.Run()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed = err != nil && ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	require.True(t, killed || err == nil, "child: %v", err)
	d, err := ckpt.OpenDir(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	n.check(t, job, saves, onDisk{d}, fmt.Sprintf("killed in %s", dir))
	return killed
}
