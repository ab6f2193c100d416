// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commands are what `lockstep` is asked of each kind of input; PATH is the input.
var commands = map[kind][]string{
	kindTraces: {
		"analyze PATH", "analyze --json PATH", "analyze --json --no-clock PATH", "analyze --heatmap --frequency PATH",
		"analyze --json --method kair PATH", "run distro/config/replay.yaml",
	},
	kindDumps:       {"analyze PATH", "analyze --json PATH", "analyze --hung PATH", "analyze --json --hung PATH"},
	kindCheckpoints: {"preflight PATH", "preflight --json PATH", "preflight --json --ignore-times PATH", "preflight --json --verify --allow-weights-only PATH"},
}

// analyses are all commands on all inputs.
func (c *comparison) analyses(found places) (out []input) {
	for _, p := range found {
		for _, command := range commands[p.kind] {
			if p.job != "" && strings.HasPrefix(command, "run") {
				continue // the configuration reads traces of the profiler alone
			}
			out = append(out, input{
				name: "lockstep " + strings.ReplaceAll(command, "PATH", "") + " " + p.name,
				run:  func(ctx context.Context, r *revision) (string, error) { return c.analysis(ctx, r, command, p.path) },
			})
		}
	}
	for i := range out {
		out[i].name = strings.Join(strings.Fields(out[i].name), " ")
	}
	return out
}

// analysis runs one command; what it exits with and prints is the result.
func (c *comparison) analysis(ctx context.Context, r *revision, command, path string) (string, error) {
	args := strings.Fields(command)
	for i := range args {
		if args[i] == "PATH" {
			args[i] = path
		}
	}
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program("lockstep"), args...)
	cmd.Dir = r.tree
	cmd.Env = append(r.env[:len(r.env):len(r.env)], "LOCKSTEP_TRACES="+path, "TERM=dumb", "COLUMNS=80")
	n := c.normal(r)
	n.from = time.Now().Add(-time.Minute)
	status, text, err := capture(ctx, cmd)
	n.to = time.Now().Add(time.Minute)
	if err != nil {
		return "", err
	}
	return n.apply(fmt.Sprintf("exit %d\n%s", status, text)), nil
}

// capture runs a program and returns its exit status, and what it printed in both ways.
func capture(ctx context.Context, cmd *exec.Cmd) (status int, text string, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		return 0, "", fmt.Errorf("run %s: %w", strings.Join(cmd.Args, " "), errors.Join(err, ctx.Err()))
	}
	return cmd.ProcessState.ExitCode(), "--- stdout\n" + stdout.String() + "--- stderr\n" + stderr.String(), nil
}

// normal knows the folders of this run.
func (c *comparison) normal(r *revision) *normal {
	return &normal{folders: map[string]string{
		filepath.Join(c.work, "inputs"): "<inputs>", r.tree: "<tree>", r.out: "<programs>", c.work: "<work>", c.head.tree: "<head>",
	}}
}
