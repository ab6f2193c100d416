// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// wantRatio is how many times faster than Python the reader has to be.
	wantRatio = 5
	// wantBase and wantPerEvent bound the reader's peak memory, in bytes.
	wantBase     = 64 << 20
	wantPerEvent = 64
)

// outcome is one run of one side, as a whole process.
type outcome struct {
	wall   time.Duration
	peak   int64 // bytes, maximum resident set
	counts counts
}

// side is one of the two programs.
type side struct {
	name    string
	command []string
	runs    []outcome
}

func compareFlags(ctx context.Context, args []string, out io.Writer) error {
	set := flag.NewFlagSet("compare", flag.ContinueOnError)
	runs := set.Int("runs", 5, "runs of each side")
	python := set.String("python", "python3", "Python interpreter")
	script := set.String("script", "bench/parse.py", "Python's side")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 || *runs < 1 {
		return errUsage
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	file := set.Arg(0)
	theirs := &side{name: "python json", command: []string{*python, *script, file}}
	ours := &side{name: "lockstep", command: []string{self, "read", file}}
	for range *runs {
		for _, s := range []*side{theirs, ours} {
			if err := s.run(ctx); err != nil {
				return err
			}
		}
	}
	return report(out, file, theirs, ours)
}

// run starts the side's program once and waits for it.
func (s *side) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", s.name, err)
	}
	o := outcome{wall: time.Since(begin), peak: peakOf(cmd.ProcessState)}
	if err := json.Unmarshal(stdout.Bytes(), &o.counts); err != nil {
		return fmt.Errorf("read output of %s: %w", s.name, err)
	}
	s.runs = append(s.runs, o)
	return nil
}

// median is the wall time in the middle; of two, the longer.
func (s *side) median() time.Duration {
	walls := make([]time.Duration, len(s.runs))
	for i, o := range s.runs {
		walls[i] = o.wall
	}
	slices.Sort(walls)
	return stats.MedianHigh(walls)
}

func (s *side) spread() (least, most time.Duration) {
	byWall := func(a, b outcome) int { return int(a.wall - b.wall) }
	return slices.MinFunc(s.runs, byWall).wall, slices.MaxFunc(s.runs, byWall).wall
}

// peak is the largest of all runs.
func (s *side) peak() int64 {
	return slices.MaxFunc(s.runs, func(a, b outcome) int { return int(a.peak - b.peak) }).peak
}

var errMissed = errors.New("a goal was missed")

func report(out io.Writer, file string, theirs, ours *side) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("look at trace: %w", err)
	}
	fmt.Fprintf(out, "%s (%.1f MB on disk, %d runs of each, alternating)\n", filepath.Base(file), float64(info.Size())/1e6, len(ours.runs))
	for _, s := range []*side{theirs, ours} {
		least, most := s.spread()
		c := s.runs[0].counts
		fmt.Fprintf(out, "  %-12s median %8.1f ms (%.1f to %.1f), peak %7.1f MiB; %d events, %d operations, %d launched, %d collectives, %d steps\n",
			s.name, millis(s.median()), millis(least), millis(most), mebi(s.peak()), c.Events, c.Operations, c.Launched, c.Collectives, c.Steps)
	}
	ratio := float64(theirs.median()) / float64(ours.median())
	kept := ours.runs[0].counts.Kept
	limit := wantBase + wantPerEvent*kept
	fast, small := ratio >= wantRatio, ours.peak() <= limit
	fmt.Fprintf(out, "  ratio %.1f; want at least %d: %s\n", ratio, wantRatio, verdict(fast))
	fmt.Fprintf(out, "  peak %.1f MiB with %d events kept; want at most %.1f MiB: %s\n", mebi(ours.peak()), kept, mebi(limit), verdict(small))
	if !fast || !small {
		return errMissed
	}
	return nil
}

func verdict(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

func mebi(n int64) float64 { return float64(n) / (1 << 20) }
