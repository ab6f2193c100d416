// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/probe"
)

func probeAll(ctx context.Context, n *plan.Node, out io.Writer) error {
	list := make([]string, len(n.Peers))
	for i, p := range n.Peers {
		list[i] = p.Name + " " + p.Addr.String()
	}
	peers, err := mesh.NewFixed(list, plan.Port)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	failed := make(chan error, 1)
	var record func(own, peer string) func(pair.Input)
	var fed recorder
	if n.Record {
		record = fed.of
	}
	node, err := probe.New(probe.Config{
		NodeID: n.Name, HostID: n.Name, BootID: plan.Boot,
		Locals: []netip.AddrPort{netip.AddrPortFrom(n.Addr, plan.Port)},
		Peers:  peers, K: n.K, Rate: n.Rate, Clock: n.Clock.Skewed(), Tolerance: n.Pure, Record: record,
		Emit: func(o probe.Outcome) {
			err := lines.Encode(plan.Report{Node: n.Name, Edges: o.Edges, Counters: o.Counters, Fed: fed.take()})
			if err != nil {
				select {
				case failed <- fmt.Errorf("report: %w", err):
				default:
				}
			}
		},
		Warn: func(err error) { fmt.Fprintf(os.Stderr, "node %s: %v\n", n.Name, err) },
	})
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	if closing := node.Close(); err == nil {
		err = closing
	}
	return err
}
