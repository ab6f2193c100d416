// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// row is what was measured of a variant.
type row struct {
	name  string
	costs []cost
	found *found // of the last round
	again int    // spans that are in Kafka more than once, of all rounds
	disk  int64  // bytes
}

// median returns the median of something over the rounds, by span.
func (r *row) median(of func(*cost) float64) float64 {
	var all []float64
	for i := range r.costs {
		all = append(all, of(&r.costs[i])/float64(r.costs[i].spans))
	}
	slices.Sort(all)
	return stats.MedianHigh(all)
}

// measure is a line of the table.
type measure struct {
	name   string
	format string
	of     func(*row) float64
}

var measures = []measure{
	{"CPU ns per span, median of rounds", "%.0f", func(r *row) float64 { return r.median(func(c *cost) float64 { return float64(c.cpu) }) }},
	{"CPU ns per span, least", "%.0f", func(r *row) float64 {
		least := slices.MinFunc(r.costs, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
		return float64(least.cpu) / float64(least.spans)
	}},
	{"wall ns per span, median", "%.0f", func(r *row) float64 { return r.median(func(c *cost) float64 { return float64(c.wall) }) }},
	{"allocated bytes per span", "%.0f", func(r *row) float64 { return r.median(func(c *cost) float64 { return float64(c.allocated) }) }},
	{"bytes on disk per span", "%.1f", func(r *row) float64 { return float64(r.disk) / float64(r.found.world.spans) }},
	{"record bytes per span, uncompressed", "%.1f", func(r *row) float64 { return float64(r.found.valueBytes) / float64(r.found.world.spans) }},
	{"records per 1,000 spans", "%.2f", func(r *row) float64 { return 1000 * float64(r.found.records) / float64(r.found.world.spans) }},
	{"skew of partitions, all steps", "%.2f", func(r *row) float64 { return skew(r.found.byPartition) }},
	{"skew of partitions, within a step", "%.2f", func(r *row) float64 { return r.found.stepSkew() }},
	{"collectives in one partition, %", "%.2f", func(r *row) float64 { _, share, _ := r.found.together(); return 100 * share }},
	{"collectives whole in one poll, %", "%.2f", func(r *row) float64 { _, _, share := r.found.together(); return 100 * share }},
	{"spans in Kafka twice", "%.0f", func(r *row) float64 { return float64(r.again) }},
}

// write writes the table. The first row is ours, the second the stock exporter's.
func (o *options) write(to io.Writer, w *world, rows []row, results []searched) {
	n, _, _ := rows[0].found.together()
	b := &strings.Builder{}
	fmt.Fprintf(b, "%d jobs of %d ranks on %d nodes, %d steps: %d requests of %.1f MB, %d spans, %d collectives; %d partitions, %d rounds\n\n",
		len(layouts), ranks, ranks/perNode, o.steps, len(w.requests), float64(w.bytes())/1e6/float64(len(w.requests)), w.spans, n, partitions, o.rounds)
	fmt.Fprintf(b, "%-38s %10s %10s %12s", "", rows[0].name, rows[1].name, "ours/stock")
	for _, r := range rows[2:] {
		fmt.Fprintf(b, "  %s", r.name)
	}
	b.WriteByte('\n')
	for _, m := range measures {
		first, second := m.of(&rows[0]), m.of(&rows[1])
		ratio := "-"
		if second != 0 && !math.IsNaN(first/second) {
			ratio = fmt.Sprintf("%.2f", first/second)
		}
		fmt.Fprintf(b, "%-38s %10s %10s %12s", m.name, fmt.Sprintf(m.format, first), fmt.Sprintf(m.format, second), ratio)
		for _, r := range rows[2:] {
			fmt.Fprintf(b, "  %*s", len(r.name), fmt.Sprintf(m.format, m.of(&r)))
		}
		b.WriteByte('\n')
	}
	for i := range results {
		if i == 0 || results[i].growth != results[i-1].growth {
			fmt.Fprintf(b, "\nlargest step through max.message.bytes=%d, with %s:\n", limitedTopicBytes, results[i].growth)
		}
		results[i].write(b)
	}
	_, _ = io.WriteString(to, b.String())
}

// searched is the largest step of a variant.
type searched struct {
	growth, variant string
	largest
}

// write writes the step, and why the search has ended.
func (s *searched) write(b *strings.Builder) {
	fmt.Fprintf(b, "%-42s %5.1f MB %7d spans; ", s.variant, float64(s.bytes)/1e6, s.spans)
	if s.refused == nil {
		b.WriteString("no larger one was tried\n")
		return
	}
	text, _, _ := strings.Cut(s.refused.Error(), "\n")
	fmt.Fprintf(b, "twice as large: %s\n", text[:min(len(text), 240)])
}
