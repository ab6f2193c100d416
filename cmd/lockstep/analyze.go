// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/render"
	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ranklog"
	"github.com/lockstep-otel/lockstep/internal/report/terminal"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// analyzeOptions are the flags of analyze.
type analyzeOptions struct {
	json        bool
	quiet       bool
	noClock     bool
	heatmap     bool
	frequency   bool
	hung        bool
	job         string
	worldSize   int64
	rankPattern string
	stepPattern string
	engine      straggler.Config
}

func newAnalyze() *cobra.Command {
	o := &analyzeOptions{engine: engineConfig()}
	cmd := &cobra.Command{
		Use:   "analyze PATH...",
		Short: "Read traces or dumps of a job and say which rank makes the others wait",
		Long: "Reads the traces of all ranks of a job: directories (with those below), globs and files, of the\n" +
			"PyTorch profiler (Chrome JSON, plain or gzip, one file per rank), OTLP JSON of operation spans, or Parquet\n" +
			"files of the parquet exporter.\n" +
			"Of Flight Recorder dumps (pickle or JSON, one file per rank, or gathered in one) and of the logs of ranks\n" +
			"with lines of PyTorch's watchdog it says what hangs, of saved answers of NCCL's RAS (ncclras, in text or\n" +
			"JSON) which rank is behind, and in what.\n" +
			"A file's format is told by its content. Damaged files are reported and cost nothing else.\n\n" +
			"Exit status: 0 all was read and nothing found; 3 findings; 2 not everything could be judged, or wrong usage.",
		Example: "  lockstep analyze traces/\n" +
			"  lockstep analyze --json 'traces/*.pt.trace.json.gz' | jq '.findings[0]'\n" +
			"  lockstep analyze ~/.cache/torch/",
		Args: somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *analyzeOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
	f.BoolVar(&o.quiet, "quiet", false, "draw no progress bar")
	f.BoolVar(&o.noClock, "no-clock", false, "compare stamps as recorded: estimate clock offsets, apply none")
	f.StringVar(&o.job, "job", "", "name of the job, where the traces do not say it (default: the directory's name)")
	f.Int64Var(&o.worldSize, "world-size", 0, "number of ranks of the job, where dumps do not say it, as those of Gloo (default: that of its largest group)")
	f.BoolVar(&o.hung, "hung", false, "it is known that the job hung when its dumps were written, whatever the times of the files say")
	f.StringVar(&o.rankPattern, "rank-pattern", "", "regular expression for a rank in a file's name, its group 1 the number")
	f.StringVar(&o.stepPattern, "step-pattern", "", "regular expression for step annotations, its group 1 the number")
	f.BoolVar(&o.heatmap, "heatmap", false, "show how far each rank's rhythm of operations is from its role's, window by window")
	f.BoolVar(&o.frequency, "frequency", false, "show how often each operation occurs over a step, window by window")
	f.StringVar(&o.engine.Method, "method", o.engine.Method,
		"who names stragglers: lockstep, or kair, the published statistics, as a baseline")
	f.Float64Var(&o.engine.MinCostShare, "min-cost-share", o.engine.MinCostShare,
		"name no rank whose mending would save less than this share of the step")
	f.Float64Var(&o.engine.MaxFalseAlarm, "max-false-alarm", o.engine.MaxFalseAlarm,
		"name no rank where chance alone does as much with a higher probability")
	f.IntVar(&o.engine.MaxOpenOps, "max-ops", o.engine.MaxOpenOps,
		"hold at most so many operations of a job; beyond, its oldest steps are judged as far as they were read")
}

func (o *analyzeOptions) run(cmd *cobra.Command, paths []string) error {
	o.engine.Clock = !o.noClock
	if err := o.engine.Validate(); err != nil {
		return fmt.Errorf("check flags: %w", err)
	}
	if o.worldSize < 0 || o.worldSize > frwatch.MaxRanks {
		return fmt.Errorf("check flags: check --world-size: got %d; want 1 to %d, or 0 for what the dumps say", o.worldSize, frwatch.MaxRanks)
	}
	readers, err := o.readers()
	if err != nil {
		return fmt.Errorf("check flags: %w", err)
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	a := newAnalysis(o, cmd.ErrOrStderr())
	a.read(ctx, paths, readers)
	return a.conclude(cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// analysis reads files into an engine.
type analysis struct {
	options  *analyzeOptions
	engine   *straggler.Engine
	jobs     []straggler.JobReport // costliest first, once all is read
	problems problems
	given    []string // the paths
	progress *progress
	stderr   io.Writer
	dumps    *dumpset.Result   // what hangs; nil: there were no dumps
	logs     []*ranklog.Result // what logs of ranks tell, of each job
	files    int               // of which something was analysed
	skipped  int
	bytes    int64
	ops      int64
}

func newAnalysis(o *analyzeOptions, stderr io.Writer) *analysis {
	return &analysis{options: o, engine: straggler.New(o.engine, time.Now), stderr: stderr}
}

// read feeds every file of paths to the engine, one at a time.
func (a *analysis) read(ctx context.Context, paths []string, readers []reader) {
	a.given = paths
	in := discover(paths, &a.problems)
	a.skipped = in.skipped
	show := terminal.Is(a.stderr) && !a.options.quiet
	a.progress = newProgress(a.stderr, in.size(), show, time.Now)
	for _, r := range readers {
		if files := in.of(r.format()); len(files) > 0 {
			r.read(ctx, files, a)
		}
	}
	a.concludeLogs()
	a.progress.clear()
	a.engine.Flush()
	a.engine.Verdicts()
	a.jobs = a.engine.Jobs()
	render.SortJobs(a.jobs)
	a.noteResult()
}

// reader brings files of one format into an analysis.
type reader interface {
	format() sniff.Format
	read(ctx context.Context, files []input, to *analysis)
}

// add hands operations of one rank to the engine.
func (a *analysis) add(rank model.Rank, ops []model.Op) {
	a.ops += int64(len(ops))
	a.engine.Add(rank, ops)
}

// conclude prints the result and returns the status.
func (a *analysis) conclude(stdout, stderr io.Writer) error {
	if err := a.print(stdout, stderr); err != nil {
		return failure{err}
	}
	switch a.verdict() {
	case render.Found:
		return statusError(exitFindings)
	case render.CannotTell:
		return statusError(exitUnusable)
	}
	n := a.refused()
	if n == 0 {
		return nil
	}
	if !a.options.json {
		_, _ = fmt.Fprintf(stderr, "lockstep: not everything could be judged: %d of the inputs were refused, in whole or in part; see the problems\n", n)
	}
	return statusError(exitUnusable)
}

// refused counts the inputs that were not read, or not to their end.
func (a *analysis) refused() int64 {
	n := a.problems.refused
	if a.dumps != nil {
		s := &a.dumps.Stats
		n += int64(s.Unreadable + s.Refused + s.Partial + s.Repeated)
	}
	return n
}

// print prints what hangs, and then what the traces came to, if there were any.
func (a *analysis) print(stdout, stderr io.Writer) error {
	if a.options.json {
		return a.writeJSON(stdout, a.jobs)
	}
	if err := a.writeHangs(stdout, terminal.StyleOf(stdout, os.Getenv)); err != nil {
		return err
	}
	switch {
	case usable(a.jobs):
		return render.Write(stdout, a.report(a.jobs), terminal.StyleOf(stdout, os.Getenv))
	case a.dumps == nil || len(a.dumps.Hangs) == 0:
		_, _ = fmt.Fprintln(stderr, "lockstep: nothing could be analysed")
	case len(a.jobs) == 0 && len(a.problems.list) == 0:
		return nil
	}
	return render.Write(stderr, a.report(nil), terminal.StyleOf(stderr, os.Getenv))
}

// verdict is that of traces and dumps together: a finding in any is one.
func (a *analysis) verdict() render.Verdict {
	traces := render.VerdictOf(a.jobs...)
	if a.dumps == nil {
		return traces
	}
	dumps := dumpsVerdict(a.dumps)
	if traces == render.Found || dumps == render.CannotTell && len(a.jobs) > 0 {
		return traces
	}
	return dumps
}

// usable reports whether any step of any job was analysed.
func usable(jobs []straggler.JobReport) bool {
	for i := range jobs {
		if jobs[i].Steps > 0 {
			return true
		}
	}
	return false
}

func (a *analysis) report(jobs []straggler.JobReport) *render.Input {
	return &render.Input{
		Files: a.files, Bytes: a.bytes, Ops: a.ops, Jobs: jobs,
		Problems: a.problems.list, ProblemsOmitted: a.problems.omitted,
		Stats: a.engine.Stats(), Method: a.options.engine.Method, RawClock: a.options.noClock,
		Heatmap: a.options.heatmap, Frequency: a.options.frequency,
	}
}

// errNoOps says that a file of a known format held nothing to analyse.
var errNoOps = errors.New("read operations: got none; want at least one")
