// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/component/jobs"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/jobkafkareceiver/internal/metadatatest"
)

// limit is long enough for a loaded machine.
const limit = 20 * time.Second

// brokers is a cluster in this process, with both topics.
func brokers(t *testing.T, partitions int32) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, defaultTraceTopic, defaultLogTopic))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// writer writes records as other programs would.
type writer struct {
	t  *testing.T
	cl *kgo.Client
}

func newWriter(t *testing.T, c *kfake.Cluster) *writer {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return &writer{t, cl}
}

func (w *writer) write(topic string, partition int32, value []byte, headers ...kgo.RecordHeader) {
	w.t.Helper()
	r := &kgo.Record{Topic: topic, Partition: partition, Value: value, Headers: headers}
	require.NoError(w.t, w.cl.ProduceSync(w.t.Context(), r).FirstErr())
}

// step writes one step of one rank as a record.
func (w *writer) step(partition int32, job string, rank, step int64) {
	w.t.Helper()
	w.write(defaultTraceTopic, partition, stepRecord(w.t, job, rank, step))
}

func stepRecord(t *testing.T, job string, rank, step int64) []byte {
	t.Helper()
	r := model.Rank{JobID: job, Incarnation: "inc", Rank: rank}
	return marshal(t, otelmap.OpsToTraces(&r, []model.Op{
		{Kind: model.KindCompute, Name: "gemm", Step: model.Some(step), Start: step, End: step + 1},
		{Kind: model.KindStep, Name: "step", Step: model.Some(step), Start: step, End: step + 1},
	}))
}

func marshal(t *testing.T, td ptrace.Traces) []byte {
	t.Helper()
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return b
}

func configFor(c *kfake.Cluster) *Config {
	cfg := newDefaultConfig()
	cfg.Brokers, cfg.CommitInterval, cfg.SessionTimeout = c.ListenAddrs(), 20*time.Millisecond, 6*time.Second
	cfg.Hold = HoldConfig{Steps: 3, Time: 100 * time.Millisecond, Idle: time.Hour}
	cfg.Retry.InitialInterval, cfg.Retry.MaxInterval = 10*time.Millisecond, 20*time.Millisecond
	return cfg
}

// analysis takes what a receiver reads, or refuses it, and notes what it is to forget.
type analysis struct {
	mu        sync.Mutex
	refuse    func() error // nil: takes all
	steps     map[string]map[int64]int
	records   int
	forgotten []string
	suspended bool
}

func (*analysis) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (a *analysis) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse != nil {
		if err := a.refuse(); err != nil {
			td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true }) // it owns them
			return err
		}
	}
	ranks, _ := otelmap.TracesToOps(td)
	for _, r := range ranks {
		if a.steps == nil {
			a.steps = map[string]map[int64]int{}
		}
		if a.steps[r.Rank.JobID] == nil {
			a.steps[r.Rank.JobID] = map[int64]int{}
		}
		for _, op := range r.Ops {
			if op.Kind == model.KindStep {
				a.steps[r.Rank.JobID][op.Step.V]++
			}
		}
	}
	return nil
}

func (a *analysis) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records += ld.LogRecordCount()
	return nil
}

func (a *analysis) Forget(_ context.Context, ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgotten = append(a.forgotten, ids...)
	for _, id := range ids {
		delete(a.steps, id)
	}
}

func (a *analysis) Suspend(context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspended = true
}

func (a *analysis) Resume(context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suspended = false
}

// stepsOf returns how often each step of a job has come.
func (a *analysis) stepsOf(job string) map[int64]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[int64]int{}
	for s, n := range a.steps[job] {
		out[s] = n
	}
	return out
}

// rig is one collector.
type rig struct {
	*analysis
	t            *testing.T
	tel          *componenttest.Telemetry
	traces, logs component.Component
	over         bool
}

type jobsExtension struct {
	component.StartFunc
	component.ShutdownFunc
	jobs.Registry
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// start starts a collector that reads both topics.
func start(t *testing.T, cfg *Config, a *analysis) *rig {
	t.Helper()
	return startWith(t, cfg, a, a)
}

// startWith starts one in which another analysis learns what happens to jobs.
func startWith(t *testing.T, cfg *Config, a *analysis, learns jobs.Analysis) *rig {
	t.Helper()
	r := &rig{analysis: a, t: t, tel: componenttest.NewTelemetry()}
	set, f := metadatatest.NewSettings(r.tel), NewFactory()
	var err error
	r.traces, err = f.CreateTraces(t.Context(), set, cfg, a)
	require.NoError(t, err)
	r.logs, err = f.CreateLogs(t.Context(), set, cfg, a)
	require.NoError(t, err)
	ext, id := &jobsExtension{}, component.MustNewID("jobs")
	ext.Join(learns, false)
	cfg.JobsID = &id
	for _, c := range []component.Component{r.traces, r.logs} {
		require.NoError(t, c.Start(t.Context(), host{id: ext}))
	}
	t.Cleanup(r.stop)
	return r
}

func (r *rig) stop() {
	if r.over {
		return
	}
	r.over = true
	for _, c := range []component.Component{r.logs, r.traces} {
		assert.NoError(r.t, c.Shutdown(context.Background()))
	}
	require.NoError(r.t, r.tel.Shutdown(context.Background()))
}

// counted returns a sum of the receiver, for a reason or in all.
func (r *rig) counted(name, reason string) (n int64) {
	r.t.Helper()
	m, err := r.tel.GetMetric("otelcol_receiver_job_kafka_" + name)
	if err != nil {
		return 0 // nothing was counted
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			if v, _ := p.Attributes.Value(attribute.Key("reason")); reason == "" || v.AsString() == reason {
				n += p.Value
			}
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			n += p.Value
		}
	}
	return n
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, limit, 5*time.Millisecond, what)
}

// whole reports whether each of the steps first to last came from so many ranks.
func whole(got map[int64]int, first, last int64, ranks int) bool {
	for s := first; s <= last; s++ {
		if got[s] != ranks {
			return false
		}
	}
	return true
}
