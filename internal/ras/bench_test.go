// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"strings"
	"testing"

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
