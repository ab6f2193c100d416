// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// revision is one of the two that are compared.
type revision struct {
	name   string // base or head
	commit string
	tree   string // its working tree
	out    string // its programs
	env    []string
}

// program is the path to one that was built.
func (r *revision) program(name string) string { return filepath.Join(r.out, name) }

// checkout makes a worktree of a revision below work. remove takes it away again, also after an
// interrupt.
func checkout(ctx context.Context, root, rev, work string) (r *revision, remove func() error, err error) {
	tree := filepath.Join(work, "base-tree")
	commit, err := git(ctx, root, "rev-parse", "--short=12", "--verify", rev+"^{commit}")
	if err != nil {
		return nil, nil, fmt.Errorf("find base %q: %w", rev, err)
	}
	remove = func() error {
		const patience = time.Minute
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_, err := git(ctx, root, "worktree", "remove", "--force", tree)
		return err
	}
	commit = strings.TrimSpace(commit)
	if _, err := git(ctx, root, "worktree", "add", "--detach", "--quiet", tree, commit); err != nil {
		_ = remove() // there may be nothing to remove; the first error says what is wrong
		return nil, nil, fmt.Errorf("check out base: %w", err)
	}
	r = &revision{name: "base", commit: commit, tree: tree, out: filepath.Join(work, "base"), env: os.Environ()}
	return r, remove, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, dir, nil, "git", args...)
}

// output runs a program and returns what it prints; an error has what it prints as errors.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// goTool runs the Go command in the revision's tree. With -trimpath both revisions take what
// they share from the build cache.
func (r *revision) goTool(ctx context.Context, args ...string) error {
	_, err := output(ctx, r.tree, r.env, "go", args...)
	return err
}

// collectorDir is the package of the program that runs a collector.
const collectorDir = "bench/compare/collector"

// small leaves out what debuggers need: the programs of both revisions take hundreds of MB.
const small = "-s -w"

// build makes the programs that the parts need.
func (r *revision) build(ctx context.Context, o *options) error {
	if err := os.MkdirAll(r.out, 0o750); err != nil {
		return fmt.Errorf("make folder for programs: %w", err)
	}
	packages := []string{}
	if o.has(partAnalyses) {
		packages = append(packages, "./cmd/lockstep")
	}
	if o.has(partScoreboard) {
		packages = append(packages, "./bench/scoreboard")
	}
	if o.has(partHang) {
		packages = append(packages, "./bench/hang")
	}
	if len(packages) > 0 {
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", small, "-o", r.out + string(filepath.Separator)}, packages...)
		if err := r.goTool(ctx, args...); err != nil {
			return fmt.Errorf("build %s: %w", r.name, err)
		}
	}
	return nil
}

// buildCollectors makes the program that runs a collector, of both revisions. The base gets
// that of the head, so that both record alike; where it does not compile there, its own is
// taken.
func buildCollectors(ctx context.Context, base, head *revision) (note string, err error) {
	if err := head.buildCollector(ctx); err != nil {
		return "", fmt.Errorf("build head: %w", err)
	}
	at := filepath.Join(base.tree, collectorDir)
	own := at + "-own"
	has := os.Rename(at, own) == nil
	if err := os.CopyFS(at, os.DirFS(filepath.Join(head.tree, collectorDir))); err != nil {
		return "", fmt.Errorf("copy the collector's program into the base: %w", err)
	}
	err = base.buildCollector(ctx)
	if err == nil || !has {
		return "", wrap("build base", err)
	}
	if e := errors.Join(os.RemoveAll(at), os.Rename(own, at)); e != nil {
		return "", fmt.Errorf("restore the base's own program: %w", e)
	}
	return "the base runs its own " + collectorDir + ", since that of the head does not compile there", wrap("build base", base.buildCollector(ctx))
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (r *revision) buildCollector(ctx context.Context) error {
	return r.goTool(ctx, "test", "-c", "-trimpath", "-ldflags", small, "-o", r.program("collector.test"), "./"+collectorDir)
}
