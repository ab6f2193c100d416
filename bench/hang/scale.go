// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// scales are the sizes that are measured: eight ranks of tensor, sixteen stages, and the rest
// of data parallelism.
var scales = []int{1024, 4096, 16384}

// entries of each dump: PyTorch's default.
const entries = 2000

func scaleLayout(world int) hang.Layout {
	return hang.Layout{
		Name: "scale" + strconv.Itoa(world), TP: 8, DP: world / 128, PP: 16, EP: 8, Layers: 4, Micro: 16, Steps: 6, Warm: 4,
		Sharded: true, Batched: true, RunAhead: 64, SyncEvery: 1,
	}
}

// plainLayout is a job in which all ranks do the same all the time.
func plainLayout(world int) hang.Layout {
	return hang.Layout{
		Name: "plain" + strconv.Itoa(world), TP: 1, DP: world, PP: 1, EP: 1, Layers: 16, Micro: 2, Steps: 150, Warm: 140,
		RunAhead: 64, SyncEvery: 1,
	}
}

// scale measures what reading and judging whole jobs takes, each part as a process of its own.
func scale(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	fmt.Fprintf(stdout, "%s, %d processors, %s\n\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	fmt.Fprintln(stdout, "| ranks | from | files | wall | processor time | peak memory | told |")
	fmt.Fprintln(stdout, "| --- | --- | --- | --- | --- | --- | --- |")
	var rate strings.Builder
	for _, world := range scales {
		if o.ranks > 0 && world > o.ranks {
			break
		}
		if err := scaleOf(ctx, o.dir, world, &rate, stdout, stderr); err != nil {
			return err
		}
	}
	_, err := io.WriteString(stdout, rate.String())
	return err
}

// scaleOf measures one size; rate takes how fast dumps of the first one are decoded.
func scaleOf(ctx context.Context, dir string, world int, rate, stdout, stderr io.Writer) (err error) {
	dir, err = os.MkdirTemp(dir, "hang-scale-")
	if err != nil {
		return fmt.Errorf("make folder for dumps: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := self(ctx, stderr, nil, "-generate", dir, "-ranks", strconv.Itoa(world)); err != nil {
		return err
	}
	for _, from := range []string{"dumps", "summaries"} {
		var r scaleResult
		state, err := self(ctx, stderr, &r, "-analyze", filepath.Join(dir, from))
		if err != nil {
			return err
		}
		cpu := state.UserTime() + state.SystemTime()
		fmt.Fprintf(stdout, "| %d | %s | %.0f MB | %.2f s | %.2f s | %.0f MB | %s |\n", world, from, float64(r.Bytes)/1e6,
			r.Seconds, cpu.Seconds(), float64(peakOf(state))/1e6, r.Told)
	}
	if world == scales[0] {
		return decodes(filepath.Join(dir, "dumps"), rate)
	}
	return nil
}

// self runs this program again, so that the peak of a part is its own.
func self(ctx context.Context, stderr io.Writer, result any, args ...string) (*os.ProcessState, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %v: %w", args, err)
	}
	if result != nil {
		if err := json.Unmarshal(out, result); err != nil {
			return nil, fmt.Errorf("read result of %v: %w", args, err)
		}
	}
	return cmd.ProcessState, nil
}

// generate writes the dumps of a job with one stuck host into dir/dumps, their summaries
// of each node into dir/summaries, and which rank's it is into dir/truth.json.
func generate(dir string, world int, plain bool) error {
	layout := scaleLayout(world)
	if plain {
		layout = plainLayout(world)
	}
	j, err := hang.Run(layout, hang.HostStuck, 1)
	if err != nil {
		return err
	}
	truth, err := json.Marshal(map[string]any{"class": model.ClassNotScheduled, "ranks": j.Truth().Faults[0].Ranks, "world_size": world})
	if err != nil {
		return fmt.Errorf("write truth: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "truth.json"), truth, 0o600); err != nil {
		return fmt.Errorf("write truth: %w", err)
	}
	for _, sub := range []string{"dumps", "summaries"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o750); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	nodes := make(chan int)
	var wg sync.WaitGroup
	errs := make([]error, runtime.NumCPU())
	for w := range errs {
		wg.Go(func() {
			for n := range nodes {
				errs[w] = errors.Join(errs[w], generateNode(j, dir, n))
			}
		})
	}
	for n := range world / perNode {
		nodes <- n
	}
	close(nodes)
	wg.Wait()
	return errors.Join(errs...)
}

// perNode is how many ranks a node has: their states make one summary.
const perNode = 8

// clockStep is by how much the clock of a rank differs from that of the one before, ns: no two
// ranks record the same times.
const clockStep = 101

func generateNode(j *hang.Job, dir string, node int) error {
	var summary []byte
	for r := node * perNode; r < (node+1)*perNode; r++ {
		d := j.Dump(r, hang.View{At: j.Last() + int64(10*time.Minute), Clock: int64(r) * clockStep, Buffer: entries, Version: "2.10", Stacks: true, Timeout: 10 * time.Minute})
		d.Entries = d.Entries[max(0, len(d.Entries)-entries):]
		if len(d.Entries) < entries {
			return fmt.Errorf("write dump of rank %d: got %d entries; want %d", r, len(d.Entries), entries)
		}
		data := frwrite.Pickle(d)
		if err := os.WriteFile(filepath.Join(dir, "dumps", hang.FileName(int64(r))), data, 0o600); err != nil {
			return fmt.Errorf("write dump: %w", err)
		}
		s, err := readState(data, int64(r))
		if err != nil {
			return err
		}
		summary = appendSummary(summary, s)
	}
	if err := os.WriteFile(filepath.Join(dir, "summaries", fmt.Sprintf("node%05d", node)), summary, 0o600); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}
