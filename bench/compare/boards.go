// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// once runs a program once for each revision, for inputs that show different sides of it.
type once struct {
	mu sync.Mutex
	by map[string]*result
}

// result is what a program printed.
type result struct {
	once sync.Once
	text string
	err  error
}

func (o *once) get(of *revision, run func() (string, error)) (string, error) {
	o.mu.Lock()
	if o.by == nil {
		o.by = map[string]*result{}
	}
	r := o.by[of.name]
	if r == nil {
		r = &result{}
		o.by[of.name] = r
	}
	o.mu.Unlock()
	r.once.Do(func() { r.text, r.err = run() })
	return r.text, r.err
}

// scoreboard is the quick run of bench/scoreboard: its figures, and each job and finding behind
// them, with the evidence. Both revisions score the scenarios of the head.
func (c *comparison) scoreboard() []input {
	var board once
	raw := func(r *revision) string { return filepath.Join(r.out, "scoreboard.jsonl") }
	run := func(ctx context.Context, r *revision) (string, error) {
		return board.get(r, func() (string, error) {
			cmd := exec.CommandContext(ctx, r.program("scoreboard"), "-quick", "-workers", "1", "-json", raw(r),
				"-scenarios", filepath.Join(c.head.tree, "bench", "scoreboard", "scenarios.yaml"))
			return tables(ctx, r, cmd)
		})
	}
	return []input{
		{name: "scoreboard -quick", figures: true, run: run},
		{name: "scoreboard -quick, jobs and findings", run: func(ctx context.Context, r *revision) (string, error) {
			if _, err := run(ctx, r); err != nil {
				return "", err
			}
			text, err := os.ReadFile(raw(r))
			if err != nil {
				return "", fmt.Errorf("read jobs and findings: %w", err)
			}
			shown, err := renderLines(text)
			if err != nil {
				return "", fmt.Errorf("read jobs and findings: %w", err)
			}
			return c.normal(r).apply(wallSeconds.ReplaceAllString(shown, "$1<duration>")), nil
		}},
	}
}

// wallSeconds is how long a method took.
var wallSeconds = regexp.MustCompile(`(?m)^(\s*seconds: ).*$`)

// hangs is a part of bench/hang that takes a minute: one seed, and a few kinds of evidence.
func (c *comparison) hangs() input {
	return input{name: "hang", figures: true, run: func(ctx context.Context, r *revision) (string, error) {
		cmd := exec.CommandContext(ctx, r.program("hang"), "-seed", "1", "-missing", "0,30", "-evidence", "whole,torn,joined", "-workers", "1")
		return tables(ctx, r, cmd)
	}}
}

// tables runs a program that prints them.
func tables(ctx context.Context, r *revision, cmd *exec.Cmd) (string, error) {
	cmd.Dir, cmd.Env = r.tree, append(r.env[:len(r.env):len(r.env)], "GOMAXPROCS=1")
	status, text, err := capture(ctx, cmd)
	if err != nil {
		return "", err
	}
	if status != 0 {
		return "", fmt.Errorf("run %s of %s: got exit status %d: %s", filepath.Base(cmd.Path), r.name, status, text[max(0, len(text)-1000):])
	}
	stdout, _, _ := strings.Cut(strings.TrimPrefix(text, "--- stdout\n"), "--- stderr\n")
	return stdout, nil
}
