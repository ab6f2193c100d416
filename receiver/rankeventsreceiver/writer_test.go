// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadatatest"
)

// patience is how long a test waits for what takes a second.
const patience = 30 * time.Second

// job starts ranks of a job that write into dir.
type job struct {
	ranks []*exec.Cmd
	out   []*bufio.Reader
}

func startJob(t *testing.T, dir string, world, steps int, mode string, env ...string) *job {
	t.Helper()
	return startJobOf(t, dir, world, steps, mode, env...)
}

func startJobOf(tb testing.TB, dir string, world, steps int, mode string, env ...string) *job {
	tb.Helper()
	cbuild.Make(tb, "inject", "tests")
	writer := filepath.Join(testdata.Root(tb), "bin", "inject", "ring_events")
	j := &job{}
	for rank := range world {
		cmd := exec.Command(writer, fmt.Sprint(steps), mode)
		cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+dir, fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("LOCAL_RANK=%d", rank),
			fmt.Sprintf("WORLD_SIZE=%d", world), "LOCKSTEP_JOB_ID=job-7", "LOCKSTEP_RING_LANES=4", "LOCKSTEP_RING_RECORDS=1024")
		cmd.Env = append(cmd.Env, env...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(tb, err)
		require.NoError(tb, cmd.Start())
		j.ranks, j.out = append(j.ranks, cmd), append(j.out, bufio.NewReader(out))
		tb.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	return j
}

func (j *job) wait() {
	for _, cmd := range j.ranks {
		_ = cmd.Wait() // "die" ends with a status of its own
	}
}

// hung waits until all ranks are in the middle of what they hang in.
func (j *job) hung(t *testing.T) {
	t.Helper()
	for _, out := range j.out {
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "open\n", line)
	}
}

// bench is a receiver of both signals with everything around it.
type bench struct {
	traces receiver.Traces
	logs   receiver.Logs
	spans  *consumertest.TracesSink
	events *consumertest.LogsSink
	tel    *componenttest.Telemetry
	log    *observer.ObservedLogs
	stop   func()
}

func config(dir string) *Config {
	cfg := newDefaultConfig()
	cfg.Directory = dir
	cfg.PollInterval = 10 * time.Millisecond
	cfg.StallAfter = 300 * time.Millisecond
	cfg.StallRepeat = 300 * time.Millisecond
	cfg.RetryOnFailure.InitialInterval = time.Millisecond
	cfg.deadAfter = 200 * time.Millisecond // a job of these tests holds its lock while it lives
	return cfg
}

func start(t *testing.T, cfg *Config, next consumer.Traces) *bench {
	t.Helper()
	return startWith(t, cfg, next, nil)
}

func startWith(t *testing.T, cfg *Config, next consumer.Traces, logsTo consumer.Logs) *bench {
	t.Helper()
	require.NoError(t, cfg.Validate())
	b := &bench{spans: &consumertest.TracesSink{}, events: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry()}
	set := metadatatest.NewSettings(b.tel)
	core, logs := observer.New(zapcore.DebugLevel)
	set.Logger, b.log = zap.New(core), logs
	if next == nil {
		next = b.spans
	}
	if logsTo == nil {
		logsTo = b.events
	}
	var err error
	f := NewFactory()
	b.traces, err = f.CreateTraces(t.Context(), set, cfg, next)
	require.NoError(t, err)
	b.logs, err = f.CreateLogs(t.Context(), set, cfg, logsTo)
	require.NoError(t, err)
	host := componenttest.NewNopHost()
	require.NoError(t, b.logs.Start(t.Context(), host))
	require.NoError(t, b.traces.Start(t.Context(), host))
	b.stop = sync.OnceFunc(func() {
		assert.NoError(t, b.traces.Shutdown(context.Background()))
		assert.NoError(t, b.logs.Shutdown(context.Background()))
	})
	t.Cleanup(func() {
		b.stop()
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

// received returns what came, by rank.
func (b *bench) received(t *testing.T) map[int64]*model.RankOps {
	t.Helper()
	out := map[int64]*model.RankOps{}
	for _, td := range b.spans.AllTraces() {
		ranks, problems := otelmap.TracesToOps(td)
		require.Empty(t, problems)
		for _, r := range ranks {
			if out[r.Rank.Rank] == nil {
				out[r.Rank.Rank] = &model.RankOps{Rank: r.Rank}
			}
			out[r.Rank.Rank].Ops = append(out[r.Rank.Rank].Ops, r.Ops...)
		}
	}
	return out
}

func countOps(ops []model.Op, kind model.OpKind) int {
	n := 0
	for i := range ops {
		if ops[i].Kind == kind {
			n++
		}
	}
	return n
}

// open returns the events of open operations.
func (b *bench) open() (out []model.OpenOp) {
	for _, ld := range b.events.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					if o, ok := otelmap.LogToOpen(lr, nil); ok {
						out = append(out, o)
					}
				}
			}
		}
	}
	return out
}

// openOf returns the events of one operation: where the machine is busy, others
// may seem to stall as well.
func (b *bench) openOf(seq int64) (out []model.OpenOp) {
	for _, o := range b.open() {
		if o.Op.Collective.Seq == model.Some(seq) {
			out = append(out, o)
		}
	}
	return out
}

func (b *bench) counter(t *testing.T, name string, reason ...string) int64 {
	t.Helper()
	m, err := b.tel.GetMetric("otelcol_receiver_rank_events_" + name)
	if err != nil {
		return 0 // never added to
	}
	var sum int64
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := dp.Attributes.Value(attribute.Key("reason"))
		if len(reason) == 0 || value.AsString() == reason[0] {
			sum += dp.Value
		}
	}
	return sum
}

// said reports how many log lines hold the text.
func (b *bench) said(text string) int {
	n := 0
	for _, e := range b.log.All() {
		line := e.Message
		for _, f := range e.Context {
			if f.Interface != nil {
				line += " " + fmt.Sprint(f.Interface)
			}
			line += " " + f.String
		}
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
