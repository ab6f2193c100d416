// SPDX-License-Identifier: Apache-2.0

// Command demo measures with the demo's job: what a job pays for the profiler
// plugin (cost), what its training thread feels of being watched (pause), whether
// every fault is found (faults), with which witnesses (witnesses), whether a job that hangs is
// told of (hangs) and one that only stands still is not (quiet). The scripts beside it build what
// it needs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: demo cost|pause|faults|witnesses|hangs|quiet [flags]
Needs bin/ of the repository: lockstep, lockstep-demo-worker, the plugin, and for
witnesses the stand-in for CUPTI.
`

func main() {
	os.Exit(status(os.Args[1:])) //nolint:forbidigo // this is main
}

func status(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, args, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("parse command: got none; want one\n%s", usage)
	}
	commands := map[string]func(context.Context, *flag.FlagSet, []string, io.Writer) error{
		"cost": cost, "pause": pause, "faults": faults, "witnesses": witnesses,
		"hangs": hangs, "quiet": quiet,
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("parse command: got %q; want cost, pause, faults, witnesses, hangs or quiet", args[0])
	}
	return command(ctx, flag.NewFlagSet(args[0], flag.ContinueOnError), args[1:], w)
}

// tmpfs returns a directory that is one on most machines, else the usual one for
// temporary files, whose pages the kernel writes to a disk now and then.
func tmpfs() string {
	const shm = "/dev/shm"
	if st, err := os.Stat(shm); err == nil && st.IsDir() {
		return shm
	}
	return os.TempDir()
}
