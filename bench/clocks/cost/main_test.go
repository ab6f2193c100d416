// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-otel/lockstep/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(second, sent int64) probe.Outcome {
	return probe.Outcome{Until: time.Unix(second, 0), Neighbours: 3, Counters: map[string]int64{
		"socket.packets_sent": sent, "socket.sent_stamps.kernel": sent - 1, "node.probes_skipped": sent / 10,
	}}
}

func TestAdd(t *testing.T) {
	var m measurement
	require.NoError(t, m.add([]probe.Outcome{at(2, 100), at(4, 100)}, []probe.Outcome{at(12, 300), at(12, 200)}))
	assert.Equal(t, measurement{Pairs: 6, Over: 9, Sent: 300, Kernel: 300, Skipped: 30}, m)
}

// A node without windows would count as one of centuries.
func TestNoWindowIsNoMeasurement(t *testing.T) {
	var m measurement
	require.ErrorContains(t, m.add([]probe.Outcome{at(2, 100), {}}, []probe.Outcome{at(12, 300), at(12, 200)}), "measure node 1: got windows")
	require.ErrorContains(t, m.add([]probe.Outcome{at(2, 100)}, []probe.Outcome{at(2, 100)}), "measure node 0: got windows")

	l := latest{all: []probe.Outcome{at(2, 100), {}}}
	require.EqualError(t, l.wait(time.Millisecond), "wait for windows: got none of node 1 in 1ms")
	l.all[1] = at(2, 100)
	require.NoError(t, l.wait(0))
}
