// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
	"github.com/lockstep-otel/lockstep/receiver/ncclrasreceiver/internal/metadatatest"
)

// patience is how long a test waits for what takes some milliseconds.
const patience = 30 * time.Second

// twoRanks is a job of which rank 1 has launched n operations.
func twoRanks(hash uint64, n int64) rastest.Comm {
	return rastest.Comm{Hash: hash, Members: []rastest.Member{
		{Rank: 0, Host: "10.0.0.1", PID: 10, AllReduce: 5}, {Rank: 1, Host: "10.0.0.2", PID: 11, AllReduce: n},
	}}
}

// bench is a receiver of both signals with everything around it.
type bench struct {
	logs    *consumertest.LogsSink
	metrics *consumertest.MetricsSink
	tel     *componenttest.Telemetry
	log     *observer.ObservedLogs
}

func config(s *rastest.Server) *Config {
	cfg := newDefaultConfig()
	cfg.Endpoints, cfg.PollInterval, cfg.Heartbeat, cfg.JobID = []string{s.Address}, 100*time.Millisecond, time.Hour, "j"
	return cfg
}

func start(t *testing.T, cfg *Config, logsTo consumer.Logs, metricsTo consumer.Metrics) *bench {
	t.Helper()
	require.NoError(t, cfg.Validate())
	b := &bench{logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{}, tel: componenttest.NewTelemetry()}
	if logsTo == nil {
		logsTo = b.logs
	}
	if metricsTo == nil {
		metricsTo = b.metrics
	}
	set := metadatatest.NewSettings(b.tel)
	core, logs := observer.New(zap.DebugLevel)
	set.Logger, b.log = zap.New(core), logs
	f := NewFactory()
	l, err := f.CreateLogs(t.Context(), set, cfg, logsTo)
	require.NoError(t, err)
	m, err := f.CreateMetrics(t.Context(), set, cfg, metricsTo)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		assert.NoError(t, l.Shutdown(context.Background()))
		assert.NoError(t, m.Shutdown(context.Background()))
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

func (b *bench) counter(name, reason string) int64 {
	m, err := b.tel.GetMetric("otelcol_receiver_nccl_ras_" + name)
	if err != nil {
		return 0 // never added to
	}
	var sum int64
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if v, _ := dp.Attributes.Value(attribute.Key("reason")); v.AsString() == reason {
			sum += dp.Value
		}
	}
	return sum
}

// each calls one function for every record that came.
func (b *bench) each(fn func(plog.ResourceLogs, plog.LogRecord)) {
	for _, ld := range b.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				fn(rl, lr)
			}
		}
	}
}

func (b *bench) states() (out []model.RankState) {
	b.each(func(rl plog.ResourceLogs, lr plog.LogRecord) {
		if s, ok := otelmap.LogToRankState(rl.Resource(), lr, nil, nil); ok {
			out = append(out, s)
		}
	})
	return out
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, patience, 5*time.Millisecond)
}

func TestStatesOfALag(t *testing.T) {
	s := rastest.Start(t, rastest.JSON(twoRanks(0xab, 3)))
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return len(b.states()) >= 4 }) // twice: it stays so
	got := b.states()[1]
	assert.Equal(t, int64(1), got.Rank.Rank)
	assert.Equal(t, "j", got.Rank.JobID)
	assert.Equal(t, model.StateRAS, got.Source)
	assert.Equal(t, []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(int64(2))}}, got.Comms[0].Frontiers)
	assert.Equal(t, []int64{0, 1}, got.Comms[0].Members)
	assert.NotZero(t, got.Time)
	assert.Equal(t, 1, b.log.FilterMessage("NCCL's RAS answers").Len(), "said once")
	eventually(t, func() bool { return b.counter("events_emitted", "") >= 4 })
}

func TestNothingNewIsNotTold(t *testing.T) {
	grow := make([]string, 50)
	for i := range grow {
		c := twoRanks(0xab, int64(5+i))
		c.Members[0].AllReduce = int64(5 + i)
		grow[i] = rastest.JSON(c)
	}
	s := rastest.Start(t, grow...)
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return b.counter("answers", answerQuiet) >= 3 })
	assert.Equal(t, int64(1), b.counter("answers", answerTold), "the first")
}

func TestAbsenceAndFact(t *testing.T) {
	c := twoRanks(0xab, 5)
	c.Members[0].AsyncError, c.Members[1].Missing, c.Members[1].Dead = 2, true, true
	s := rastest.Start(t, rastest.JSON(c))
	b := start(t, config(s), nil, nil)
	var absent []model.Absence
	var facts []model.Fact
	eventually(t, func() bool {
		absent, facts = nil, nil
		b.each(func(rl plog.ResourceLogs, lr plog.LogRecord) {
			if _, a, ok := otelmap.LogToAbsence(rl.Resource(), lr, nil); ok {
				absent = append(absent, a)
			}
			if f, ok := otelmap.LogToFact(rl.Resource(), lr, nil); ok {
				facts = append(facts, f)
			}
		})
		return len(absent) > 0 && len(facts) > 0
	})
	assert.Equal(t, int64(1), absent[0].Rank)
	assert.Equal(t, model.AbsentDead, absent[0].Reason)
	assert.Contains(t, absent[0].Detail, "process 11 on 10.0.0.2")
	assert.Equal(t, "nccl_async_error", facts[0].Kind)
	assert.Equal(t, "system error on communicator 0x00000000000000ab of 2 ranks", facts[0].What)
	assert.Equal(t, int64(0), facts[0].Rank.Rank)
}

// Two jobs of one user on one node answer in turn: each is a job of its own.
func TestJobsThatAlternate(t *testing.T) {
	s := rastest.Start(t, rastest.JSON(twoRanks(0xab, 3)), rastest.JSON(twoRanks(0xcd, 4)))
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return len(b.states()) >= 8 })
	enqueued := map[string]map[int64]bool{}
	for _, st := range b.states() {
		if st.Rank.Rank == 1 {
			id := st.Rank.Incarnation
			if enqueued[id] == nil {
				enqueued[id] = map[int64]bool{}
			}
			enqueued[id][st.Comms[0].Frontiers[0].Enqueued.V] = true
		}
	}
	assert.Equal(t, map[string]map[int64]bool{
		model.Incarnation(model.World{CommHash: "0x00000000000000ab"}): {2: true},
		model.Incarnation(model.World{CommHash: "0x00000000000000cd"}): {3: true},
	}, enqueued)
}

func TestMetrics(t *testing.T) {
	c := twoRanks(0xab, 3)
	s := rastest.Start(t, rastest.JSON(c))
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return len(b.metrics.AllMetrics()) > 0 })
	values := map[string]float64{}
	for _, m := range b.metrics.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, dp := range m.Gauge().DataPoints().All() {
			a := dp.Attributes().AsRaw()
			assert.Equal(t, "j", a["lockstep.job.id"])
			key := m.Name()
			if r, ok := a["lockstep.rank"]; ok {
				key += map[any]string{int64(0): " 0 ", int64(1): " 1 "}[r] + a["lockstep.collective.name"].(string)
			}
			if r, ok := a["lockstep.reason"]; ok {
				key += " " + r.(string)
			}
			values[key] = dp.DoubleValue()
		}
	}
	assert.Equal(t, map[string]float64{
		"lockstep.nccl.launched 0 all_reduce": 5, "lockstep.nccl.launched 1 all_reduce": 3,
		"lockstep.nccl.absent dead": 0, "lockstep.nccl.absent missing": 0,
	}, values)
}

// What cannot be used is counted, said once and followed by an answer that can.
func TestAnswersThatCannotBeUsed(t *testing.T) {
	s := rastest.Start(t, "{")
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return b.counter("answers", answerFailed) >= 2 })
	s.TextOnly()
	eventually(t, func() bool { return b.counter("answers", answerTextOnly) >= 2 })
	assert.Equal(t, 2, b.log.FilterMessage("NCCL's RAS gives no answer that can be used").Len(), "once for each reason")
	assert.Empty(t, b.logs.AllLogs())
}

// Without a communicator of all processes their states have a job of their own, as their numbers are
// no ranks, and no metric has these.
func TestNoWorld_ProcessesAreNumberedApart(t *testing.T) {
	m := func(rank, pid int) rastest.Member {
		return rastest.Member{Rank: rank, PID: pid, Host: "n1", AllReduce: 5}
	}
	s := rastest.Start(t, rastest.JSON(
		rastest.Comm{Hash: 1, Members: []rastest.Member{m(0, 10), m(1, 11)}}, rastest.Comm{Hash: 2, Members: []rastest.Member{m(0, 11), m(1, 12)}}))
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return len(b.states()) >= 3 })
	for i, st := range b.states()[:3] {
		assert.Equal(t, "j/0x0000000000000001", st.Rank.JobID)
		assert.False(t, st.Rank.WorldSize.OK)
		assert.Equal(t, model.Some(int64(10+i)), st.Rank.PID)
		assert.Equal(t, "n1", st.Rank.HostName)
	}
	assert.Equal(t, 1, b.log.FilterMessageSnippet("No communicator has all processes").Len())
	eventually(t, func() bool { return b.counter("answers", answerNoWorld) >= 2 })
	assert.Empty(t, b.metrics.AllMetrics())
}

// Replicas that share a RAS network are jobs of their own, each with its ranks.
func TestReplicas_AreJobsOfTheirOwn(t *testing.T) {
	one := func(hash uint64, pid int) rastest.Comm {
		return rastest.Comm{Hash: hash, Members: []rastest.Member{{Rank: 0, PID: pid, Host: "n1"}, {Rank: 1, PID: pid + 1, Host: "n1"}}}
	}
	s := rastest.Start(t, rastest.JSON(one(1, 10), one(2, 20)))
	b := start(t, config(s), nil, nil)
	eventually(t, func() bool { return len(b.states()) >= 4 })
	jobs := map[string]int{}
	for _, st := range b.states()[:4] {
		jobs[st.Rank.JobID]++
		assert.Equal(t, model.Some(int64(2)), st.Rank.WorldSize)
	}
	assert.Equal(t, map[string]int{"j/0x0000000000000001": 2, "j/0x0000000000000002": 2}, jobs)
}

func TestNobodyListens(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.Endpoints, cfg.PollInterval = []string{"127.0.0.1:1"}, 100*time.Millisecond
	b := start(t, cfg, nil, nil)
	eventually(t, func() bool { return b.counter("answers", answerNone) >= 2 })
	assert.Equal(t, 1, b.log.FilterMessage("No NCCL process listens for its RAS").Len())
}

// A server that says nothing holds up neither the others nor the collector's end.
func TestSilentServer(t *testing.T) {
	silent, s := rastest.Start(t), rastest.Start(t, rastest.JSON(twoRanks(0xab, 3)))
	silent.Silent()
	cfg := config(s)
	cfg.Endpoints = []string{silent.Address, s.Address}
	cfg.Wait, cfg.Timeout = time.Second, 1100*time.Millisecond
	b := start(t, cfg, nil, nil)
	eventually(t, func() bool { return len(b.states()) > 0 })
	assert.Zero(t, b.counter("answers", answerFailed), "it was not waited for")
	eventually(t, func() bool { return b.counter("answers", answerFailed) > 0 })
}

func TestRefusedDataAreCounted(t *testing.T) {
	refuse := consumererror.NewPermanent(errors.New("no such event"))
	logs, err := consumer.NewLogs(func(context.Context, plog.Logs) error { return refuse })
	require.NoError(t, err)
	metrics, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return refuse })
	require.NoError(t, err)
	s := rastest.Start(t, rastest.JSON(twoRanks(0xab, 3)))
	b := start(t, config(s), logs, metrics)
	eventually(t, func() bool { return b.counter("events_dropped", "") >= 2 && b.counter("metrics_dropped", "") >= 1 })
}

// TestWhatWasRefusedIsToldAgain: with the next answer, and not with the next heartbeat.
func TestWhatWasRefusedIsToldAgain(t *testing.T) {
	grow := make([]string, 50)
	for i := range grow {
		c := twoRanks(0xab, int64(5+i))
		c.Members[0].AllReduce = int64(5 + i)
		grow[i] = rastest.JSON(c)
	}
	var refusals atomic.Int64
	logs, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		if refusals.Add(1) <= 2 {
			return errors.New("memory is short")
		}
		return nil
	})
	require.NoError(t, err)
	b := start(t, config(rastest.Start(t, grow...)), logs, nil)
	eventually(t, func() bool { return b.counter("events_emitted", "") > 0 })
	assert.Equal(t, int64(3), b.counter("answers", answerTold), "twice refused, and once taken")
	assert.Zero(t, b.counter("events_dropped", ""))
}
