// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lockstep-otel/lockstep/internal/report/terminal"
)

// demoOptions are the flags of `lockstep demo`.
type demoOptions struct {
	ranks   int
	fault   string
	rank    int
	from    int64
	steps   int64
	level   string
	witness string
	torch   string // interpreter; empty: our worker
	// unattended: nobody looks, and so it must end by itself.
	unattended bool
	once       bool
	json       bool
	// progress: steps are told as JSON, too.
	progress bool
	dir      string
	keep     bool
	bare     bool     // no padding of kernels
	args     []string // to the workers, unchecked
}

// maxDemoRanks is what the worker accepts; some 16 run in lockstep on 2 cores.
const maxDemoRanks = 64

// unattendedSteps end a demo that nobody looks at: 10 s.
const unattendedSteps = 200

var (
	demoFaults = []string{"none", "compute", "host", "link", "compile", "dataloader", "gc", "checkpoint", "hang", "exit", "mismatch"}
	demoLevels = []string{"summary", "collectives", "all"}
)

func newDemo() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a small model on some ranks, one of them at fault, and watch it being found",
		Long: "Starts worker processes that train a small model together, each with the profiler plugin, and\n" +
			"runs a collector beside them in this process. One rank is made slow, or the job is made to hang;\n" +
			"what is found is printed while the job runs. No GPU is needed: docs/demo.md says what is real and what is simulated.\n\n" +
			"Ctrl-C ends it, a second one at once. Where the output is no terminal, it ends after " +
			strconv.Itoa(unattendedSteps) + " steps,\n" +
			"and a job that hangs when that was found, or after " + hangPatience.String() + ".\n\n" +
			"Exit status: 0 done, with findings or without, 1 a worker or the collector failed, 2 wrong usage.",
		Example: "  lockstep demo\n" +
			"  lockstep demo --fault link --rank 1 --once\n" +
			"  lockstep demo --fault none --ranks 8 --steps 200\n" +
			"  lockstep demo --fault hang\n" +
			"  lockstep demo --fault link --witness kernels\n" +
			"  lockstep demo --torch=.venv/bin/python --fault gc",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.unattended = !terminal.Is(cmd.OutOrStdout())
			if !cmd.Flags().Changed("steps") && o.unattended && !o.hangs() {
				o.steps = unattendedSteps
			}
			o.ofHang(cmd.Flags().Changed)
			given := cmd.Flags().Changed("rank")
			if !given {
				o.rank = min(o.rank, o.ranks-1)
			}
			if err := o.check(given); err != nil {
				return err
			}
			return runDemo(&o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *demoOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.ranks, "ranks", 4, "number of ranks, one process each, 1 to "+strconv.Itoa(maxDemoRanks))
	f.StringVar(&o.fault, "fault", "compute", "what ails one rank: "+oneOf(demoFaults))
	f.IntVar(&o.rank, "rank", 2, "which rank that is, 0 to ranks - 1; not given, the last where there are fewer; none with --fault none")
	f.Int64Var(&o.from, "fault-from", 0, "first step with the fault; of one by which the job hangs "+strconv.Itoa(hangFrom)+" where not given")
	f.Int64Var(&o.steps, "steps", 0, "end after so many steps; 0: when interrupted")
	f.StringVar(&o.level, "level", "collectives", "detail of the events: "+oneOf(demoLevels)+"; nothing is judged by summaries alone")
	f.StringVar(&o.witness, "witness", witnessScopes, "what the job is watched with, each with what is before it: "+oneOf(demoWitnesses))
	f.StringVar(&o.torch, "torch", "", "the ranks train with PyTorch, by this interpreter; without one: .venv/bin/python, else python3")
	f.Lookup("torch").NoOptDefVal = anyPython
	f.BoolVar(&o.once, "once", false, "end at the first finding")
	f.BoolVar(&o.json, "json", false, "print findings and the summary as JSON, one object a line")
	f.BoolVar(&o.progress, "progress", false, "with --json: a line for each step that the job tells of, too")
	f.StringVar(&o.dir, "dir", os.TempDir(), "where to make the private directory for the rings")
	f.BoolVar(&o.keep, "keep", false, "do not remove that directory in the end")
	f.BoolVar(&o.bare, "no-pace", false, "do not pad kernels to the time they would take on a device")
	f.StringArrayVar(&o.args, "worker-arg", nil, "argument to every worker, such as --worker-arg=--no-markers")
}

// check returns an error of usage; rankGiven is whether --rank was.
func (o *demoOptions) check(rankGiven bool) error {
	switch {
	case o.ranks < 1 || o.ranks > maxDemoRanks:
		return fmt.Errorf("check --ranks: got %d; want 1 to %d", o.ranks, maxDemoRanks)
	case !slices.Contains(o.faults(), o.fault):
		return fmt.Errorf("check --fault: got %q; want %s", o.fault, oneOf(o.faults()))
	case !slices.Contains(demoLevels, o.level):
		return fmt.Errorf("check --level: got %q; want %s", o.level, oneOf(demoLevels))
	case !slices.Contains(demoWitnesses, o.witness):
		return fmt.Errorf("check --witness: got %q; want %s", o.witness, oneOf(demoWitnesses))
	case o.fault != "none" && (o.rank < 0 || o.rank >= o.ranks):
		return fmt.Errorf("check --rank: got %d; want 0 to %d, since there are %d ranks", o.rank, o.ranks-1, o.ranks)
	case o.fault == "none" && rankGiven:
		return fmt.Errorf("check --rank: got %d with --fault none; want no rank, or a fault of it", o.rank)
	case o.from < 0:
		return fmt.Errorf("check --fault-from: got %d; want 0 or more", o.from)
	case o.steps < 0:
		return fmt.Errorf("check --steps: got %d; want 0 or more", o.steps)
	case o.hangs() && o.ranks < 2:
		return fmt.Errorf("check --fault: got %s with --ranks %d; want at least 2, since one rank waits for nobody", o.fault, o.ranks)
	case o.torch != "":
		return o.checkTorch()
	}
	return nil
}
