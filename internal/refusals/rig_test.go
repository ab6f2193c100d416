// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/faulty"
)

// rig is a connector with all its instances, as a collector has them.
type rig struct {
	life

	of     *analysis
	born   time.Time
	to     map[string]*watched              // by signal
	faces  map[string][]component.Component // instances, by the signal that they emit
	traces []consumer.Traces
	logs   []consumer.Logs
	logged *observer.ObservedLogs

	sends []send
}

// send is one batch that a sender sent.
type send struct {
	err  error
	took time.Duration
	lost int // items of the row's signal that were counted as dropped meanwhile
}

// rigged returns the connector, whose next component of one signal is as a mode has it; the others take everything.
func (a *analysis) rigged(t *testing.T, host component.Host, signal string, m *mode, hooks ...func(zapcore.Entry) error) *rig {
	t.Helper()
	r := &rig{of: a, born: time.Now(), to: map[string]*watched{}, faces: map[string][]component.Component{}}
	for _, o := range a.emits {
		if o.signal == signal {
			r.to[o.signal] = &watched{next: m.make(t)}
		} else {
			r.to[o.signal] = &watched{next: answering(taking)(t)}
		}
	}
	r.life = life{host: host, telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { assert.NoError(t, r.telemetry.Shutdown(context.Background())) })
	f := a.factory()
	cfg := f.CreateDefaultConfig()
	of := confmap.NewFromStringMap(a.config)
	if len(host.GetExtensions()) > 0 {
		require.NoError(t, of.Merge(confmap.NewFromStringMap(map[string]any{"storage": storageID.String()})))
	}
	require.NoError(t, of.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	core, logged := observer.New(zap.WarnLevel)
	set := connector.Settings{ID: component.NewID(f.Type()), TelemetrySettings: r.telemetry.NewTelemetrySettings()}
	set.Logger, r.logged = zap.New(core, zap.Hooks(hooks...)), logged
	for _, o := range a.emits {
		r.connect(t, f, set, cfg, o.signal)
	}
	t.Cleanup(func() { // a second Shutdown does nothing
		for _, faces := range r.faces {
			_ = shutdown(faces)
		}
	})
	for _, faces := range r.faces {
		for _, c := range faces {
			require.NoError(t, c.Start(t.Context(), r.host))
		}
	}
	return r
}

// connect makes the instances that emit a signal.
func (r *rig) connect(t *testing.T, f connector.Factory, set connector.Settings, cfg component.Config, signal string) {
	t.Helper()
	ctx, next := t.Context(), r.to[signal]
	var fromTraces connector.Traces
	var fromLogs connector.Logs
	var errs [2]error
	switch signal {
	case "traces":
		fromTraces, errs[0] = f.CreateTracesToTraces(ctx, set, cfg, next)
		fromLogs, errs[1] = f.CreateLogsToTraces(ctx, set, cfg, next)
	case "logs":
		fromTraces, errs[0] = f.CreateTracesToLogs(ctx, set, cfg, next)
		fromLogs, errs[1] = f.CreateLogsToLogs(ctx, set, cfg, next)
	default:
		fromTraces, errs[0] = f.CreateTracesToMetrics(ctx, set, cfg, next)
		fromLogs, errs[1] = f.CreateLogsToMetrics(ctx, set, cfg, next)
	}
	require.True(t, errs[0] == nil || errs[1] == nil, "%v", errs) // a connector need not take both
	if errs[0] == nil {
		r.traces, r.faces[signal] = append(r.traces, fromTraces), append(r.faces[signal], fromTraces)
	}
	if errs[1] == nil {
		r.logs, r.faces[signal] = append(r.logs, fromLogs), append(r.faces[signal], fromLogs)
	}
}

// send gives all instances the same, as the collector does.
func (r *rig) send(b batch) (err error) {
	ctx := context.Background()
	if b.traces.ResourceSpans().Len() > 0 {
		for _, c := range r.traces {
			err = errors.Join(err, c.ConsumeTraces(ctx, b.traces))
		}
	}
	if b.logs.ResourceLogs().Len() > 0 {
		for _, c := range r.logs {
			err = errors.Join(err, c.ConsumeLogs(ctx, b.logs))
		}
	}
	return err
}

// begins is when the feed begins, so that what comes before it changes no time.
const begins = 20 * time.Second

// run sends the feed, each moment at its time, and lets the connector run on.
func (r *rig) run(dropped string) {
	begin := r.born.Add(begins + phase)
	for n := range r.of.moments {
		time.Sleep(time.Until(begin.Add(time.Duration(n) * faulty.Period)))
		b, lost, sent := r.of.feed("", begin, n), r.counter(dropped), time.Now()
		err := r.send(b)
		r.sends = append(r.sends, send{err, time.Since(sent), r.counter(dropped) - lost})
	}
	time.Sleep(r.of.quiet)
}

// end stops the connector, the instances that emit a signal first. It returns their errors, and how many items were counted
// as dropped: the metrics of a connector end with its last instance.
func (r *rig) end(t *testing.T, signal, dropped string) (count int, err error) {
	t.Helper()
	began := time.Now()
	err = shutdown(r.faces[signal])
	count = r.counter(dropped)
	for other, faces := range r.faces {
		if other != signal {
			require.NoError(t, shutdown(faces), other)
		}
	}
	assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit+lingers, "the end is held up")
	return count, err
}

// lingers is what instances take that wait for a sending queue behind them.
const lingers = time.Second

func shutdown(all []component.Component) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Shutdown(context.Background()))
	}
	return errors.Join(errs...)
}
