// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	var cfg config
	sizes := flag.String("nodes", "64,1024,10000", "numbers of nodes, separated by commas")
	flag.IntVar(&cfg.k, "k", 10, "neighbours of each node")
	flag.Float64Var(&cfg.rate, "rate", 10, "exchanges a second of each pair")
	flag.Float64Var(&cfg.load, "load", 0.8, "share of time in which a queue is busy")
	flag.Float64Var(&cfg.outliers, "outliers", 0.01, "share of stamps that are wrong by up to 10 us")
	flag.IntVar(&cfg.warm, "warm", 8, "windows of 2 s before the first that counts")
	flag.IntVar(&cfg.windows, "windows", 3, "windows that count")
	flag.Uint64Var(&cfg.seed, "seed", 1, "of everything that is random")
	flag.Parse()
	if err := run(os.Stdout, cfg, *sizes); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(w io.Writer, cfg config, sizes string) error {
	var all []result
	fmt.Fprintln(w, header)
	for _, f := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 2 {
			return fmt.Errorf("read -nodes: got %q; want numbers of at least 2", f)
		}
		c := cfg
		c.nodes = n
		r, err := simulate(c)
		if err != nil {
			return fmt.Errorf("simulate %d nodes: %w", n, err)
		}
		fmt.Fprintln(w, r)
		all = append(all, r)
	}
	printGrowth(w, all)
	return judge(all)
}
