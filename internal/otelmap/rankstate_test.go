// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
)

func stateOf3() model.RankState {
	return model.RankState{
		Rank: model.Rank{JobID: "j", Incarnation: "i", Rank: 3, HostName: "n1"}, Time: 10e9, Source: model.StateRankEvents, Name: "ring-3",
		Process: model.ProcessRunning, Phase: "train",
		Comms: []model.CommState{{Comm: model.Comm{ID: "0xaa", Name: "TP"}, Members: []int64{2, 3}, Scope: model.ScopeCommFunc}},
		Ops: []model.StateOp{
			{Kind: model.KindCollective, Name: model.AllReduce, Seq: 40, Created: 1e9, Done: true},
			{Kind: model.KindCollective, Name: model.AllReduce, Seq: 41, Created: 75e8},
			{Kind: model.KindSend, Name: "send", Seq: 7, Created: 8e9},
		},
	}
}

// record returns the only record of ld and its resource.
func record(t *testing.T, ld plog.Logs) (pcommon.Resource, plog.LogRecord) {
	t.Helper()
	require.Equal(t, 1, ld.LogRecordCount())
	rl := ld.ResourceLogs().At(0)
	return rl.Resource(), rl.ScopeLogs().At(0).LogRecords().At(0)
}

func TestRankStateRoundTrip(t *testing.T) {
	want := stateOf3()
	ld := plog.NewLogs()
	AppendRankState(ld, &want)
	res, lr := record(t, ld)
	var p Problems
	got, ok := LogToRankState(res, lr, nil, &p)
	require.True(t, ok)
	assert.Equal(t, want, got)
	assert.Empty(t, p.List())

	assert.Equal(t, "lockstep.rank.state", lr.EventName())
	assert.Equal(t, pcommon.Timestamp(10e9), lr.Timestamp())
	assert.Equal(t, plog.SeverityNumberInfo, lr.SeverityNumber())
	assert.Equal(t, "rank 3: 2 operations are open, the first all_reduce 41 of TP, for 2.5s", lr.Body().Str())
	attributes := lr.Attributes().AsRaw()
	assert.NotEmpty(t, attributes["lockstep.rank.state.data"])
	delete(attributes, "lockstep.rank.state.data")
	assert.Equal(t, map[string]any{
		"lockstep.rank.state.source": "rank_events", "lockstep.rank.state.name": "ring-3", "lockstep.rank.state.process": "running",
		"lockstep.phase": "train", "lockstep.rank.state.open": int64(2), "lockstep.rank.state.age": 2.5,
	}, attributes)
}

// The resource says whose a state is: a processor may have added to it. Where it names no
// rank, the record does.
func TestRankStateAndItsResource(t *testing.T) {
	s := stateOf3()
	ld := plog.NewLogs()
	AppendRankState(ld, &s)
	res, lr := record(t, ld)
	res.Attributes().PutStr("host.name", "n1.example.org")
	got, ok := LogToRankState(res, lr, nil, nil)
	require.True(t, ok)
	assert.Equal(t, "n1.example.org", got.Rank.HostName)

	got, ok = LogToRankState(pcommon.NewResource(), lr, nil, nil)
	require.True(t, ok)
	assert.Equal(t, s.Rank, got.Rank)

	res.Attributes().PutInt("lockstep.rank", 4)
	var p Problems
	_, ok = LogToRankState(res, lr, nil, &p)
	assert.False(t, ok)
	assert.Equal(t, int64(1), p.Count())
}

func TestRankStateBadInput(t *testing.T) {
	s := stateOf3()
	for name, damage := range map[string]func(plog.LogRecord){
		"none": func(lr plog.LogRecord) { lr.Attributes().Remove("lockstep.rank.state.data") },
		"text": func(lr plog.LogRecord) { lr.Attributes().PutStr("lockstep.rank.state.data", "LRS") },
		"damaged": func(lr plog.LogRecord) {
			lr.Attributes().PutEmptyBytes("lockstep.rank.state.data").FromRaw([]byte("LRS\x01\x01"))
		},
	} {
		ld := plog.NewLogs()
		AppendRankState(ld, &s)
		res, lr := record(t, ld)
		damage(lr)
		var p Problems
		_, ok := LogToRankState(res, lr, nil, &p)
		assert.False(t, ok, name)
		assert.Equal(t, int64(1), p.Count(), name)
	}
	_, ok := LogToRankState(pcommon.NewResource(), plog.NewLogRecord(), nil, nil)
	assert.False(t, ok)
}

func TestStateSentences(t *testing.T) {
	for want, s := range map[string]model.RankState{
		"rank 3: no operation is open": {},
		"rank 3: its process is dead: 1 operation is open, the first send 4; not whole: torn": {
			Process: model.ProcessDead, Partial: "torn", Ops: []model.StateOp{{Recorded: "send", Seq: 4, Comm: 9}},
		},
		"rank 3: its process is stopped: no operation is open; the host is in checkpoint_save for 12s; no sign of life of its process for 4s": {
			Process: model.ProcessStopped, Scope: "checkpoint_save", ScopeFor: model.Some(12.0), Silent: model.Some(4.0),
		},
		"rank 3: 1 operation is open, the first all_reduce 1 of 0xaa": {
			Process: model.ProcessRunning, Silent: model.Some(1.0), Comms: []model.CommState{{Comm: model.Comm{ID: "0xaa"}}},
			Ops: []model.StateOp{{Name: model.AllReduce, Seq: 1, Created: 5}},
		},
	} {
		s.Rank.Rank = 3
		ld := plog.NewLogs()
		AppendRankState(ld, &s)
		_, lr := record(t, ld)
		assert.Equal(t, want, lr.Body().Str())
		assert.Equal(t, s.Process == model.ProcessDead, lr.SeverityNumber() == plog.SeverityNumberError)
		assert.Zero(t, lr.Timestamp(), "unknown is not 1970")
	}
}

func TestAbsenceRoundTrip(t *testing.T) {
	job := model.Rank{JobName: "llama", JobID: "j", Incarnation: "i", WorldSize: model.Some(int64(8))}
	want := model.Absence{Rank: 5, Reason: model.AbsentUnreadable, Detail: "trace_5: got no bytes", Time: 7}
	ld := plog.NewLogs()
	AppendAbsence(ld, &job, &want)
	res, lr := record(t, ld)
	var p Problems
	of, got, ok := LogToAbsence(res, lr, &p)
	require.True(t, ok)
	assert.Equal(t, want, got)
	job.Rank = 5
	assert.Equal(t, job, of)
	assert.Empty(t, p.List())
	assert.Equal(t, "lockstep.rank.absent", lr.EventName())
	assert.Equal(t, plog.SeverityNumberWarn, lr.SeverityNumber())
	assert.Equal(t, "rank 5: no state of it (unreadable): trace_5: got no bytes", lr.Body().Str())
	assert.Equal(t, map[string]any{"lockstep.rank.absent.reason": "unreadable", "lockstep.rank.absent.detail": "trace_5: got no bytes"}, lr.Attributes().AsRaw())

	_, _, ok = LogToAbsence(pcommon.NewResource(), lr, &p)
	assert.False(t, ok)
	assert.Equal(t, int64(1), p.Count())
	_, _, ok = LogToAbsence(res, plog.NewLogRecord(), &p)
	assert.False(t, ok)
}

// Whatever record comes, reading it fails nowhere, and what was read can be written.
func FuzzLogToRankState(f *testing.F) {
	s := stateOf3()
	ld := plog.NewLogs()
	AppendRankState(ld, &s)
	AppendAbsence(ld, &s.Rank, &model.Absence{Rank: 4, Reason: model.AbsentDead})
	seed, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
		if err != nil {
			return
		}
		var shared rankstate.Decoder
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					if s, ok := LogToRankState(rl.Resource(), lr, &shared, nil); ok {
						AppendRankState(plog.NewLogs(), &s)
					}
					LogToAbsence(rl.Resource(), lr, nil)
				}
			}
		}
	})
}

// Which communicators a rank is a member of is read from its state, too, and is none itself.
func TestRankMembers(t *testing.T) {
	want := model.RankState{
		Rank: model.Rank{JobID: "j", Incarnation: "i", Rank: 3}, Source: model.StateRankEvents, Time: 9,
		Comms: []model.CommState{{Comm: model.Comm{ID: "0xabc"}, Members: []int64{3, 4}}},
	}
	for _, event := range []func(plog.Logs, *model.RankState){AppendRankMembers, AppendRankState} {
		ld := plog.NewLogs()
		event(ld, &want)
		res, lr := record(t, ld)
		got, ok := LogToRankMembers(res, lr, nil, nil)
		assert.True(t, ok)
		assert.Equal(t, want.Comms[0].Members, got.Comms[0].Members)
		assert.Equal(t, want.Rank, got.Rank)
		_, ok = LogToRankState(res, lr, nil, nil)
		assert.Equal(t, lr.EventName() == "lockstep.rank.state", ok)
	}
	_, ok := LogToRankMembers(pcommon.NewResource(), plog.NewLogRecord(), nil, nil)
	assert.False(t, ok)
}
