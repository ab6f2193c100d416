// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// stuckLogs takes nothing until its context ends.
type stuckLogs struct{ calls int }

func (*stuckLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *stuckLogs) ConsumeLogs(ctx context.Context, _ plog.Logs) error {
	s.calls++
	<-ctx.Done()
	return ctx.Err()
}

// A consumer that takes nothing holds up neither the senders nor the end.
func TestConsume_LogsTakeNothing_SendersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &stuckLogs{}
		r := newRig(t, stuck, nil)
		r.hang(t)
		require.Equal(t, 1, stuck.calls, "it has a finding, and does not give it back")
		before := counter(t, r, "otelcol_connector_desync_states")
		began := time.Now()
		ld := plog.NewLogs()
		otelmap.AppendRankState(ld, state(0, 150, true, began.Add(-time.Minute)))
		r.send(t, ld)
		of := rankOf(0)
		r.complete(t, &of, reduce(149, began))
		assert.Zero(t, time.Since(began))
		assert.Equal(t, before+1, counter(t, r, "otelcol_connector_desync_states"), "it came to the watch")

		for _, f := range r.faces {
			_ = f.Shutdown(t.Context()) // the error is that of what was not delivered
		}
		assert.LessOrEqual(t, time.Since(began), 5*time.Second)
	})
}

// A state takes as much room as what it holds; lists of members that states share take theirs once.
func TestBatch_States_TakeTheirBytes(t *testing.T) {
	var b batch
	small := state(0, 1, true, time.Unix(0, 0))
	members := len(small.Comms[0].Members) * 8
	require.Equal(t, small.Bytes()+members, b.sizeOf(small))
	large := *small
	large.Stacks = []string{string(make([]byte, 100_000))}
	assert.GreaterOrEqual(t, b.sizeOf(&large), small.Bytes()+100_000)
	assert.Equal(t, large.Bytes(), b.sizeOf(&large), "the lists are counted already")
	b = batch{}
	assert.Equal(t, large.Bytes()+members, b.sizeOf(&large))
}

// What was read of records is counted with its texts, however long they are.
func TestReadRecords_LongTexts_AreCounted(t *testing.T) {
	e, err := newEngine(newDefaultConfig(), nopSettings())
	require.NoError(t, err)
	of := rankOf(0)
	open := model.OpenOp{Op: model.Op{Kind: model.KindCollective, Stack: string(make([]byte, 60_000))}}
	ld := plog.NewLogs()
	otelmap.AppendOpen(ld, &of, []model.OpenOp{open})
	assert.GreaterOrEqual(t, e.Logs(ld).Bytes, 60_000)
	assert.GreaterOrEqual(t, e.Traces(otelmap.OpsToTraces(&of, []model.Op{open.Op})).Bytes, 60_000)
	e.Stop()
}
