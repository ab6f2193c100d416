// SPDX-License-Identifier: Apache-2.0

package sequenceprocessor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/sequencemap"
	"github.com/lockstep-otel/lockstep/internal/sequence"
	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor/internal/metadata"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	other := component.MustNewIDWithName("sequence", "other")
	for name, want := range map[string]*Config{
		"sequence":        newDefaultConfig(),
		"sequence/number": {Mode: ModeNumber, MaxJobs: 3},
		"sequence/count":  {Mode: ModeCount, SequenceID: &other, MaxJobs: defaultMaxJobs},
	} {
		sub, err := cm.Sub(name)
		require.NoError(t, err)
		cfg := NewFactory().CreateDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		assert.Equal(t, want, cfg, name)
	}
}

func TestValidate_EachFault_IsNamed(t *testing.T) {
	id := component.MustNewID("sequence")
	for want, cfg := range map[string]Config{
		`check mode: got "add"; want number or count`:                                              {Mode: "add", MaxJobs: 1},
		"check sequence: got no extension with mode count; want the name of an extension sequence": {Mode: ModeCount, MaxJobs: 1},
		"check sequence: got sequence with mode number; want it with mode count only":              {Mode: ModeNumber, SequenceID: &id, MaxJobs: 1},
		"check max_jobs: got 0; want at least 1":                                                   {Mode: ModeNumber},
	} {
		assert.EqualError(t, cfg.Validate(), want)
	}
}

func TestReadme_EveryKey_IsThere(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for f := range reflect.TypeFor[Config]().Fields() {
		if key := f.Tag.Get("mapstructure"); key != "" {
			assert.Contains(t, string(readme), "| `"+key+"` |")
		}
	}
}

// next is a component that refuses where it is to, and an analysis that has used the spans before.
type next struct {
	consumertest.TracesSink
	fail error
	used bool
}

// ConsumeTraces implements consumer.Traces.
func (n *next) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if n.used {
		deliver.Used(ctx)
	}
	if n.fail != nil {
		return n.fail
	}
	return n.TracesSink.ConsumeTraces(ctx, td)
}

func batch() ptrace.Traces {
	rank := model.Rank{JobID: "job", Incarnation: "inc", Rank: 1}
	return otelmap.OpsToTraces(&rank, []model.Op{{Kind: model.KindStep, Name: "step", Start: 1, End: 2, Step: model.Some(int64(4))}})
}

func start(t *testing.T, cfg *Config, host component.Host, to consumer.Traces) processor.Traces {
	t.Helper()
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, to)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(t.Context())) })
	return p
}

func TestNumber_Refused_NumbersAreVoid(t *testing.T) {
	to := &next{fail: errors.New("full")}
	p := start(t, newDefaultConfig(), componenttest.NewNopHost(), to)
	require.EqualError(t, p.ConsumeTraces(t.Context(), batch()), "full")
	to.fail = nil
	require.NoError(t, p.ConsumeTraces(t.Context(), batch()))
	require.Len(t, to.AllTraces(), 1)
	all, unread := sequencemap.Read(to.AllTraces()[0])
	assert.Zero(t, unread)
	require.Len(t, all, 1)
	assert.Equal(t, sequence.Ranges{{First: 0, Last: 0}}, all[0].Void)
	assert.Equal(t, map[sequence.Step]sequence.Ranges{{Job: "job", Incarnation: "inc", Step: 4}: {{First: 1, Last: 1}}}, all[0].Steps)
}

// book is the extension that a processor finds.
type book struct {
	component.StartFunc
	component.ShutdownFunc
	calls []string
}

func (b *book) note(call string, all []sequence.Arrival) {
	for range all {
		b.calls = append(b.calls, call)
	}
}
func (*book) Join() func()                             { return func() {} }
func (b *book) Arriving(all []sequence.Arrival)        { b.note("arriving", all) }
func (b *book) Refused(all []sequence.Arrival)         { b.note("refused", all) }
func (b *book) Arrived(all []sequence.Arrival)         { b.note("arrived", all) }
func (*book) Begin(sequence.Step) (v sequence.Verdict) { return v }
func (*book) End([]sequence.Step)                      {}
func (*book) Losses() []sequence.Loss                  { return nil }

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func TestCount_EachBatch_ArrivesOrIsRefused(t *testing.T) {
	id := component.MustNewID("sequence")
	b, to := &book{}, &next{}
	cfg := newDefaultConfig()
	cfg.Mode, cfg.SequenceID = ModeCount, &id
	p := start(t, cfg, host{id: b}, to)
	require.NoError(t, p.ConsumeTraces(t.Context(), batch()), "without numbers")
	assert.Empty(t, b.calls)
	numbered := func() ptrace.Traces {
		td := batch()
		sequencemap.Number(td, sequence.NewNumberer("p", 1))
		return td
	}
	require.NoError(t, p.ConsumeTraces(t.Context(), numbered()))
	assert.Equal(t, []string{"arriving", "arrived"}, b.calls)
	to.fail = errors.New("full")
	require.EqualError(t, p.ConsumeTraces(t.Context(), numbered()), "full")
	assert.Equal(t, []string{"arriving", "arrived", "arriving", "refused"}, b.calls)
	assert.Len(t, to.AllTraces(), 2)
	to.used = true
	require.EqualError(t, p.ConsumeTraces(t.Context(), numbered()), "full", "an analysis has used them")
	assert.Equal(t, []string{"arriving", "arrived", "arriving", "refused", "arriving", "arrived"}, b.calls)
}

func TestCount_NoExtension_DoesNotStart(t *testing.T) {
	id := component.MustNewID("sequence")
	cfg := newDefaultConfig()
	cfg.Mode, cfg.SequenceID = ModeCount, &id
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, &next{})
	require.NoError(t, err)
	require.EqualError(t, p.Start(t.Context(), componenttest.NewNopHost()), "find extension sequence: got none; want it in service::extensions")
	require.NoError(t, p.Shutdown(t.Context()))
}
