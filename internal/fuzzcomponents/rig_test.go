// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector"
	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/epochconnector"
	"github.com/lockstep-otel/lockstep/connector/findingsconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/extension/sequenceextension"
	"github.com/lockstep-otel/lockstep/extension/timelineextension"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor"
)

// settings are what a user writes below a component's name, by component.
type settings map[string]map[string]any

// variants are the configurations that inputs choose from.
var variants = []settings{
	{}, // the defaults
	{ // every limit is reached, and everything ends soon
		"straggler": {
			"deadline": "1s", "window": 2, "clean_steps": 1, "max_jobs": 1, "max_open_steps": 2, "max_ranks": 2, "max_ops_per_rank_step": 8,
			"max_open_ops": 32, "max_window_members": 8, "story_spans": 3, "max_held_spans": 8, "max_series": 2, "max_operations": 2,
			"flush_interval": "1s", "repeat_interval": "2s", "series_expiration": "5s",
		},
		"desync": {
			"min_gaps": 1, "start_limit": "2s", "held_limit": "2s", "state_ttl": "3s", "dump_wait": "1s", "forget": "20s", "flush_interval": "1s",
			"repeat_interval": "2s", "max_jobs": 1, "max_ranks": 2, "max_comms": 1, "max_series": 1,
		},
		"clocks": {"max_clocks": 2, "forget_after": "5s", "max_series": 1, "series_expiration": "5s"},
		"epoch": {
			"settle": "1s", "silent": "5s", "check_interval": "1s", "flush_interval": "1s", "repeat_interval": "2s", "max_jobs": 1, "max_domains": 2,
			"max_saves": 1, "max_registers": 4, "max_findings": 1, "max_series": 1, "log_lines": map[string]any{"enabled": true, "silent": "5s"},
			"fleet":    map[string]any{"settle": "1s", "silent": "5s", "max_nodes": 1, "max_versions": 1, "max_ranks": 2, "max_communicators": 1, "max_members": 2},
			"resume":   map[string]any{"silent": "5s", "max_incarnations": 1, "max_ranks": 2},
			"replicas": map[string]any{"silent": "5s", "max_groups": 1, "max_ranks": 2},
		},
		"findings":             {"max_open_findings": 2, "clean_steps": 1, "close_after": "5s", "flush_interval": "1s", "max_series": 1, "series_expiration": "5s"},
		"clock_skew":           {"max_spans": 4, "max_clocks": 2, "max_jobs": 1, "traces": map[string]any{"window": "1ms", "max_pairs": 1}, "health": map[string]any{"window": "1s"}},
		"sequence":             {"wait": "1s", "step_limit": "2s", "stream_limit": "5s", "max_streams": 1, "max_jobs": 1, "max_open": 2},
		"sequence/number":      {"max_jobs": 1},
		"straggler/processor":  {"deadline": "1s", "window": 2, "max_jobs": 1, "max_open_steps": 1, "max_ranks": 2, "hold": map[string]any{"max_spans": 8}},
		"straggler/processor2": {"max_open_ops": 16},
	},
	{ // the published statistics, one timeline for all, and what defaults leave out
		"straggler":  {"method": "kair", "clock": true, "sequence": "sequence"},
		"epoch":      {"fleet": map[string]any{"compatible": map[string]any{"nvidia_kernel_driver": [][]string{{"550.0", "550.1"}}}}},
		"clocks":     {"timeline": "timeline"},
		"clock_skew": {"timeline": "timeline", "traces": map[string]any{"enabled": false}},
	},
}

// rig has every connector and processor, wired as collectors wire them: findings of the
// others go to the findings connector.
type rig struct {
	t         *testing.T
	telemetry *componenttest.Telemetry
	host      component.Host
	settings  settings
	out       output

	running    []component.Component // in the order in which they are stopped
	traces     []consumer.Traces     // which leave what they are given as it is
	logs       []consumer.Logs
	processors []*observed
}

func newRig(t *testing.T, s settings) *rig {
	t.Helper()
	r := &rig{t: t, telemetry: componenttest.NewTelemetry(), host: componenttest.NewNopHost(), settings: s}
	r.out.t = t
	r.addTimeline()
	r.addProcessors()
	found := fanOut{next: r.fromLogs(r.share("findings", findingsconnector.NewFactory()), &r.out), out: &r.out}
	r.addStraggler(&found)
	r.addDesync(&found)
	r.fromLogs(r.share("clocks", clocksconnector.NewFactory()), &found)
	r.fromLogs(r.share("epoch", epochconnector.NewFactory()), &found)
	return r
}

// config returns the default configuration of a component with the settings of the variant.
func (r *rig) config(name string, from component.Config) component.Config {
	r.t.Helper()
	require.NoError(r.t, confmap.NewFromStringMap(r.settings[name]).Unmarshal(from), name)
	require.NoError(r.t, confmap.Validate(from), name)
	return from
}

// start starts c, which is stopped before those that were started earlier.
func (r *rig) start(c component.Component, err error) {
	r.t.Helper()
	require.NoError(r.t, err)
	require.NoError(r.t, c.Start(r.t.Context(), r.host))
	r.running = append([]component.Component{c}, r.running...)
}

type hostOf map[component.ID]component.Component

func (h hostOf) GetExtensions() map[component.ID]component.Component { return h }

func (r *rig) addTimeline() {
	r.t.Helper()
	f := timelineextension.NewFactory()
	cfg := r.config("timeline", f.CreateDefaultConfig())
	cfg.(*timelineextension.Config).NetAddr.Endpoint = "" // a bubble has no network
	set := extensiontest.NewNopSettings(f.Type())
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	ext, err := f.Create(r.t.Context(), set, cfg)
	r.start(ext, err)
	r.host = hostOf{component.NewID(f.Type()): ext, component.NewID(sequence): r.addSequence()}
}

// sequence is the type of the extension and of the processor.
var sequence = component.MustNewType("sequence")

func (r *rig) addSequence() component.Component {
	r.t.Helper()
	f := sequenceextension.NewFactory()
	set := extensiontest.NewNopSettings(f.Type())
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	ext, err := f.Create(r.t.Context(), set, r.config("sequence", f.CreateDefaultConfig()))
	r.start(ext, err)
	return ext
}

func (r *rig) addProcessors() {
	r.t.Helper()
	skew, straggler := clockskewprocessor.NewFactory(), stragglerprocessor.NewFactory()
	for _, mode := range []string{clockskewprocessor.ModeRealign, clockskewprocessor.ModeAnnotate, clockskewprocessor.ModeOff} {
		cfg := r.config("clock_skew", skew.CreateDefaultConfig()).(*clockskewprocessor.Config)
		cfg.Mode = mode
		r.addProcessor(skew, cfg, &observed{name: "clock_skew " + mode, strip: skewWrites[mode]})
	}
	holding := r.config("straggler/processor", straggler.CreateDefaultConfig()).(*stragglerprocessor.Config)
	holding.Hold.GetOrInsertDefault()
	r.addProcessor(straggler, holding, &observed{name: "straggler with hold", strip: stragglerWrites, late: true})
	numbers := sequenceprocessor.NewFactory()
	numbering := r.config("sequence/number", numbers.CreateDefaultConfig())
	r.addProcessor(numbers, numbering, &observed{name: "sequence number", strip: sequenceWrites, stripResource: sequenceWritesResource})
	counting := numbers.CreateDefaultConfig().(*sequenceprocessor.Config)
	id := component.NewID(sequence)
	counting.Mode, counting.SequenceID = sequenceprocessor.ModeCount, &id
	r.addProcessor(numbers, counting, &observed{name: "sequence count", strip: func(ptrace.Span, ptrace.Span) {}})
	passing := r.config("straggler/processor2", straggler.CreateDefaultConfig())
	r.addProcessor(straggler, passing, &observed{name: "straggler", strip: stragglerWrites})
}

func (r *rig) addProcessor(f processor.Factory, cfg component.Config, o *observed) {
	r.t.Helper()
	o.t, o.came, o.went = r.t, map[string]int{}, map[string]int{}
	set := processor.Settings{ID: component.NewID(f.Type()), TelemetrySettings: r.telemetry.NewTelemetrySettings()}
	p, err := f.CreateTraces(r.t.Context(), set, cfg, o)
	r.start(p, err)
	o.processor = p
	r.processors = append(r.processors, o)
}

// shared is what the instances of one connector have in common.
type shared struct {
	connector.Factory
	cfg component.Config
	set connector.Settings
}

func (r *rig) share(name string, f connector.Factory) shared {
	r.t.Helper()
	set := connector.Settings{ID: component.NewID(f.Type()), TelemetrySettings: r.telemetry.NewTelemetrySettings()}
	return shared{f, r.config(name, f.CreateDefaultConfig()), set}
}

// fromLogs starts the instances of a connector that take logs.
func (r *rig) fromLogs(s shared, found consumer.Logs) (faces []consumer.Logs) {
	r.t.Helper()
	add := func(c connector.Logs, err error) {
		r.t.Helper()
		r.start(c, err)
		faces = append(faces, c)
	}
	add(s.CreateLogsToLogs(r.t.Context(), s.set, s.cfg, found))
	add(s.CreateLogsToMetrics(r.t.Context(), s.set, s.cfg, &r.out))
	if s.LogsToTracesStability() != component.StabilityLevelUndefined {
		add(s.CreateLogsToTraces(r.t.Context(), s.set, s.cfg, &r.out))
	}
	r.logs = append(r.logs, faces...)
	return faces
}

func (r *rig) fromTraces(c connector.Traces, err error) {
	r.t.Helper()
	r.start(c, err)
	r.traces = append(r.traces, c)
}

func (r *rig) addStraggler(found consumer.Logs) {
	r.t.Helper()
	s := r.share("straggler", stragglerconnector.NewFactory())
	r.fromTraces(s.CreateTracesToLogs(r.t.Context(), s.set, s.cfg, found))
	r.fromTraces(s.CreateTracesToMetrics(r.t.Context(), s.set, s.cfg, &r.out))
	r.fromTraces(s.CreateTracesToTraces(r.t.Context(), s.set, s.cfg, &r.out))
}

func (r *rig) addDesync(found consumer.Logs) {
	r.t.Helper()
	s := r.share("desync", desyncconnector.NewFactory())
	r.fromTraces(s.CreateTracesToLogs(r.t.Context(), s.set, s.cfg, found))
	r.fromTraces(s.CreateTracesToMetrics(r.t.Context(), s.set, s.cfg, &r.out))
	r.fromLogs(s, found)
}

// sendTraces gives a batch to every component, as a collector does: those that change what
// they are given get a copy.
func (r *rig) sendTraces(td ptrace.Traces) {
	r.t.Helper()
	before := marshalTraces(td)
	r.out.given(len(before))
	for _, p := range r.processors {
		p.send(td)
	}
	for _, c := range r.traces {
		r.check(c.ConsumeTraces(r.t.Context(), td))
	}
	require.Equal(r.t, before, marshalTraces(td), "connectors change nothing of what they share")
}

func (r *rig) sendLogs(ld plog.Logs) {
	r.t.Helper()
	before := marshalLogs(ld)
	r.out.given(len(before))
	for _, c := range r.logs {
		r.check(c.ConsumeLogs(r.t.Context(), ld))
	}
	require.Equal(r.t, before, marshalLogs(ld), "connectors change nothing of what they share")
}

// check allows errors once a consumer has refused something.
func (r *rig) check(err error) {
	r.t.Helper()
	if !r.out.refused() {
		require.NoError(r.t, err)
	}
}

// stop stops everything and checks what processors have passed on.
func (r *rig) stop() {
	r.t.Helper()
	for _, c := range r.running {
		r.check(c.Shutdown(context.Background()))
	}
	for _, p := range r.processors {
		p.finish()
	}
	require.NoError(r.t, r.telemetry.Shutdown(context.Background()))
}
