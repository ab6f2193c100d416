// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

//go:embed ranks.yaml
var ranksConfig []byte

const (
	ranksWorld  = 2
	ranksFault  = 1                // the rank that has the fault
	ranksSteps  = 60               // of each job
	ranksLeast  = 10 * time.Second // of the part's, for a job to begin
	ranksEnding = 15 * time.Second // of the collector
)

// ranksLimit bounds the ranks of a job; tests shorten it.
var ranksLimit = 60 * time.Second

// ranksDrain is how long the collector has for the last of the rings, which it polls every
// 50 ms; tests shorten it.
var ranksDrain = 1500 * time.Millisecond

// source is what the ranks are judged from.
type source int

const (
	fromRings  source = iota // live, by a collector
	fromTraces               // of PyTorch's profiler, by lockstep analyze
)

// rankCase is one job and what is to be found in it.
type rankCase struct {
	name    string // of its check
	fault   string
	classes []string // that are right; none: no finding is
	cause   string
	source  source
	nccl    bool    // NCCL between the ranks, on a GPU alone; else Gloo
	way     *gpuWay // with NCCL: to have both ranks on the one GPU
}

var (
	onlyCompute = []string{model.ClassCompute}
	onlyHost    = []string{model.ClassHost}
)

// rankCases are in the order in which they run: what matters most, first, since all of
// them share the part's time.
var rankCases = []rankCase{
	{name: "healthy", fault: "none"},
	{name: "compute", fault: "compute", classes: onlyCompute},
	{name: "cpu", fault: "cpu", classes: onlyHost},
	{name: "nccl-compute", fault: "compute", classes: onlyCompute, nccl: true},
	{name: "traces-compute", fault: "compute", classes: onlyCompute, source: fromTraces, nccl: true},
	{name: "data", fault: "data", classes: onlyHost, cause: model.CauseDataLoader},
	{name: "nccl-healthy", fault: "none", nccl: true},
	// A rank with more rows has larger grids, or more of the same kernels.
	{name: "work", fault: "work", classes: []string{model.ClassCompute, model.ClassWorkImbalance}},
	{name: "traces-cpu", fault: "cpu", classes: onlyHost, source: fromTraces},
}

// ranksPart returns the part that slows one of two ranks on one GPU.
func ranksPart() Part {
	return Part{
		Name:     "ranks",
		Loopback: true,
		Title:    "Two ranks that share the GPU, one of them slowed",
		Limit:    180 * time.Second,
		Run:      runRanks,
	}
}

func runRanks(ctx context.Context, k *kit.Kit, p *report.Part) {
	if k.Torch == nil {
		p.Add("ranks", report.NotShown, "the ranks need PyTorch: "+k.Reason)
		return
	}
	var kept, rings []kit.Entry
	ways, err := gpuWays(k)
	if err != nil {
		p.Add("ways", report.Failed, err.Error())
	}
	for _, c := range rankCases {
		switch {
		case c.nccl && k.GPU == nil:
			p.Addf(c.name, report.NotShown, "NCCL needs a GPU")
		case c.nccl && len(ways) == 0:
			p.Add(c.name, report.NotShown, noWay)
		case room(ctx, p, c.name, ranksLeast):
			if c.nccl {
				c.way = &ways[0]
			}
			kept = append(kept, c.run(ctx, k, p)...)
			rings = append(rings, c.rings(p, k)...)
		}
	}
	k.Keep(p, "ranks", rings, kept...)
}

// run runs one job and adds its check. It returns what is to be kept.
func (c rankCase) run(ctx context.Context, k *kit.Kit, p *report.Part) []kit.Entry {
	dir := filepath.Join(k.Work, c.name)
	logged := len(k.Log.String())
	found, did, err := c.found(ctx, k, dir)
	defer c.ended(p, did)
	refusal := ncclRefusal(since(k.Log.String(), logged))
	switch {
	case errors.Is(err, kit.ErrNoTime):
		broken(p, c.name, err)
		return nil
	case err != nil && c.nccl && refusal != "":
		p.Addf(c.name, report.NotShown, "NCCL refuses two ranks on one GPU here: %s", refusal)
		return c.keep(p, dir)
	case err != nil:
		p.Add(c.name, report.Failed, err.Error())
	default:
		c.judge(p, k.Right(), found, did)
	}
	if c.source == fromRings && (c.name == rankCases[0].name || c.nccl) {
		c.sources(p, k.Right(), dir)
	}
	return c.keep(p, dir)
}

// since returns what a log that had n bytes got: other parts log the same.
func since(log string, n int) string { return log[min(n, len(log)):] }

func (c rankCase) found(ctx context.Context, k *kit.Kit, dir string) ([]model.Finding, []rankDid, error) {
	if err := os.MkdirAll(filepath.Join(dir, "rings"), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make folder of a job: %w", err)
	}
	if c.source == fromTraces {
		return c.analyzed(ctx, k, dir)
	}
	return c.watched(ctx, k, dir)
}

// watched trains beside a collector, and returns what that found.
func (c rankCase) watched(ctx context.Context, k *kit.Kit, dir string) ([]model.Finding, []rankDid, error) {
	config, findings := filepath.Join(dir, "ranks.yaml"), filepath.Join(dir, findingsFile)
	if err := os.WriteFile(config, ranksConfig, 0o600); err != nil {
		return nil, nil, fmt.Errorf("write configuration: %w", err)
	}
	collector, err := k.Start(ctx, kit.Command{
		Path: k.Lockstep(), Args: []string{"run", config},
		Env: []string{"LOCKSTEP_DIR=" + filepath.Join(dir, "rings"), "LOCKSTEP_FINDINGS=" + findings},
	})
	if err != nil {
		return nil, nil, err
	}
	did, err := c.train(ctx, k, dir)
	if err == nil {
		pause(ctx, ranksDrain)
	}
	if err := errors.Join(err, collector.End(ranksEnding)); err != nil {
		return nil, did, err
	}
	result, _ := collector.Wait() // End returned the error
	if err := wasRead(result.Stdout); err != nil {
		return nil, did, err
	}
	found, err := readFindings(findings)
	return found, did, err
}

// analyzed trains under PyTorch's profiler, and returns what lockstep analyze found.
func (c rankCase) analyzed(ctx context.Context, k *kit.Kit, dir string) ([]model.Finding, []rankDid, error) {
	did, err := c.train(ctx, k, dir)
	if err != nil {
		return nil, did, err
	}
	// Its status is 3 where it found something.
	result, err := k.Run(ctx, kit.Command{Path: k.Lockstep(), Args: []string{"analyze", "--json", dir}})
	if result.Stdout == "" {
		return nil, did, err
	}
	found, err := analyzedFindings([]byte(result.Stdout))
	return found, did, err
}

// rankDid is what a rank prints of itself.
type rankDid struct {
	// Late: its process did not end in time, after it had printed this.
	Late bool `json:"-"`

	Rank   int     `json:"rank"`
	StepMS float64 `json:"step_ms"`
	// CameMS is when it came to the collectives of each step, ms of the machine's
	// monotonic clock, by the device's own events.
	CameMS []float64 `json:"came_ms"`
}

// train runs the ranks to their end.
func (c rankCase) train(ctx context.Context, k *kit.Kit, dir string) ([]rankDid, error) {
	return c.trainFor(ctx, k, dir, ranksLimit)
}

// trainFor runs the ranks to their end, within a limit. A rank that has printed what it
// did counts, though its process did not end by then, which is Late.
func (c rankCase) trainFor(ctx context.Context, k *kit.Kit, dir string, limit time.Duration) ([]rankDid, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	command := func(rank int) kit.Command { return c.command(k, dir, rank, port) }
	processes, err := runJob(ctx, k, ranksWorld, limit, command, func(context.Context) {})
	if err != nil && !errors.Is(err, kit.ErrLimit) {
		return nil, err
	}
	did := make([]rankDid, len(processes))
	for i, p := range processes {
		result, ended := p.Wait()
		if readErr := object(result, &did[i]); readErr != nil {
			return nil, errors.Join(err, fmt.Errorf("read what rank %d did: %w", i, readErr))
		}
		did[i].Late = errors.Is(ended, kit.ErrLimit)
	}
	return did, nil
}

func (c rankCase) command(k *kit.Kit, dir string, rank, port int) kit.Command {
	args := []string{k.Program("ranks.py"), "--steps", strconv.Itoa(ranksSteps), "--fault", c.fault, "--fault-rank", strconv.Itoa(ranksFault)}
	env := []string{
		fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("LOCAL_RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", ranksWorld),
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + strconv.Itoa(port), "GLOO_SOCKET_IFNAME=lo",
	}
	if c.nccl {
		args = append(args, "--backend", "nccl")
		env = append(append(env, ncclNetwork...), "NCCL_SOCKET_IFNAME=lo", "NCCL_DEBUG=WARN")
		env = append(env, c.way.Env(rank)...)
	}
	if c.source == fromTraces {
		args = append(args, "--profile", dir)
	} else {
		args = append([]string{"-m", "lockstep_scope"}, args...)
		env = append(env, "PYTHONPATH="+k.Packages(), "CUDA_INJECTION64_PATH="+k.Plugin(), "NCCL_PROFILER_PLUGIN="+k.Plugin(),
			"LOCKSTEP_DIR="+filepath.Join(dir, "rings"), "LOCKSTEP_JOB_ID="+c.name, "LOCKSTEP_RING_LANES=8", "LOCKSTEP_DEBUG=1")
	}
	if k.GPU == nil {
		env = append(env, "LOCKSTEP_CUPTI="+k.StandIn(standInCUPTI))
		args = append(args, "--stand-in", k.StandIn(standInCUPTI), k.Plugin())
	}
	return withRoom(k, kit.Command{Path: k.Python, Args: args, Env: env})
}

const findingsFile = "findings.jsonl"

// keep returns the findings or traces of the job.
func (c rankCase) keep(p *report.Part, dir string) (kept []kit.Entry) {
	paths, err := filepath.Glob(filepath.Join(dir, "rank*.json.gz"))
	if err != nil {
		p.Addf("fixture", report.Failed, "list traces: %v", err)
	}
	for _, path := range append(paths, filepath.Join(dir, findingsFile)) {
		entry, err := kit.FileEntry(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			p.Add("fixture", report.Failed, err.Error())
			continue
		}
		entry.Name = c.name + "/" + entry.Name
		kept = append(kept, entry)
	}
	return kept
}

// rings returns those of the job, as far as they can be read: what was wrong is found in them.
func (c rankCase) rings(p *report.Part, k *kit.Kit) (entries []kit.Entry) {
	paths, err := filepath.Glob(filepath.Join(k.Work, c.name, "rings", "*"+ring.Suffix))
	if err != nil {
		return nil // the pattern has no class that could be broken
	}
	for i, path := range paths {
		entry, err := kit.FileEntry(path)
		if err != nil {
			p.Add("fixture", report.Failed, err.Error())
			continue
		}
		entry.Name = fmt.Sprintf("%s/%d%s", c.name, i, ring.Suffix)
		entries = append(entries, entry)
	}
	return entries
}

// freePort returns a port of the loopback interface that was free just now.
func freePort(ctx context.Context) (int, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return strconv.Atoi(port)
}

// pause waits for d, or less where ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
