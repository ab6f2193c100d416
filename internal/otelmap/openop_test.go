// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestOpenOpRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		var want model.OpenOp
		newFiller(seed, seed%2 == 1).fill(t, reflect.ValueOf(&want).Elem())
		// A log event has neither the name nor the times nor the links of a span.
		want.Time = max(want.Time, ^want.Time)
		want.Since, want.Op.Name, want.Op.Start, want.Op.End = 0, "", 0, 0
		want.Op.Links, want.Op.LinksDropped = nil, 0
		if !want.Op.Step.OK {
			want.Op.Step.V = 0
		}
		rank := randomRank(t, seed, false)
		ld := plog.NewLogs()
		AppendOpen(ld, &rank, []model.OpenOp{want})
		rl := ld.ResourceLogs().At(0)
		lr := rl.ScopeLogs().At(0).LogRecords().At(0)
		var p Problems
		got, ok := LogToOpen(lr, &p)
		require.True(t, ok)
		assert.Equal(t, want, got, "seed %d", seed)
		assert.Empty(t, p.List())
		of, ok := ResourceToRank(rl.Resource(), &p)
		assert.True(t, ok)
		assert.Equal(t, rank.Rank, of.Rank)
	}
	_, ok := LogToOpen(plog.NewLogRecord(), nil)
	assert.False(t, ok)
}

// What is not waited for has no attribute.
func TestOpenWaitsAreWrittenWhereTheyAre(t *testing.T) {
	r := model.Rank{}
	for _, o := range []model.OpenOp{
		{},
		{Send: model.ProxyWait{State: "send_gpu", For: model.Some(2.0), Peer: model.Some(int64(1))}},
		{Receive: model.ProxyWait{State: "recv_gpu", For: model.Some(2.0), Peer: model.Some(int64(1))}, Silent: model.Some(1.0)},
	} {
		lr := plog.NewLogRecord()
		openToLog(&r, &o, lr)
		for name, want := range map[string]bool{
			"lockstep.op.open.send.state": o.Send.State != "", "lockstep.op.open.send.for": o.Send.For.OK, "lockstep.op.open.send.peer": o.Send.Peer.OK,
			"lockstep.op.open.receive.state": o.Receive.State != "", "lockstep.op.open.receive.for": o.Receive.For.OK, "lockstep.op.open.receive.peer": o.Receive.Peer.OK,
			"lockstep.op.open.silent": o.Silent.OK,
		} {
			_, ok := lr.Attributes().Get(name)
			assert.Equal(t, want, ok, name)
		}
	}
}

func TestOpenSentences(t *testing.T) {
	r := model.Rank{Rank: 3}
	op := model.Op{
		Name: model.AllReduce, Comm: model.Comm{ID: "0xaa", Name: "world"}, Peer: model.Some(int64(1)),
		Collective: model.Collective{Seq: model.Some(int64(41)), State: "started"},
	}
	scheduled := op
	scheduled.Collective.State = "scheduled"
	for want, o := range map[string]model.OpenOp{
		"rank 3: all_reduce 41 on communicator world has not ended for 2.5s (started); its proxy waits: sending, for its own GPU to fill the buffer (2.1s); receiving, for rank 1 or the wire (2.2s); 4 behind it": {
			Op: op, Status: model.StatusOpen, Age: 2.5, Behind: 4, ProxyState: "recv_peer_or_wire", Silent: model.Some(2.9),
			Send:    model.ProxyWait{State: "send_gpu", For: model.Some(2.1), Peer: model.Some(int64(0))},
			Receive: model.ProxyWait{State: "recv_peer_or_wire", For: model.Some(2.2), Peer: model.Some(int64(1))},
		},
		"rank 3: all_reduce 41 on communicator world has not ended for 5.2s (started); its proxy waits: sending, for its peer to be ready (40ms); no sign of life of its process for 3s": {
			Op: op, Status: model.StatusUpdated, Age: 5.2, Silent: model.Some(3.0),
			Send: model.ProxyWait{State: "send_peer", For: model.Some(0.04)},
		},
		"rank 3: all_reduce 41 on communicator world has not ended for 5.2s (scheduled); the host is in data_loading for 12.3s; no sign of life of its process for 3s; 1 behind it": {
			Op: scheduled, Status: model.StatusOpen, Age: 5.2, Scope: "data_loading", ScopeFor: model.Some(12.3), Silent: model.Some(3.0), Behind: 1,
		},
		"rank 3: process died; at its last sign of life 1 operation was open: all_reduce 41 on communicator world, enqueued 2s before that; its host was in checkpoint_save for 40s": {
			Op: op, Status: model.StatusOpen, Age: 2, InFlight: 1, ProcessDied: true, Scope: "checkpoint_save", ScopeFor: model.Some(40.0),
		},
		"rank 3: all_reduce 41 on communicator world ended after 7s": {Op: op, Status: model.StatusClosed, Age: 7},
		"rank 3: process died; at its last sign of life 5 operations were open; the first is all_reduce 41 on communicator world, enqueued 45ms before that": {
			Op: op, Status: model.StatusOpen, Age: 0.045, InFlight: 5, ProcessDied: true,
		},
		"rank 3: process died; at its last sign of life 1 operation was open: all_reduce 41 on communicator world, enqueued 1s before that": {
			Op: op, Status: model.StatusOpen, Age: 1, InFlight: 1, ProcessDied: true,
		},
	} {
		assert.Equal(t, want, openSentence(&r, &o))
	}
}
