// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parse:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

var errUsage = errors.New("usage: parse read FILE | parse compare [-runs N] [-python PYTHON] [-script parse.py] FILE")

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	switch args[0] {
	case "read":
		return read(ctx, args[1], os.Stdout)
	case "compare":
		return compareFlags(ctx, args[1:], os.Stdout)
	}
	return errUsage
}
