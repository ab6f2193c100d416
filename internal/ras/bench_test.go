// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// BenchmarkAnswer reads what a job of 1,024 ranks with 15 communicators each answers, and
// makes states of it.
func BenchmarkAnswer(b *testing.B) {
	comms := make([]rastest.Comm, 15)
	for i := range comms {
		comms[i].Hash = 0x1234567890abcd00 + uint64(i)
		for rank := range 1024 {
			comms[i].Members = append(comms[i].Members, rastest.Member{Rank: rank, Host: "10.117.203.104", PID: 1000000 + rank, AllReduce: 123456, AllGather: 123456})
		}
	}
	text := rastest.JSON(comms...)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Parse(strings.NewReader(text), 1<<30)
		require.NoError(b, err)
		j, err := NewJob(s, "j", "j", "a", 1)
		require.NoError(b, err)
		require.Len(b, j.States, 1024)
	}
	b.ReportMetric(float64(len(text)), "B/answer")
}

// BenchmarkLayouts makes states of answers of pairs of processes that share nothing, so that each
// pair is a layout. The ratio of the times for 8,192 and 1,024 pairs is 8 where the cost is linear.
func BenchmarkLayouts(b *testing.B) {
	const few, many = 1 << 10, 1 << 13
	var took [2]time.Duration
	for b.Loop() {
		for i, n := range []int{few, many} {
			s := pairs(n)
			start := time.Now()
			layouts := Layouts(s)
			for k, part := range Divide(layouts, s) {
				require.Len(b, layouts[k].Job(part, Origin{From: "a"}).States, 2)
			}
			took[i] += time.Since(start)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
	b.ReportMetric(float64(many)/few, "ratio-if-linear")
}

// pairs is an answer of n communicators of two processes each.
func pairs(n int) *Status {
	s := &Status{}
	for i := range n {
		c := Comm{Hash: uint64(i + 1), Size: 2}
		for rank := range 2 {
			c.Ranks = append(c.Ranks, Rank{Process: Process{Rank: rank, Host: "h", PID: 2*i + rank + 1}, Counts: []Count{{"AllReduce", 5}}})
		}
		s.Comms = append(s.Comms, c)
	}
	return s
}
