// SPDX-License-Identifier: Apache-2.0

// Command lab measures clocks between network namespaces, where the truth is known:
// the probe mesh beside chronyd and ptp4l. It is run by bench/clocks/run.sh.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: lab rates|changes|liars|compare [flags]
       lab replay FILE...
The former need root, iproute2, chrony and linuxptp. With -record they leave files, which
replay judges once more by the code as it is then: the same packets and the same truth.
`

func main() {
	os.Exit(status(os.Args[1:])) //nolint:forbidigo // this is main
}

func status(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, args, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		return 1
	}
	return 0
}

// options are common to all commands.
type options struct {
	nodes  int
	length time.Duration
	node   string // the node program
	seed   uint64
	only   string // part of the names of the cases that are run
	pure   time.Duration
	folder string // of recordings; empty: nothing is recorded
}

// lab is what the commands work with.
type lab struct {
	options
	net *network
	dir string
	out io.Writer
}

func run(ctx context.Context, args []string, w io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("parse command: got none; want one\n%s", usage)
	}
	if args[0] == "spin" {
		spin()
	}
	if args[0] == "replay" {
		return replay(args[1:], w)
	}
	commands := map[string]func(*lab, context.Context) error{
		"rates": (*lab).rates, "changes": (*lab).changes, "liars": (*lab).liars, "compare": (*lab).compare,
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("parse command: got %q; want rates, changes, liars, compare or replay", args[0])
	}
	l := &lab{out: w}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.IntVar(&l.nodes, "nodes", 8, "nodes of the mesh, 2 to 10")
	flags.DurationVar(&l.length, "length", 20*time.Second, "how long each case is measured")
	flags.StringVar(&l.node, "node", "bin/bench-clocks-node", "the node program")
	flags.Uint64Var(&l.seed, "seed", 1, "of the clocks")
	flags.StringVar(&l.only, "only", "", "run the cases whose names contain this")
	flags.DurationVar(&l.pure, "pure", 0, "count only coded pairs whose spacing changed by no more; 0: all packets")
	flags.StringVar(&l.folder, "record", "", "folder in which each case leaves what its estimators were given, for replay; 1 GiB of each at most, before compression")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if l.nodes < 2 || l.nodes > 10 {
		return fmt.Errorf("parse flags: got %d nodes; want 2 to 10", l.nodes)
	}
	var err error
	if l.net, err = newNetwork(ctx, l.nodes); err != nil {
		return err
	}
	defer l.net.close()
	if l.dir, err = os.MkdirTemp("", "lslab-*"); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	defer os.RemoveAll(l.dir)
	return command(l, ctx)
}
