// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// stuckLogs takes nothing until it is told to stop.
type stuckLogs struct{ calls int }

func (*stuckLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *stuckLogs) ConsumeLogs(ctx context.Context, _ plog.Logs) error {
	s.calls++
	<-ctx.Done()
	return ctx.Err()
}

// A consumer that takes nothing holds up neither who brings data nor the end.
func TestStuckConsumerHoldsUpNobody(t *testing.T) {
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

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, f := range r.faces {
			assert.NoError(t, f.Shutdown(ctx))
		}
		assert.LessOrEqual(t, time.Since(began), 400*time.Millisecond, "what is sent ends with the connector, and queues read it")
	})
}

// While a job is judged, what is brought waits in a place of bounded size.
func TestInboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		h := r.faces[0].(*face).handle.Value
		h.watching.Lock()
		h.inbox.mu.Lock()
		of := rankOf(0)
		td := otelmap.OpsToTraces(&of, []model.Op{reduce(0, time.Now())})
		ranks := otelmap.ReadOps(td, &otelmap.Problems{})
		h.inbox.add(h.inbox.limit-2*feedBytes-sizeOfOps(&ranks[0]), func(*watch.Watch) {})
		h.inbox.mu.Unlock()
		for range 3 {
			require.NoError(t, r.traces[0].ConsumeTraces(t.Context(), td))
		}
		assert.Equal(t, h.inbox.limit, h.inbox.size)
		h.watching.Unlock()
		assert.EqualValues(t, 2, counter(t, r, "otelcol_connector_desync_inbox_dropped"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Zero(t, h.inbox.size)
		assert.EqualValues(t, 1, counter(t, r, "otelcol_connector_desync_ops"))
		r.stop(t)
	})
}

// A dump takes as much room as what it holds; lists of members take it once.
func TestInbox_States_TakeTheirBytes(t *testing.T) {
	var b inbox
	small := state(0, 1, true, time.Unix(0, 0))
	members := len(small.Comms[0].Members) * 8
	sizeOf := func(s *model.RankState) int {
		size, _ := b.sizeOf(s)
		return size
	}
	require.Equal(t, small.Bytes()+members, sizeOf(small))
	large := *small
	large.Stacks = []string{string(make([]byte, 100_000))}
	assert.GreaterOrEqual(t, sizeOf(&large), small.Bytes()+100_000)
	assert.Equal(t, large.Bytes(), sizeOf(&large), "the lists wait already")
	b.drain(nil)
	assert.Equal(t, large.Bytes()+members, sizeOf(&large))
}

// A state that finds no room leaves no list of members behind.
func TestInbox_StatesWithoutRoom_LeaveNoLists(t *testing.T) {
	r := newRig(t, nil, nil)
	defer r.stop(t)
	h := r.faces[0].(*face).handle.Value
	h.inbox.limit = 1 << 16
	h.watching.Lock()
	defer h.watching.Unlock()
	send := func(members int64) {
		s := state(0, 1, true, time.Unix(0, 0))
		s.Comms[0].Members = []int64{0, 1, members}
		ld := plog.NewLogs()
		otelmap.AppendRankState(ld, s)
		r.send(t, ld)
	}
	for i := range int64(1000) {
		send(2 + i)
	}
	waiting := len(h.inbox.feeds)
	require.Positive(t, waiting)
	require.EqualValues(t, 1000-waiting, h.inbox.dropped.Load())
	assert.LessOrEqual(t, len(h.inbox.lists), waiting)
}

// Records that arrive while a job is judged stay within the bytes of the inbox, however long their texts are.
func TestInbox_LongTexts_StayWithinBytes(t *testing.T) {
	r := newRig(t, nil, nil)
	defer r.stop(t)
	h := r.faces[0].(*face).handle.Value
	h.inbox.limit = 1 << 20
	h.watching.Lock()
	of := rankOf(0)
	for i := range 100 {
		open := model.OpenOp{Op: model.Op{Kind: model.KindCollective, Stack: strings.Repeat("x", 60_000) + strconv.Itoa(i)}}
		ld := plog.NewLogs()
		otelmap.AppendOpen(ld, &of, []model.OpenOp{open})
		r.send(t, ld)
	}
	assert.LessOrEqual(t, h.inbox.size, h.inbox.limit)
	assert.EqualValues(t, 100-len(h.inbox.feeds), h.inbox.dropped.Load())
	assert.Less(t, len(h.inbox.feeds), 1<<20/60_000+1)
	h.watching.Unlock()
}
