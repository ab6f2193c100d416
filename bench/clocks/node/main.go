// SPDX-License-Identifier: Apache-2.0

// Command node is one node of the lab: a prober and reflector on clocks that are
// wrong in a known way, or a reflector that lies. Its plan comes by standard input,
// what it finds goes to standard output, a line for each window.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
)

func main() {
	os.Exit(status()) //nolint:forbidigo // this is main
}

func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "node: %v\n", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	var n plan.Node
	if err := json.NewDecoder(in).Decode(&n); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	if n.Lie.Kind != "" {
		return lie(ctx, &n)
	}
	return probeAll(ctx, &n, out)
}
