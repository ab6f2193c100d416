// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/render"
	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
	"github.com/lockstep-otel/lockstep/internal/regular"
	"github.com/lockstep-otel/lockstep/internal/report/terminal"
)

// preflightOptions are the flags of preflight.
type preflightOptions struct {
	json      bool
	epoch     int64
	worldSize int64
	verify    bool
	timeout   time.Duration

	allowEmpty, allowWeightsOnly, ignoreTimes bool
}

func newPreflight() *cobra.Command {
	o := &preflightOptions{}
	cmd := &cobra.Command{
		Use:   "preflight DIR...",
		Short: "Say whether a job may resume from its checkpoint: is it whole, and of one epoch?",
		Long: "Reads the checkpoints in DIR (a folder of saves, or one save), or in one DIR for each storage\n" +
			"that has parts of them, and says whether every persistence domain confirms the epoch that the\n" +
			"job would resume from. It loads no tensor and writes nothing. For an init container, or a\n" +
			"prolog of Slurm.\n\n" +
			"Exit status: 0 every domain confirms the epoch, 3 not so, not known or not all could be read,\n" +
			"2 nothing could be read, or wrong usage.",
		Example: "  lockstep preflight /checkpoints/job7\n" +
			"  lockstep preflight --allow-empty /checkpoints/job7\n" +
			"  lockstep preflight --epoch 12000 --json /checkpoints/job7 | jq .verdict\n" +
			"  lockstep preflight /nvme/node-0/ckpt /nvme/node-1/ckpt",
		Args: somePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
	f.Int64Var(&o.epoch, "epoch", -1, "epoch (step, iteration) to resume from (default: what the job's own loader would take)")
	f.Int64Var(&o.worldSize, "world-size", 0, "number of ranks that wrote a save, where it does not say so itself")
	f.BoolVar(&o.verify, "verify", false, "read all bytes of files with checksums and compare")
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "take an empty folder for a job's first start")
	f.BoolVar(&o.allowWeightsOnly, "allow-weights-only", false, "accept a save of weights alone, as initial weights")
	f.BoolVar(&o.ignoreTimes, "ignore-times", false, "take no modification time for evidence, as of copies that lost them")
	f.Lookup("epoch").DefValue = "0" // which is not shown
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "give up on file systems that do not answer within this time")
	return cmd
}

func (o *preflightOptions) run(cmd *cobra.Command, dirs []string) error {
	if err := o.check(cmd); err != nil {
		return fmt.Errorf("check flags: %w", err)
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	places, err := o.read(ctx, dirs)
	if err != nil {
		return o.refuse(cmd, err)
	}
	var asked model.Optional[int64]
	if cmd.Flags().Changed("epoch") {
		asked = model.Some(o.epoch)
	}
	r := preflight.JudgeAccepting(places, asked, preflight.Accept{WeightsOnly: o.allowWeightsOnly, Empty: o.allowEmpty})
	if err := o.write(cmd.OutOrStdout(), r); err != nil {
		return failure{err}
	}
	if !r.OK() {
		return statusError(exitFindings)
	}
	return nil
}

// unreadable is a folder that could not be read.
type unreadable struct {
	dir string
	err error
}

func (u *unreadable) Error() string { return fmt.Sprintf("read %q: %v", u.dir, u.err) }
func (u *unreadable) Unwrap() error { return u.err }

// refuse says which folder could not be read; --json says it in its object, too.
func (o *preflightOptions) refuse(cmd *cobra.Command, err error) error {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "lockstep: %v\n", err)
	var u *unreadable
	if o.json && errors.As(err, &u) {
		r := &preflight.Result{Verdict: epoch.Unknown, Why: err.Error(), Problems: []preflight.Problem{
			{Place: u.dir, Problem: ckpt.Problem{Check: ckpt.CheckInput, Severity: ckpt.Unreadable, File: ".", What: u.err.Error()}},
		}}
		if err := o.write(cmd.OutOrStdout(), r); err != nil {
			return failure{err}
		}
	}
	return statusError(exitUnusable)
}

func (o *preflightOptions) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("epoch") && o.epoch < 0:
		return fmt.Errorf("check --epoch: got %d; want 0 or more", o.epoch)
	case cmd.Flags().Changed("epoch") && o.allowEmpty:
		return fmt.Errorf("check --allow-empty: got --epoch %d, too, which an empty folder does not hold; want one of the two", o.epoch)
	case o.worldSize < 0 || o.worldSize > frwatch.MaxRanks:
		return fmt.Errorf("check --world-size: got %d; want 1 to %d, or 0 for what the save says", o.worldSize, frwatch.MaxRanks)
	case o.timeout <= 0:
		return fmt.Errorf("check --timeout: got %v; want more than 0", o.timeout)
	}
	return nil
}

func (o *preflightOptions) write(w io.Writer, r *preflight.Result) error {
	if o.json {
		return writePreflightJSON(w, r)
	}
	return render.WritePreflight(w, r, terminal.StyleOf(w, os.Getenv))
}

// read reads every folder. A file system that does not answer is waited for until ctx is
// done; its call is left behind, and ends with the program.
func (o *preflightOptions) read(ctx context.Context, dirs []string) ([]preflight.Place, error) {
	places := make([]preflight.Place, 0, len(dirs))
	seen := map[string]bool{}
	for _, dir := range dirs {
		place := filepath.Clean(dir)
		if seen[place] {
			return nil, &unreadable{dir, errors.New("it is given twice; want different folders")}
		}
		seen[place] = true
		p, err := o.readOne(ctx, dir)
		if err != nil {
			return nil, &unreadable{dir, err}
		}
		places = append(places, p)
	}
	return places, nil
}

func (o *preflightOptions) readOne(ctx context.Context, dir string) (preflight.Place, error) {
	type answer struct {
		place preflight.Place
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		d, err := openFolder(dir)
		if err != nil {
			done <- answer{err: err}
			return
		}
		defer func() { _ = d.Close() }()
		root := ckpt.Read(ctx, d, ckpt.Options{WorldSize: o.worldSize, Verify: o.verify, IgnoreTimes: o.ignoreTimes})
		done <- answer{place: preflight.Place{Name: dir, Root: root}, err: ctx.Err()}
	}()
	select {
	case a := <-done:
		return a.place, a.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return preflight.Place{}, fmt.Errorf("the file system does not answer: got nothing in %v; want it within --timeout", o.timeout)
		}
		return preflight.Place{}, ctx.Err()
	}
}

// openFolder opens a folder of saves. A folder that is not there may be a mount that failed:
// --allow-empty does not accept it. A pipe is not opened, as that waits for its writer.
func openFolder(dir string) (*ckpt.Dir, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(dir, "://"):
		return nil, errors.New("got an address of a store; want a local folder, as only local folders are read: mount the store, or copy the save")
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("got no such file or directory; a mount that failed looks like that: mount it, or make the folder before the first start")
	case err != nil:
		return nil, bare(err)
	case info.Mode().IsRegular():
		return nil, errors.New("got a file; want the folder that holds it")
	case !info.IsDir():
		return nil, fmt.Errorf("got %s; want a folder", regular.Kind(info.Mode()))
	}
	return ckpt.OpenDir(dir)
}
