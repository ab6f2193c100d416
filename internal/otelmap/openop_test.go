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
		// A log event has neither the name nor the times of a span.
		want.Time = max(want.Time, ^want.Time)
		want.Since, want.Op.Name, want.Op.Start, want.Op.End = 0, "", 0, 0
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

func TestOpenSentences(t *testing.T) {
	r := model.Rank{Rank: 3}
	op := model.Op{
		Name: model.AllReduce, Comm: model.Comm{ID: "0xaa", Name: "world"}, Peer: model.Some(int64(1)),
		Collective: model.Collective{Seq: model.Some(int64(41)), State: "started"},
	}
	for want, o := range map[string]model.OpenOp{
		"rank 3: all_reduce 41 on communicator world has not ended for 2.5s (started); its proxy waits: send_peer, peer rank 1; 4 behind it": {
			Op: op, Status: model.StatusOpen, Age: 2.5, Behind: 4, ProxyState: "send_peer",
		},
		"rank 3: all_reduce 41 on communicator world ended after 7s": {Op: op, Status: model.StatusClosed, Age: 7},
		"rank 3: process died with 5 operations open; the first is all_reduce 41 on communicator world, enqueued 1s before": {
			Op: op, Status: model.StatusOpen, Age: 1, InFlight: 5, ProcessDied: true,
		},
	} {
		assert.Equal(t, want, openSentence(&r, &o))
	}
}
