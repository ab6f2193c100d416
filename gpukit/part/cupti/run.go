// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
)

const (
	// programLimit bounds each run of the program, the wait for its turn included.
	programLimit = 145 * time.Second
	// hurryLimit bounds those that wait for no turn, and for which others wait.
	hurryLimit = 60 * time.Second
	// teardownLimit bounds the one that may hang, as CUPTI is detached from a process that runs.
	teardownLimit = 45 * time.Second
)

// program is one run of programs/cupti.py.
type program struct {
	name, plan, mode string
	env              []string
	injected         bool
	atRest           bool
	wait             string        // a file, or of turns a folder
	limit            time.Duration // 0: that of all
	me, of           int
	company          string // what else used the device while it was measured; empty: nothing

	folder string
	done   chan struct{}
	// After done:
	err  error
	ring *record // nil: none of the program's
	facts
}

// begin starts the program and reads its ring while it runs.
func (g *program) begin(ctx context.Context, k *kit.Kit) {
	g.done = make(chan struct{})
	g.folder = filepath.Join(k.Work, g.name)
	rings := filepath.Join(g.folder, "rings")
	if err := os.MkdirAll(rings, 0o700); err != nil {
		g.err = fmt.Errorf("make folder of the program: %w", err)
		close(g.done)
		return
	}
	process, err := k.Start(ctx, g.command(k, rings))
	if err != nil {
		g.err = err
		close(g.done)
		return
	}
	go g.end(ctx, process, rings)
}

func (g *program) end(ctx context.Context, process *kit.Process, rings string) {
	defer close(g.done)
	over := make(chan struct{})
	var reader sync.WaitGroup
	var all []*record
	reader.Go(func() { all = follow(ctx, rings, over) })
	_, g.err = process.Wait()
	close(over)
	reader.Wait()
	f, err := readFacts(g.folder)
	switch {
	case err == nil:
		g.facts = *f
	case g.err == nil:
		g.err = err
	}
	if g.err == nil && g.Error != "" {
		g.err = fmt.Errorf("run program: %s", g.Error) //nolint:err113 // the program's own
	}
	for _, r := range all {
		if r.pid == g.PID {
			g.ring = r
		}
	}
}

func (g *program) command(k *kit.Kit, rings string) kit.Command {
	args := []string{k.Program("cupti.py"), "--plan", g.plan, "--mode", g.mode, "--folder", g.folder}
	env := []string{
		"LOCKSTEP_DIR=" + rings, "LOCKSTEP_RING_LANES=" + ringLanes, "LOCKSTEP_RING_RECORDS=" + ringRecords, "LOCKSTEP_DEBUG=1",
		// Nothing is written outside the scratch folder, and nothing of an earlier run is found.
		"TORCHINDUCTOR_CACHE_DIR=" + filepath.Join(g.folder, "inductor"), "TRITON_CACHE_DIR=" + filepath.Join(g.folder, "triton"),
		"CUDA_CACHE_PATH=" + filepath.Join(g.folder, "cuda"), "TMPDIR=" + g.folder, "PYTHONDONTWRITEBYTECODE=1",
		"TORCHINDUCTOR_COMPILE_THREADS=1", "OMP_NUM_THREADS=2",
	}
	if g.injected {
		args = append(args, "--library", k.Plugin())
	}
	switch {
	case k.GPU == nil:
		args = append(args, "--stand-in", k.StandIn("libcupti-standin.so"))
		env = append(env, "LOCKSTEP_CUPTI="+k.StandIn("libcupti-standin.so"))
	case g.injected:
		env = append(env, "CUDA_INJECTION64_PATH="+k.Plugin())
	}
	if g.atRest {
		args = append(args, "--at-rest")
	}
	if g.wait != "" {
		args = append(args, "--wait", g.wait)
	}
	if g.of > 0 {
		args = append(args, "--me", strconv.Itoa(g.me), "--of", strconv.Itoa(g.of))
	}
	limit := g.limit
	switch {
	case limit > 0:
	case g.wait == "":
		limit = hurryLimit
	default:
		limit = programLimit
	}
	return kit.Command{Path: k.Python, Args: args, Env: append(env, g.env...), Dir: g.folder, Limit: limit}
}

// ready waits until the program has warmed up and waits for its turn, or has ended, for
// a while at most; false: it has not.
func (g *program) ready(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.done:
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
			if g.quiet() {
				return true
			}
		}
	}
}

// quiet reports whether the program uses the device no more: it has ended, or waits.
func (g *program) quiet() bool {
	if g.over() {
		return true
	}
	_, err := os.Stat(filepath.Join(g.folder, "ready"))
	return err == nil
}

// over reports whether the program has ended.
func (g *program) over() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// release lets a program that waits go on, and waits for its end.
func (g *program) release() error {
	if err := os.WriteFile(g.wait, nil, 0o600); err != nil {
		return fmt.Errorf("release program: %w", err)
	}
	<-g.done
	return nil
}
