// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
)

// load says whether the machine let the nodes do what they were asked for. Where it did not,
// errors say little of the mesh.
type load struct {
	nodes    map[string]map[string]int64 // counters by node, as of the last report
	from, to cpu
}

// cpu is the time of all cores since the machine's start, in ticks.
type cpu struct{ busy, all int64 }

func (l *load) begin() { l.nodes, l.from = map[string]map[string]int64{}, readCPU() }

func (l *load) end() { l.to = readCPU() }

func (l *load) take(r plan.Report) {
	if l.nodes != nil {
		l.nodes[r.Node] = r.Counters
	}
}

func (l *load) sum(counter string) (n int64) {
	for _, c := range l.nodes {
		n += c[counter]
	}
	return n
}

func (l *load) String() string {
	// Each turn of the pacer sends two packets.
	sent, skipped := l.sum("sender.requests"), 2*l.sum("node.probes_skipped")
	return fmt.Sprintf("load: cores busy for %s; packets not sent in time %s, not answered %s",
		percent(l.to.busy-l.from.busy, l.to.all-l.from.all), percent(skipped, sent+skipped), percent(sent-l.sum("sender.replies"), sent))
}

func percent(part, all int64) string {
	if all <= 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(all))
}

// readCPU reads the first line of /proc/stat; nothing where there is none.
func readCPU() cpu {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpu{}
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return parseCPU(line)
}

// parseCPU sums up user, nice, system, idle, iowait, irq, softirq and steal: idle and
// iowait are not busy.
func parseCPU(line string) (c cpu) {
	var t [8]int64
	n, _ := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
	for i, v := range t[:n] {
		c.all += v
		if i != 3 && i != 4 {
			c.busy += v
		}
	}
	return c
}
