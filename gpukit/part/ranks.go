// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/model"
)

//go:embed ranks.yaml
var ranksConfig []byte

const (
	ranksWorld  = 2
	ranksFault  = 1  // the rank that has the fault
	ranksSteps  = 60 // of each case
	ranksLimit  = 45 * time.Second
	ranksDrain  = 1500 * time.Millisecond // the collector polls rings every 50 ms
	ranksEnding = 15 * time.Second        // of the collector
)

// rankCase is one job and what the collector is to find in it.
type rankCase struct {
	fault   string
	classes []string // that are right; none: no finding is
	cause   string
}

var rankCases = []rankCase{
	{fault: "none"},
	{fault: "compute", classes: []string{model.ClassCompute}},
	{fault: "cpu", classes: []string{model.ClassHost}},
	{fault: "data", classes: []string{model.ClassHost}, cause: model.CauseDataLoader},
	// A rank with twice the rows has larger grids, or more of the same kernels.
	{fault: "work", classes: []string{model.ClassCompute, model.ClassWorkImbalance}},
}

func ranksPart() Part {
	return Part{
		Name:  "ranks",
		Title: "Two ranks that share the GPU, one of them slowed: the collector names it",
		Limit: 150 * time.Second,
		Run:   runRanks,
	}
}

func runRanks(ctx context.Context, k *kit.Kit, p *report.Part) {
	if k.Torch == nil {
		p.Add("ranks", report.NotShown, "the ranks need PyTorch: "+k.Reason)
		return
	}
	var kept []kit.Entry
	for _, c := range rankCases {
		if ctx.Err() != nil {
			p.Addf("named-"+c.fault, report.Failed, "not run: the part's time was over")
			continue
		}
		entries, err := c.run(ctx, k, p)
		if err != nil {
			p.Add("named-"+c.fault, report.Failed, err.Error())
		}
		kept = append(kept, entries...)
	}
	if err := k.Fixture("ranks", kept...); err != nil {
		p.Add("fixture", report.Failed, err.Error())
	}
}

// run runs one job beside a collector and judges what that found.
func (c rankCase) run(ctx context.Context, k *kit.Kit, p *report.Part) ([]kit.Entry, error) {
	dir := filepath.Join(k.Work, c.fault)
	rings, findings := filepath.Join(dir, "rings"), filepath.Join(dir, "findings.jsonl")
	if err := os.MkdirAll(rings, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of rings: %w", err)
	}
	config := filepath.Join(dir, "ranks.yaml")
	if err := os.WriteFile(config, ranksConfig, 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	collector, err := k.Start(ctx, kit.Command{
		Path: k.Lockstep(), Args: []string{"run", config},
		Env: []string{"LOCKSTEP_DIR=" + rings, "LOCKSTEP_FINDINGS=" + findings},
	})
	if err != nil {
		return nil, err
	}
	did, ranksErr := c.train(ctx, k, rings)
	if ranksErr == nil {
		pause(ctx, ranksDrain)
	}
	err = errors.Join(ranksErr, collector.End(ranksEnding))
	if err != nil {
		return nil, err
	}
	found, err := readFindings(findings)
	if err != nil {
		return nil, err
	}
	c.judge(p, seenAs(k), found, did)
	c.kernels(p, k, rings)
	entry, err := kit.FileEntry(findings)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	entry.Name = c.fault + "-" + entry.Name
	return []kit.Entry{entry}, err
}

// rankDid is what a rank prints of itself.
type rankDid struct {
	Rank   int     `json:"rank"`
	World  int     `json:"world"`
	Steps  int     `json:"steps"`
	StepMS float64 `json:"step_ms"`
	First  float64 `json:"loss_first"`
	Last   float64 `json:"loss_last"`
}

// train runs the ranks to their end.
func (c rankCase) train(ctx context.Context, k *kit.Kit, rings string) ([]rankDid, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-m", "lockstep_scope", k.Program("ranks.py"),
		"--steps", strconv.Itoa(ranksSteps), "--fault", c.fault, "--fault-rank", strconv.Itoa(ranksFault)}
	env := []string{
		"PYTHONPATH=" + k.Packages(), "CUDA_INJECTION64_PATH=" + k.Plugin(), "LOCKSTEP_DIR=" + rings,
		"LOCKSTEP_JOB_ID=ranks-" + c.fault, "LOCKSTEP_RING_LANES=8", "LOCKSTEP_DEBUG=1",
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + strconv.Itoa(port), "GLOO_SOCKET_IFNAME=lo",
		"WORLD_SIZE=" + strconv.Itoa(ranksWorld),
	}
	if k.GPU == nil {
		env = append(env, "LOCKSTEP_CUPTI="+k.StandIn(standInCUPTI))
		args = append(args, "--stand-in", k.StandIn(standInCUPTI), k.Plugin())
	}
	ctx, cancel := context.WithTimeout(ctx, ranksLimit)
	defer cancel()
	var processes []*kit.Process
	for rank := range ranksWorld {
		p, err := k.Start(ctx, kit.Command{Path: k.Python, Args: args,
			Env: append(slices.Clone(env), fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("LOCAL_RANK=%d", rank))})
		if err != nil {
			cancel()
			return nil, errors.Join(err, waitAll(processes))
		}
		processes = append(processes, p)
	}
	err = waitAll(processes)
	var did []rankDid
	for _, p := range processes {
		result, _ := p.Wait()
		var d rankDid
		if json.Unmarshal([]byte(kit.LastLine(result.Stdout)), &d) == nil {
			did = append(did, d)
		}
	}
	if err == nil && len(did) != ranksWorld {
		err = fmt.Errorf("read what the ranks did: got %d of them; want %d", len(did), ranksWorld)
	}
	return did, err
}

// waitAll waits for all, and returns the first error by the time at which they ended.
func waitAll(processes []*kit.Process) error {
	ended := make(chan error, len(processes))
	for _, p := range processes {
		go func() {
			_, err := p.Wait()
			ended <- err
		}()
	}
	var first error
	for range processes {
		if err := <-ended; first == nil {
			first = err
		}
	}
	return first
}

// judge adds whether the findings, in the latest revision of each, name the rank.
func (c rankCase) judge(p *report.Part, status report.Status, found []model.Finding, did []rankDid) {
	figures := []report.Figure{}
	for _, d := range did {
		figures = append(figures, report.Figure{Name: fmt.Sprintf("step of rank %d", d.Rank), Value: d.StepMS, Unit: "ms"})
	}
	text, right := c.verdict(latest(found))
	if !right {
		status = report.Failed
	}
	p.Add("named-"+c.fault, status, text, figures...)
}

// verdict says what the findings come to, and whether that is right.
func (c rankCase) verdict(found []model.Finding) (text string, right bool) {
	var says []string
	named := 0
	right = true
	for _, f := range found {
		says = append(says, sayFinding(f))
		if c.names(f) {
			named++
		} else {
			right = false
		}
	}
	if len(says) == 0 {
		says = []string{"nothing"}
	}
	text = strings.Join(says, "; ")
	if len(c.classes) == 0 {
		return "a healthy job: found " + text, len(found) == 0
	}
	want := fmt.Sprintf("rank %d, class %s", ranksFault, strings.Join(c.classes, " or "))
	if c.cause != "" {
		want += ", cause " + c.cause
	}
	return fmt.Sprintf("fault %s: found %s; want %s", c.fault, text, want), right && named > 0
}

// names says whether the finding names the rank with the fault as it should.
func (c rankCase) names(f model.Finding) bool {
	return f.Kind == model.FindingStraggler && f.Rank == model.Some[int64](ranksFault) && slices.Contains(c.classes, f.Class) && (c.cause == "" || f.Cause == c.cause)
}

func sayFinding(f model.Finding) string {
	who := "no rank"
	if f.Rank.OK {
		who = fmt.Sprintf("rank %d", f.Rank.V)
	}
	text := fmt.Sprintf("%s, class %s", who, f.Class)
	if f.Cause != "" {
		text += ", cause " + f.Cause
	}
	if f.CostSeconds.OK {
		text += fmt.Sprintf(", %.1f ms a step", f.CostSeconds.V*1e3)
	}
	return fmt.Sprintf("%s (confidence %.2f)", text, f.Confidence)
}

// latest returns the newest revision of each finding, in order of their first.
func latest(found []model.Finding) []model.Finding {
	at := map[string]int{}
	var newest []model.Finding
	for _, f := range found {
		i, known := at[f.ID]
		switch {
		case !known:
			at[f.ID] = len(newest)
			newest = append(newest, f)
		case f.Revision >= newest[i].Revision:
			newest[i] = f
		}
	}
	return newest
}

// freePort returns a port of the loopback interface that was free just now.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// pause waits for d, or less where ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
