// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// refusing takes log records after it has refused some requests.
type refusing struct {
	mu     sync.Mutex
	refuse int
	bodies []string
}

func (*refusing) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }
func (n *refusing) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuse > 0 {
		n.refuse--
		return errors.New("memory is short")
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if lr.EventName() == "lockstep.steps.lost" {
					n.bodies = append(n.bodies, lr.Body().Str())
				}
			}
		}
	}
	return nil
}

// Two runs of steps of a job are lost: an event of each is sent, also where the next component refuses at first.
func TestSequence_TwoRunsOfOneJobAreLost_BothAreSent(t *testing.T) {
	for refusals, name := range []string{"taken at once", "refused once"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loss := func(step int64) sequence.Loss {
					return sequence.Loss{Step: sequence.Step{Job: "job", Incarnation: "inc", Step: step}, Last: step, Spans: 9, Reason: sequence.ReasonRestart}
				}
				b := &book{verdict: func(int64) (v sequence.Verdict) { return v }, lost: []sequence.Loss{loss(195), loss(390)}}
				id := component.MustNewID("sequence")
				cfg := newDefaultConfig()
				cfg.SequenceID = &id
				n := &refusing{refuse: refusals}
				r := &rig{}
				r.attach(t, connectortest.NewNopSettings(metadata.Type), cfg, n)
				r.start(t, extensions{id: b})
				time.Sleep(2 * time.Minute)
				r.stop(t)
				assert.Len(t, n.bodies, 2, "%v", n.bodies)
			})
		})
	}
}
