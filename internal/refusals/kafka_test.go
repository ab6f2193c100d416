// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/jobkafkareceiver"
)

// topics returns sources that are topics of a broker in this process, with four records of each signal. What waits
// for its step to be concluded is held: then the offset stays behind it.
func topics(signal string, held bool) func(*testing.T) func(*testing.T, *life) {
	return func(t *testing.T) func(*testing.T, *life) {
		t.Helper()
		f := jobkafkareceiver.NewFactory()
		defaults := f.CreateDefaultConfig().(*jobkafkareceiver.Config)
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, defaults.Traces.Topic, defaults.Logs.Topic))
		require.NoError(t, err)
		t.Cleanup(cluster.Close)
		client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
		require.NoError(t, err)
		defer client.Close()
		for n := range int64(4) {
			require.NoError(t, client.ProduceSync(t.Context(),
				&kgo.Record{Topic: defaults.Traces.Topic, Value: stepOf(t, n)}, &kgo.Record{Topic: defaults.Logs.Topic, Value: eventNumber(t, n)}).FirstErr())
		}
		return func(t *testing.T, l *life) {
			t.Helper()
			cfg := f.CreateDefaultConfig().(*jobkafkareceiver.Config)
			cfg.Brokers, cfg.CommitInterval, cfg.SessionTimeout = cluster.ListenAddrs(), every, 6*time.Second
			if !held {
				cfg.Hold = jobkafkareceiver.HoldConfig{}
			}
			quickly(&cfg.Retry)
			l.receive(t, f, signal, cfg)
		}
	}
}

func stepOf(t *testing.T, n int64) []byte {
	t.Helper()
	r := model.Rank{JobID: "job", Incarnation: "life", Rank: 0}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(otelmap.OpsToTraces(&r, []model.Op{{Kind: model.KindStep, Name: "step", Step: model.Some(n), Start: n + 1, End: n + 2}}))
	require.NoError(t, err)
	return b
}

func eventNumber(t *testing.T, n int64) []byte {
	t.Helper()
	ld := plog.NewLogs()
	lr := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	lr.SetEventName("lockstep.op.open")
	lr.Body().SetStr(fmt.Sprint(n))
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	return b
}
