// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// BenchmarkEvidence compares what counts as evidence of clocks, on loopback with
// kernel stamps: every packet, or pure pairs only. Each operation is ten windows of
// 2 s at 100 packets a second.
func BenchmarkEvidence(b *testing.B) {
	for _, bc := range []struct {
		name      string
		tolerance time.Duration
	}{{"every_packet", 0}, {"pure_within_1us", time.Microsecond}, {"pure_within_5us", 5 * time.Microsecond}} {
		b.Run(bc.name, func(b *testing.B) {
			var errors, widths []float64
			for b.Loop() {
				e, w := evidenceRun(b, bc.tolerance)
				errors, widths = append(errors, e...), append(widths, w...)
			}
			b.ReportMetric(quantile(errors, 0.5), "ns-error-p50")
			b.ReportMetric(quantile(errors, 0.99), "ns-error-p99")
			b.ReportMetric(quantile(widths, 0.5)/2, "ns-bound-p50")
			b.ReportMetric(quantile(widths, 0.99)/2, "ns-bound-p99")
		})
	}
}

func evidenceRun(b *testing.B, tolerance time.Duration) (errors, widths []float64) {
	b.Helper()
	list := &members{}
	nodes := [2]*testNode{newTestNode(0, list), newTestNode(1, list)}
	list.set(nodes[0].member(), nodes[1].member())
	for _, n := range nodes {
		n.cfg.Window, n.cfg.Rate, n.cfg.Paths, n.cfg.Tolerance = 2*time.Second, 100, 4, tolerance
		var err error
		if n.Node, err = New(n.cfg); err != nil {
			b.Fatal(err)
		}
		if err := n.Start(); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(22 * time.Second)
	for _, n := range nodes {
		if err := n.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for i, n := range nodes {
		for _, o := range n.outcomes()[2:] { // what begins is provisional
			for _, e := range o.Edges {
				if e.Source != model.EdgeProbe {
					continue
				}
				at, _ := n.clock.TrueOfRaw(e.At)
				truth := netstamp.Offset(n.clock, nodes[1-i].clock, at)
				if e.Lower > truth || e.Upper < truth {
					b.Errorf("the bound [%d, %d] does not hold %d", e.Lower, e.Upper, truth)
				}
				errors = append(errors, math.Abs(float64(e.Offset-truth)))
				widths = append(widths, e.Width())
			}
		}
	}
	return errors, widths
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return stats.QuantileHigh(v, q)
}
