// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/lockstep-otel/lockstep/internal/faulty"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor"
)

// passing is a processor that spans pass through.
type passing struct {
	name    string
	factory func() processor.Factory
	config  map[string]any
	// dropped counts spans that are lost; empty: the processor holds none, and each refusal is the sender's.
	dropped string
}

func processors() []passing {
	return []passing{
		{name: "clock_skew", factory: clockskewprocessor.NewFactory},
		{name: "sequence", factory: sequenceprocessor.NewFactory},
		{name: "straggler", factory: stragglerprocessor.NewFactory},
		{
			name: "straggler, hold", factory: stragglerprocessor.NewFactory, dropped: "processor_straggler_spans_lost",
			config: map[string]any{"deadline": "2s", "hold": map[string]any{"flush_interval": "500ms"}},
		},
	}
}

// What becomes of spans that pass through a processor is what the table has.
func TestProcessor_NextTakesNothing_NothingLostSilently(t *testing.T) {
	table := newTable(ofConnectors)
	t.Run("of", func(t *testing.T) {
		for _, p := range processors() {
			table.row(p.name, "traces")
			for _, m := range ofConnectors {
				t.Run(p.name+" "+m.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { table.set(p.name, "traces", m.name, p.outcome(t, &m)) })
				})
			}
		}
	})
	table.compare(t, "processors.md")
}

// tries is how often a sender sends a batch that is refused for now, and pause the time between.
const (
	tries = turnedAway + 2
	pause = time.Second
)

// passage is what became of spans that were sent.
type passage struct {
	to                *watched
	held              bool
	spans             int // that were sent, each once
	errors, permanent int
	panicked          bool
	waits             bool // a call did not return
}

func (p *passing) outcome(t *testing.T, m *mode) string {
	t.Helper()
	to := &watched{next: m.make(t)}
	l := &life{telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { assert.NoError(t, l.telemetry.Shutdown(context.Background())) })
	f := p.factory()
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(p.config).Unmarshal(cfg))
	set := processor.Settings{ID: component.NewID(f.Type()), TelemetrySettings: l.telemetry.NewTelemetrySettings()}
	c, err := f.CreateTraces(t.Context(), set, cfg, to)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	pass := passage{to: to, held: p.dropped != ""}
	begin := time.Now()
	for n := int64(0); n < 12 && !pass.waits; n++ {
		pass.send(t, c, func() ptrace.Traces { return stepsOf(begin, n) })
		time.Sleep(faulty.Period)
	}
	time.Sleep(10 * time.Second) // the last step is held for the deadline
	dropped := l.counter(p.dropped)
	_ = c.Shutdown(context.Background()) // what the end gives is in the components' own tests
	to.stop()
	return pass.verdict(t, m, len(itemsOf(to.taken)), dropped)
}

// stepsOf are the steps of a moment. Those of the last ones lack a rank, so that they wait for the deadline where they are held.
func stepsOf(begin time.Time, n int64) ptrace.Traces {
	td := fault(-1, "straggler")("", begin, n).traces
	if n >= 10 {
		td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
			rank, _ := rs.Resource().Attributes().Get(semconv.Rank)
			return rank.Int() == 7
		})
	}
	return td
}

// send sends a batch, again where it is refused for now.
func (p *passage) send(t *testing.T, c processor.Traces, build func() ptrace.Traces) {
	t.Helper()
	p.spans += build().SpanCount()
	for range tries {
		err, returned := p.call(func() error { return c.ConsumeTraces(context.Background(), build()) })
		p.waits = p.waits || !returned
		if err == nil {
			return
		}
		p.errors++
		if !p.held {
			assert.True(t, err == p.to.answers().err, "the error goes up as it is") //nolint:errorlint,testifylint // not even wrapped
		}
		if consumererror.IsPermanent(err) {
			p.permanent++
			return
		}
		time.Sleep(pause)
	}
}

var errPanicked = errors.New("panicked")

// call makes a call, and reports whether it returned while a sender has patience.
func (p *passage) call(do func() error) (err error, returned bool) { //nolint:revive // the awaited value is an error
	done := make(chan error, 1)
	go func() {
		defer func() {
			if text := recover(); text != nil {
				done <- fmt.Errorf("%w: %v", errPanicked, text)
			}
		}()
		done <- do()
	}()
	select {
	case err = <-done:
		if errors.Is(err, errPanicked) {
			p.panicked = true
			return nil, true
		}
		return err, true
	case <-time.After(patience):
		return nil, false
	}
}

// verdict judges what became of the spans: so many arrived, and so many were counted as lost.
func (p *passage) verdict(t *testing.T, m *mode, arrived, dropped int) string {
	t.Helper()
	switch {
	case p.waits:
		assert.Equal(t, doesNotReturn, m.name)
		return "the sender waits"
	case p.panicked:
		assert.Equal(t, "panics", m.name)
		return "panics up to the sender"
	}
	var out []string
	switch {
	case p.held && p.errors > 0:
		assert.Equal(t, p.errors, p.permanent, "the batch is held already")
		out = append(out, "error to the sender")
	case p.errors > p.permanent:
		out = append(out, "error to the sender; sent again")
	case p.errors > 0:
		out = append(out, "error to the sender")
	}
	if dropped > 0 {
		out = append(out, "counted")
	}
	switch {
	case p.held:
		assert.Equal(t, p.spans, arrived+dropped, "each span arrives or is counted")
	case !m.never:
		assert.Equal(t, p.spans, arrived, "each span arrives once")
	default:
		assert.Zero(t, arrived)
		assert.Positive(t, p.errors)
	}
	switch {
	case arrived == p.spans:
		out = append(out, "arrives")
	case arrived > 0:
		out = append(out, "the next ones arrive")
	}
	return strings.Join(out, ", ")
}
