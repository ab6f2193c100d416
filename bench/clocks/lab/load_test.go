// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
)

func TestParseCPU(t *testing.T) {
	assert.Equal(t, cpu{busy: 10 + 1 + 5 + 2 + 3 + 4, all: 10 + 1 + 5 + 70 + 5 + 2 + 3 + 4}, parseCPU("cpu  10 1 5 70 5 2 3 4 0 0"))
	assert.Zero(t, parseCPU("intr 5"))
}

func TestLoadSaysWhatWasNotSent(t *testing.T) {
	var l load
	assert.Contains(t, l.String(), "none")
	l.begin()
	l.take(plan.Report{Node: "n0", Counters: map[string]int64{"sender.requests": 1}})
	l.take(plan.Report{Node: "n0", Counters: map[string]int64{"sender.requests": 90, "sender.replies": 81, "node.probes_skipped": 5}})
	l.take(plan.Report{Node: "n1", Counters: map[string]int64{"sender.requests": 100, "sender.replies": 100}})
	l.from, l.to = cpu{10, 100}, cpu{60, 200}
	assert.Equal(t, "load: cores busy for 50.00 %; packets not sent in time 5.00 %, not answered 4.74 %", l.String())
}
