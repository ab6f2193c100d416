// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// rhythm is one way in which a job stands still and goes on.
type rhythm struct {
	name   string
	pauses []string // of the worker: RANK:SCOPE:FIRST:EVERY:MS
	// hold keeps a rank from running; done lets it go.
	hold        func(pid int) (done func(), err error)
	every, held time.Duration
	// hangs: the standstill is one that must be told of, or the others show nothing.
	hangs bool
}

// heldRank is the rank that a hand holds.
const heldRank = "2"

// rhythms; the workers' steps take 50 ms, so that 1000 of them are at least 50 s.
var rhythms = []rhythm{
	{name: "checkpoint, 20 s on one rank", pauses: []string{"0:checkpoint_save:300:800:20000"}},
	{name: "evaluation, 8 to 15 s", pauses: []string{
		"0:evaluation:200:500:15000", "1:evaluation:200:500:8000", "2:evaluation:200:500:8000", "3:evaluation:200:500:11000",
	}},
	{name: "compilation, 60 s, then 30 s", pauses: []string{
		"0:compile:0:0:60000", "1:compile:0:0:45000", "2:compile:0:0:60000", "3:compile:0:0:50000",
		"1:compile:1500:1500:30000",
	}},
	{name: "scope debugger, 30 s", pauses: []string{"2:debugger:300:1000:30000"}},
	{name: "ptrace, 30 s", hold: trace, every: time.Minute, held: 30 * time.Second},
	{name: "SIGSTOP, 30 s", hold: stop, every: time.Minute, held: 30 * time.Second},
	{name: "control: 20 s in no such phase", pauses: []string{"2:forward:300:1000:20000"}, hangs: true},
}

// quiet runs healthy jobs that stand still for long now and then, side by side, and prints
// what was reported of them. It fails where any of them was reported to hang but the control, and
// where a stopped process was not reported as such.
func quiet(ctx context.Context, f *flag.FlagSet, args []string, w io.Writer) error {
	bin := f.String("bin", "bin", "folder of lockstep, the worker and the plugin")
	length := f.Duration("for", 10*time.Minute, "how long each runs")
	first := f.Duration("first", 15*time.Second, "until a rank is held for the first time")
	held := f.Duration("held", 0, "for how long a rank is held; 0: as long as the name says")
	only := f.String("only", "", "run those whose name has this in it")
	if err := f.Parse(args); err != nil {
		return err
	}
	outcomes := make([]quietOutcome, len(rhythms))
	var all sync.WaitGroup
	for i := range rhythms {
		r := rhythms[i]
		if !strings.Contains(r.name, *only) {
			continue
		}
		if *held > 0 {
			r.held = *held
		}
		all.Go(func() { outcomes[i] = r.run(ctx, *bin, *length, *first) })
	}
	all.Wait()
	fmt.Fprintf(w, "4 ranks each, %v, side by side.\n\n%-32s %8s %10s %14s %6s\n", *length, "the job stands still for", "steps", "standstills", "longest", "hangs")
	wrong := 0
	for i := range rhythms {
		if o := &outcomes[i]; o.ran {
			wrong += o.print(w, &rhythms[i])
		}
	}
	if wrong > 0 {
		return fmt.Errorf("judge runs: got %d wrong; want none", wrong)
	}
	return nil
}

// quietOutcome is what came of one job.
type quietOutcome struct {
	ran     bool
	steps   int64
	stills  []float64 // lengths of its standstills, s: gaps between two lines of progress
	hangs   []said
	problem error
}

// stillFrom is how long a job must have been at one step for that to be a standstill.
const stillFrom = 5 * time.Second

func (o *quietOutcome) print(w io.Writer, r *rhythm) (wrong int) {
	fmt.Fprintf(w, "%-32s %8d %10d %12.1f s %6d\n", r.name, o.steps, len(o.stills), quantile(o.stills, 1), len(o.hangs))
	for i := range o.hangs {
		l := &o.hangs[i]
		fmt.Fprintf(w, "  told: %s of rank %d, %s, after %.1f s at a limit of %.1f s in phase %s\n", l.Class, deref(l.Rank), l.Op, l.Still, l.Limit, l.Phase)
	}
	stops, others := o.stops()
	switch {
	case o.problem != nil:
		fmt.Fprintf(w, "  failed: %v\n", o.problem)
	case len(o.stills) == 0:
		fmt.Fprintf(w, "  failed: it never stood still\n")
	case r.hangs && others == 0:
		fmt.Fprintf(w, "  wrong: nothing was told\n")
	case r.hold != nil && stops == 0:
		fmt.Fprintf(w, "  wrong: want process_stopped of rank %s\n", heldRank)
	case !r.hangs && others > 0, r.hold == nil && stops > 0:
		fmt.Fprintf(w, "  wrong: want none\n")
	default:
		return 0
	}
	return 1
}

// stops counts the findings that the held rank is stopped, and all others.
func (o *quietOutcome) stops() (stops, others int) {
	for i := range o.hangs {
		l := &o.hangs[i]
		if l.Class == model.ClassProcessStopped && strconv.FormatInt(deref(l.Rank), 10) == heldRank {
			stops++
		} else {
			others++
		}
	}
	return stops, others
}

// run starts the job, lets it stand still, and ends it.
func (r *rhythm) run(ctx context.Context, bin string, length, first time.Duration) (o quietOutcome) {
	o.ran = true
	args := []string{"demo", "--json", "--fault", "none", "--steps", "0", "--progress"}
	for _, p := range r.pauses {
		args = append(args, "--worker-arg=--pause="+p)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "lockstep"), args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		o.problem = fmt.Errorf("start the demo: %w", err)
		return o
	}
	held := make(chan error, 1)
	over, end := context.WithTimeout(ctx, length)
	defer end()
	go func() {
		held <- r.holdNowAndThen(over, cmd.Process.Pid, first)
		<-over.Done()
		_ = cmd.Process.Signal(os.Interrupt)
	}()
	o.read(out)
	end()
	o.problem = errors.Join(o.problem, <-held, cmd.Wait())
	return o
}

// read takes what the demo prints until it ends.
func (o *quietOutcome) read(out io.Reader) {
	at := time.Now()
	for scan := bufio.NewScanner(out); scan.Scan(); {
		var l said
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			o.problem = fmt.Errorf("read output of lockstep demo: %w", err)
			continue
		}
		switch {
		case l.Finding == "desync":
			o.hangs = append(o.hangs, l)
		case l.Step != nil:
			if still := time.Since(at); still >= stillFrom {
				o.stills = append(o.stills, still.Seconds())
			}
			at, o.steps = time.Now(), *l.Step+1
		}
	}
}

// holdNowAndThen holds a rank again and again until the time is over.
func (r *rhythm) holdNowAndThen(ctx context.Context, demo int, first time.Duration) error {
	if r.hold == nil {
		return nil
	}
	for wait := first; pass(ctx, wait); wait = r.every {
		pid, err := workerOf(demo, heldRank)
		if err != nil {
			return err
		}
		done, err := r.hold(pid)
		if err != nil {
			return err
		}
		pass(ctx, r.held)
		done()
	}
	return nil
}

// pass waits, and reports whether the context still holds.
func pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func stop(pid int) (done func(), err error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("stop a worker: %w", err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil
}
