// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// hangsPart returns the part that makes hangs on purpose and reads their dumps.
func hangsPart() Part {
	return Part{Name: "hangs", Title: "Flight Recorder dumps, and hangs made on purpose", Limit: 100 * time.Second, Loopback: true, Run: runHangs}
}

const (
	hangTimeout = 5 * time.Second // of the operation that hangs
	hangGrace   = 14 * time.Second
	hangLimit   = 45 * time.Second
	statesLeast = 8 * time.Second // of the part's, for a job to begin
	hangLeast   = 20 * time.Second
	dumpPrefix  = "nccl_trace_rank_"
)

// hangChecks runs the checks of the part.
type hangChecks struct {
	k       *kit.Kit
	p       *report.Part
	good    report.Status
	entries []kit.Entry
}

func runHangs(ctx context.Context, k *kit.Kit, p *report.Part) {
	if k.Python == "" || k.Torch == nil {
		p.Addf("dumps", report.NotShown, "needs PyTorch: %s", k.Reason)
		return
	}
	h := &hangChecks{k: k, p: p, good: k.Right()}
	defer func() { k.Keep(p, "flight-recorder", nil, h.entries...) }()
	h.states(ctx)
	h.sleep(ctx)
	h.missing(ctx)
}

func (h *hangChecks) judge(name string, problems []string, text string, figures ...report.Figure) {
	judge(h.p, h.good, name, problems, text, figures...)
}

// hangJob is what a job of programs/dumps.py left.
type hangJob struct {
	dir    string // of its dumps
	truths []*dumpTruth
	log    string // what its ranks printed, with NCCL's warnings
	err    error
}

// run runs a job in one mode.
func (h *hangChecks) run(ctx context.Context, name, mode string, world int, env func(rank int) []string) *hangJob {
	dir := filepath.Join(h.k.Work, name)
	job := &hangJob{dir: filepath.Join(dir, "dumps")}
	if err := os.MkdirAll(job.dir, 0o700); err != nil {
		job.err = fmt.Errorf("prepare job %s: %w", name, err)
		return job
	}
	var ranks []*kit.Process
	ranks, job.err = runJob(ctx, h.k, world, hangLimit, func(rank int) kit.Command {
		args := []string{
			h.k.Program("dumps.py"), mode, "--rank", strconv.Itoa(rank), "--world", strconv.Itoa(world), "--folder", dir,
			"--timeout", seconds(hangTimeout), "--grace", seconds(hangGrace),
		}
		if h.k.GPU == nil {
			args = append(args, "--cpu")
		}
		c := kit.Command{Path: h.k.Python, Args: args, Env: append(dumpEnv(job.dir), "RANK="+strconv.Itoa(rank), "WORLD_SIZE="+strconv.Itoa(world))}
		if env != nil {
			c.Env = append(c.Env, env(rank)...)
		}
		return withRoom(h.k, c)
	}, func(context.Context) {})
	job.log = printed(ranks)
	truths, err := readTruths[dumpTruth](dir, world)
	job.truths = truths
	if err != nil && job.err == nil {
		job.err = err
	}
	h.keep(name, dir)
	return job
}

// printed returns what the processes of a job wrote to stdout and stderr.
func printed(processes []*kit.Process) string {
	var all strings.Builder
	for _, p := range processes {
		result, _ := p.Wait() // the job returned the error
		all.WriteString(result.Stdout + "\n" + result.Stderr + "\n")
	}
	return all.String()
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// dumpEnv has PyTorch record starts and write dumps soon: those of a watchdog go to the
// folder, without call stacks, whose first naming takes seconds.
func dumpEnv(dir string) []string {
	prefix := filepath.Join(dir, dumpPrefix)
	return []string{
		"TORCH_FR_BUFFER_SIZE=2000", "TORCH_FR_DUMP_TEMP_FILE=" + prefix, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + prefix,
		"TORCH_NCCL_ENABLE_TIMING=1", "TORCH_NCCL_DUMP_ON_TIMEOUT=1", "TORCH_INCLUDE_STACK_TRACE=0", "TORCH_NCCL_COORD_CHECK_MILSEC=200",
		"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=4000", "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN=0",
		"NCCL_DEBUG=WARN", "NCCL_SOCKET_IFNAME=lo", "GLOO_SOCKET_IFNAME=lo",
	}
}

func (h *hangChecks) keep(name, dir string) {
	for _, pattern := range []string{"truth-*.json", "dumps/" + dumpPrefix + "*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return
		}
		for _, path := range paths {
			e, err := kit.FileEntry(path)
			if err != nil {
				h.p.Add("fixture", report.Failed, err.Error())
				continue
			}
			e.Name = name + "/" + strings.TrimPrefix(path, dir+"/")
			h.entries = append(h.entries, e)
		}
	}
}

// compare reads the dump of every rank and compares it with what the rank did.
func (job *hangJob) compare(world int, hung func(rank int) bool) (seen dumpSeen, version string, problems []string) {
	if len(job.truths) != world {
		problems = append(problems, fmt.Sprintf("got the truth of %d ranks; want %d: %v", len(job.truths), world, job.err))
	}
	for _, t := range job.truths {
		problems = append(problems, t.problems(hung(t.Rank))...)
		d, err := flightrecorder.ReadFile(filepath.Join(job.dir, dumpPrefix+strconv.Itoa(t.Rank)), flightrecorder.DefaultOptions())
		if err != nil {
			problems = append(problems, fmt.Sprintf("rank %d: %v; its job: %s", t.Rank, err, job.why()))
			continue
		}
		got, wrong := compareDump(d, t, hung(t.Rank))
		problems = append(problems, wrong...)
		version = d.Version.String()
		seen.Completed, seen.Started, seen.Scheduled, seen.Timed = seen.Completed+got.Completed, seen.Started+got.Started, seen.Scheduled+got.Scheduled, seen.Timed+got.Timed
	}
	return seen, version, problems
}

func (s *dumpSeen) figures() []report.Figure {
	return []report.Figure{figure("completed", s.Completed), figure("started", s.Started), figure("scheduled", s.Scheduled), figure("with a duration", s.Timed)}
}

// states reads the dump of a job in good order: of one rank, or on the stand-in of two.
func (h *hangChecks) states(ctx context.Context) {
	world := 1
	if h.k.GPU == nil {
		world = 2
	}
	if !room(ctx, h.p, "states", statesLeast) {
		return
	}
	job := h.run(ctx, "states", "states", world, nil)
	if h.cut("states", job) {
		return
	}
	seen, version, problems := job.compare(world, func(int) bool { return false })
	h.judge("states", problems, fmt.Sprintf("a dump of version %s names every operation with type, size and state, at the time of its call", version), seen.figures()...)
}

// sleep has one rank wait for a device that spins, until the watchdog dumps.
func (h *hangChecks) sleep(ctx context.Context) {
	if h.k.GPU == nil {
		h.p.Add("sleep", report.NotShown, "a device that spins needs a GPU")
		return
	}
	if !room(ctx, h.p, "sleep", hangLeast) {
		return
	}
	job := h.run(ctx, "sleep", "sleep", 1, nil)
	if h.cut("sleep", job) {
		return
	}
	seen, _, problems := job.compare(1, func(int) bool { return true })
	h.judge("sleep", problems, fmt.Sprintf("PyTorch's watchdog dumps %v after an operation behind a spinning kernel, and the dump has it as the only open one", hangTimeout), seen.figures()...)
}

// missing has one rank stay away from an operation, and asks lockstep analyze.
func (h *hangChecks) missing(ctx context.Context) {
	if h.k.GPU == nil {
		if room(ctx, h.p, "missing", hangLeast) {
			h.judgeMissing(ctx, h.run(ctx, "missing", "missing", 3, nil), 3)
		}
		return
	}
	ways, err := gpuWays(h.k)
	if err != nil {
		h.p.Add("missing", report.Failed, err.Error())
		return
	}
	refused := []string{}
	for _, way := range ways {
		if !room(ctx, h.p, "missing", hangLeast) {
			return
		}
		job := h.run(ctx, "missing-"+strings.ToLower(way.Name), "missing", 2, func(rank int) []string { return append(way.Env(rank), ncclNetwork...) })
		why := job.refusal()
		if why == "" {
			h.judgeMissing(ctx, job, 2)
			return
		}
		refused = append(refused, fmt.Sprintf("with %s: %s", way.Name, why))
	}
	if len(refused) == 0 {
		h.p.Add("missing", report.NotShown, noWay)
		return
	}
	h.p.Addf("missing", report.NotShown, "NCCL refuses two ranks on one GPU: %s", strings.Join(refused, "; "))
}

// refusal returns NCCL's own words where it refused the ranks; empty where it did not, or a
// rank came to the operation that hangs.
func (job *hangJob) refusal() string {
	if job.doomed() != nil {
		return ""
	}
	lines := []string{job.log}
	for _, t := range job.truths {
		lines = append(lines, t.Error)
	}
	return ncclRefusal(strings.Join(lines, "\n"))
}

// doomed returns what a rank wrote that came to the operation that hangs; nil: none did.
func (job *hangJob) doomed() *dumpTruth {
	for _, t := range job.truths {
		if t.Doomed != nil {
			return t
		}
	}
	return nil
}

// why returns what the job's end was, in the words of a rank where it has some.
func (job *hangJob) why() string {
	for _, t := range job.truths {
		if t.Error != "" {
			return t.Error
		}
	}
	if job.err != nil {
		return job.err.Error()
	}
	return "it gave no reason"
}

// judgeMissing judges a job of which a rank stayed away from an operation.
func (h *hangChecks) judgeMissing(ctx context.Context, job *hangJob, world int) {
	if h.cut("missing-dumps", job) {
		return
	}
	came := job.doomed()
	if came == nil {
		h.p.Addf("missing-dumps", report.Failed, "got no rank that came to the operation that hangs: %s", job.why())
		return
	}
	seen, _, problems := job.compare(world, func(rank int) bool { return rank != came.Missing })
	h.judge("missing-dumps", problems, fmt.Sprintf("the dumps of %d ranks have what each did, and the operation that waits", world), seen.figures()...)
	args := []string{"analyze", "--json", "--quiet", "--world-size", strconv.Itoa(world), job.dir}
	out, err := h.k.Run(ctx, kit.Command{Path: h.k.Lockstep(), Args: args, Limit: 20 * time.Second})
	if errors.Is(err, kit.ErrNoTime) {
		broken(h.p, "missing-analysis", err)
		return
	}
	analysis, parseErr := parseHang(out.Stdout) // it exits with 3 where it found something
	if parseErr != nil {
		h.p.Addf("missing-analysis", report.Failed, "%v: %v", parseErr, err)
		return
	}
	sentence, problems := missingProblems(analysis, came, world)
	h.judge("missing-analysis", problems, "lockstep analyze: "+sentence)
}

// cut reports whether the part's time ended before the job, and adds a line where so.
func (h *hangChecks) cut(name string, job *hangJob) bool {
	if !errors.Is(job.err, kit.ErrNoTime) {
		return false
	}
	broken(h.p, name, job.err)
	return true
}
