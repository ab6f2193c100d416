// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// generated is when collectors start that read what is generated.
var generated = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

// generate makes inputs by simulation. The head makes them, once, and both revisions read the
// same bytes.
func (c *comparison) generate() (out places, err error) {
	for _, make := range []func(dir string) (places, error){simulatedJobs, simulatedHangs, simulatedSaves, toldFeeds} {
		made, err := make(filepath.Join(c.work, "inputs", "simulated"))
		if err != nil {
			return nil, fmt.Errorf("simulate: %w", err)
		}
		out = append(out, made...)
	}
	return out, nil
}

// jobs are simulated with one fault or imbalance each, in 28 steps where nothing else is said.
var jobs = []struct {
	name   string
	layout training.Layout
	fault  training.Fault
	// annotated is as of place.
	annotated bool
	steps     int
	again     training.Fault // after the first
}{
	{name: "healthy", layout: training.Layout{DP: 8}, fault: training.Fault{}},
	{name: "gpu clock", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.GPUClock, Severity: 1.5}, annotated: true},
	{name: "gpu clock for a while", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.GPUClock, Severity: 1.5, From: 4, To: 13}},
	{
		// The steps between are more than an analysis looks back, so that the finding closes.
		name: "gpu clock, twice", layout: training.Layout{DP: 4}, steps: 230,
		fault: training.Fault{Family: training.GPUClock, Severity: 2, From: 6, To: 25, Ranks: []int64{2}},
		again: training.Fault{Family: training.GPUClock, Severity: 2, From: 180, To: 200, Ranks: []int64{2}},
	},
	{
		name: "gpu clock, worse", layout: training.Layout{DP: 8}, steps: 70,
		fault: training.Fault{Family: training.GPUClock, Severity: 1.4, To: 30, Ranks: []int64{2}},
		again: training.Fault{Family: training.GPUClock, Severity: 3, From: 31, Ranks: []int64{2}},
	},
	{name: "ramp", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.Ramp, Severity: 3}, steps: 70},
	{name: "kernel choice", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.KernelChoice, Severity: 3}},
	{name: "data loader", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.HostDataLoader, Severity: 0.05}},
	{name: "garbage", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.HostGC, Severity: 0.06, Every: 4}},
	{name: "card", layout: training.Layout{DP: 8, PerNode: 1}, fault: training.Fault{Family: training.NICTx, Severity: 8}},
	{name: "link", layout: training.Layout{DP: 8, PerNode: 1}, fault: training.Fault{Family: training.Link, Severity: 8}},
	{name: "node", layout: training.Layout{DP: 16, PerNode: 4}, fault: training.Fault{Family: training.Node, Severity: 1.5}},
	{name: "job wide", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.JobWide, Severity: 1.3, From: 12}},
	{name: "jitter", layout: training.Layout{DP: 8}, fault: training.Fault{Family: training.Jitter, Severity: 0.05, Every: 4}},
	{name: "stage", layout: training.Layout{DP: 4, PP: 2, Microbatches: 4}, fault: training.Fault{Family: training.Stage, Severity: 0.5}, annotated: true},
}

func simulatedJobs(dir string) (out places, err error) {
	const steps, seed = 28, 7
	for _, j := range jobs {
		j.layout.Layers, j.layout.Coarse = 2, true
		spec := training.Spec{Name: j.name, Layout: j.layout, Steps: cmp.Or(j.steps, steps), Noise: training.DefaultNoise()}
		for _, f := range []training.Fault{j.fault, j.again} {
			if f.Family != "" {
				spec.Faults = append(spec.Faults, f)
			}
		}
		job, err := training.New(spec, seed)
		if err != nil {
			return nil, err
		}
		p, err := writeJob(filepath.Join(dir, "jobs", strings.ReplaceAll(j.name, " ", "-")), job)
		if err != nil {
			return nil, fmt.Errorf("write job %s: %w", j.name, err)
		}
		p.name, p.annotated = "simulated job, "+j.name, j.annotated
		out = append(out, p)
	}
	return out, nil
}

// writeJob writes a job as a file of OTLP JSON and as a feed that sends the steps as they end.
func writeJob(dir string, job *training.Job) (p place, err error) {
	ranks := job.Ranks()
	var file bytes.Buffer
	var f *feed
	for step, ok := job.Next(); ok; step, ok = job.Next() {
		for i := range ranks {
			ops := step.Ops(i)
			if len(ops) == 0 {
				continue
			}
			end := ops[0].End
			for k := range ops {
				end = max(end, ops[k].End)
			}
			if f == nil {
				p.start = time.Unix(0, ops[0].Start)
				f = newFeed(dir, ops[0].Start)
			}
			td := otelmap.OpsToTraces(&ranks[i], ops)
			line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
			if err != nil {
				return p, err
			}
			file.Write(line)
			file.WriteByte('\n')
			// Ranks follow each other, so that the order of arrival is always the same.
			f.line(end+int64(time.Duration(i+1)*time.Millisecond), "traces", line, nil)
		}
	}
	if f == nil {
		return p, errors.New("got no operations; want some")
	}
	if err := f.close(); err != nil {
		return p, err
	}
	p.path, p.kind, p.job = filepath.Join(dir, "job.json"), kindTraces, filepath.Join(dir, feedName)
	return p, os.WriteFile(p.path, file.Bytes(), 0o600)
}

// simulatedHangs are jobs that hang in each way, in one layout, with three kinds of evidence.
func simulatedHangs(dir string) (out places, err error) {
	evidences := []string{"whole", "torn", "json"}
	for n, family := range append([]string{hang.Healthy}, hang.Families()...) {
		var job *hang.Job
		for _, layout := range hang.Layouts[n%len(hang.Layouts):] {
			if job, err = hang.Run(layout, family, uint64(n+1)); !errors.Is(err, hang.ErrNoPlace) {
				break
			}
		}
		if errors.Is(err, hang.ErrNoPlace) {
			continue // no layout from here on can have this fault
		}
		if err != nil {
			return nil, err
		}
		evidence := evidences[n%len(evidences)]
		to := filepath.Join(dir, "hangs", family)
		if err := os.MkdirAll(to, 0o750); err != nil {
			return nil, err
		}
		dumps, _ := job.Collect(hang.Evidences[evidence], uint64(n+1))
		for _, d := range dumps {
			path, at := filepath.Join(to, hang.FileName(d.Rank)), time.Unix(0, d.At)
			if err := errors.Join(os.WriteFile(path, d.Data, 0o600), os.Chtimes(path, at, at)); err != nil {
				return nil, err
			}
		}
		if len(dumps) > 0 {
			out = append(out, place{name: "simulated hang, " + family + ", " + evidence, path: to, kind: kindDumps})
		}
	}
	return out, nil
}

// simulatedSaves are three saves of each way of saving: with the last one whole, cut off, or
// with something lost in a crash.
func simulatedSaves(dir string) (out places, err error) {
	all := ckptsim.Jobs()
	for n := range all {
		job := &all[n]
		trial, err := ckptsim.NewTrial(job, 2, 10, 20, 30)
		if err != nil {
			return nil, err
		}
		for i, end := range []struct {
			name  string
			steps int
			crash ckptsim.Crash
		}{
			{"whole", trial.Steps(), ckptsim.Kill}, {"killed", trial.Steps() / 2, ckptsim.Kill}, {"crashed", trial.Steps(), ckptsim.Few},
		} {
			state, err := trial.At(end.steps, end.crash, rand.New(rand.NewPCG(uint64(n), uint64(i)))) //nolint:gosec // a seed, no secret
			if err != nil {
				return nil, err
			}
			to := filepath.Join(dir, "saves", fmt.Sprintf("%d-%s", n, end.name))
			if err := writeState(state, to); err != nil {
				return nil, fmt.Errorf("write save of %s: %w", job.Name, err)
			}
			out = append(out, place{name: "simulated saves, " + job.Name + ", " + end.name, path: to, kind: kindCheckpoints})
		}
	}
	return out, nil
}

// writeState writes a state of a simulated disk, whose clock starts at generated less a day.
func writeState(state *ckptsim.State, to string) error {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	times := map[string]time.Time{}
	err := fs.WalkDir(state, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		times[path] = generated.Add(-24 * time.Hour).Add(info.ModTime().Sub(time.Unix(0, 0)))
		if d.IsDir() {
			return os.MkdirAll(path, 0o750)
		}
		data, err := fs.ReadFile(state, name)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o600)
	})
	// At the end: what is written into a folder changes its time.
	for path, at := range times {
		err = errors.Join(err, os.Chtimes(path, at, at))
	}
	return err
}
