// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

const header = `  nodes   edges | one edge, ns      | against the reference, ns  | bound, ns       | contained        | solve   | edge+packets | held    | allocated
                |    p50      p99   |    p50      p99      max   |    p50      p99 | clocks    edges  | ms      | us           | MB      | MB a solve`

func (r result) String() string {
	return fmt.Sprintf("%7d %7d | %7.0f %8.0f   | %7.0f %8.0f %8.0f   | %7.0f %7.0f | %7.3f%% %7.3f%% | %7.1f | %12.1f | %7.1f | %7.1f%s",
		r.nodes, r.edges, quantile(r.edgeErr, 0.5), quantile(r.edgeErr, 0.99),
		quantile(r.nodeErr, 0.5), quantile(r.nodeErr, 0.99), quantile(r.nodeErr, 1),
		quantile(r.bounds, 0.5), quantile(r.bounds, 0.99),
		100*(1-float64(r.outside)/float64(len(r.nodeErr))), 100*(1-float64(r.edgesOutside)/float64(len(r.edgeErr))),
		quantile(r.solve, 0)/1e6, r.estimate/1e3, r.held/1e6, r.allocate/1e6, r.remarks())
}

func (r result) remarks() string {
	var s strings.Builder
	for _, c := range []struct {
		n    int
		what string
	}{{r.missing, "edges missing"}, {r.untrusted, "untrusted"}, {r.undecided, "undecided"}} {
		if c.n > 0 {
			fmt.Fprintf(&s, "; %d %s", c.n, c.what)
		}
	}
	return s.String()
}

// printGrowth prints by which power of the number of edges time and memory grow.
func printGrowth(w io.Writer, all []result) {
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		fmt.Fprintf(w, "%d to %d nodes: time grows with the edges to the power of %.2f, memory %.2f\n",
			a.nodes, b.nodes,
			exponent(a.edges, b.edges, quantile(a.solve, 0), quantile(b.solve, 0)),
			exponent(a.edges, b.edges, a.held, b.held))
	}
}

func exponent(n0, n1 int, v0, v1 float64) float64 {
	return math.Log(v1/v0) / math.Log(float64(n1)/float64(n0))
}

// judge fails where a bound did not hold. Times are printed and not judged: on a
// machine that others use they say more about these.
func judge(all []result) error {
	for _, r := range all {
		if r.outside > 0 {
			return fmt.Errorf("%d nodes: %d of %d placements: got an error beyond the bound; want none", r.nodes, r.outside, len(r.nodeErr))
		}
	}
	return nil
}
