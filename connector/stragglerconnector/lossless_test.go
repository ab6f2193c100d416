// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/ledger"
	"github.com/lockstep-otel/lockstep/internal/otelmap/sequencemap"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// counts is the extension sequence with a ledger that is not stored.
type counts struct {
	component.StartFunc
	component.ShutdownFunc
	mu sync.Mutex
	of *sequence.Ledger
}

// use has the ledger used: the ticks of the connector do so beside senders.
func (c *counts) use(do func(*sequence.Ledger)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.of)
}

func (*counts) Join() func()                      { return func() {} }
func (c *counts) Arriving(all []sequence.Arrival) { c.use(func(l *sequence.Ledger) { l.Expect(all) }) }

func (c *counts) Refused(all []sequence.Arrival) { c.use(func(l *sequence.Ledger) { l.Refuse(all) }) }

func (c *counts) Arrived(all []sequence.Arrival) {
	c.use(func(l *sequence.Ledger) { _ = l.Arrive(all, time.Now()) })
}

func (c *counts) Begin(step sequence.Step) (v sequence.Verdict) {
	c.use(func(l *sequence.Ledger) { v, _ = l.Begin(step) })
	return v
}

func (c *counts) End(steps []sequence.Step) {
	c.use(func(l *sequence.Ledger) { _ = l.End(steps) })
}

func (c *counts) Losses() (lost []sequence.Loss) {
	c.use(func(l *sequence.Ledger) { lost = l.Losses() })
	return lost
}

// after returns the totals once so many minutes have passed.
func (c *counts) after(t *testing.T, minutes int) (of sequence.Totals) {
	t.Helper()
	for range minutes {
		time.Sleep(time.Minute)
		c.use(func(l *sequence.Ledger) { require.NoError(t, l.Tick(time.Now())) })
	}
	c.use(func(l *sequence.Ledger) { of = l.Totals() })
	return of
}

// backend is the next component of step traces.
type backend func() error

func (backend) Capabilities() consumer.Capabilities                  { return consumer.Capabilities{} }
func (b backend) ConsumeTraces(context.Context, ptrace.Traces) error { return b() }

// gateway is the connector behind the counting of a gateway, and an agent that sends to both.
type gateway struct {
	connector.Traces
	counts *counts
	agent  *sequence.Numberer
}

func newGateway(t *testing.T, to backend) *gateway {
	t.Helper()
	l, err := sequence.NewLedger(sequence.Config{
		Wait: time.Minute, StepLimit: time.Hour, StreamLimit: 24 * time.Hour, MaxStreams: 100, MaxJobs: 100, MaxOpen: 1000, MaxRanges: 1024,
	}, nil, time.Now())
	require.NoError(t, err)
	id := component.MustNewID("sequence")
	cfg := newDefaultConfig()
	cfg.SequenceID = &id
	g := &gateway{counts: &counts{of: l}, agent: sequence.NewNumberer("agent", 10)}
	g.Traces, err = NewFactory().CreateTracesToTraces(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, to)
	require.NoError(t, err)
	require.NoError(t, g.Start(t.Context(), extensions{id: g.counts}))
	return g
}

// send has the agent send a batch until it is taken or refused for good, and returns how often it was refused. Its calls
// take 5 s at most.
func (g *gateway) send(t *testing.T, td ptrace.Traces, beside func(error) error) (refused int) {
	t.Helper()
	sequencemap.Number(td, g.agent)
	all, _ := sequencemap.Read(td)
	for ; refused < 20; refused++ {
		sent := ptrace.NewTraces()
		td.CopyTo(sent)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := ledger.Pass(ctx, g.counts, all, func(ctx context.Context) error { return beside(g.ConsumeTraces(ctx, sent)) })
		over := ctx.Err() != nil
		cancel()
		if err == nil {
			return refused
		}
		if !over && consumererror.IsPermanent(err) {
			return refused + 1
		}
	}
	t.Fatal("the batch is refused again and again")
	return refused
}

// All spans arrive and are analysed, whatever is refused behind that.
func TestSequence_SpansWereAnalysed_NoneIsLost(t *testing.T) {
	alone := func(err error) error { return err }
	for name, of := range map[string]struct {
		backend backend
		beside  func(error) error
	}{
		"step traces are refused": {func() error { return errors.New("sending queue is full") }, alone},
		"step traces take longer than the sender waits": {func() error {
			time.Sleep(8 * time.Second)
			return nil
		}, alone},
		"another connector refuses for good": {func() error { return nil }, func(err error) error {
			return errors.Join(err, consumererror.NewPermanent(errors.New("panicked")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGateway(t, of.backend)
				refused, spans := 0, int64(0)
				for s := range int64(8) {
					for _, td := range step(s, true) {
						spans += int64(td.SpanCount())
						refused += g.send(t, td, of.beside)
					}
				}
				got := g.counts.after(t, 4)
				assert.Positive(t, refused)
				assert.Equal(t, sequence.Totals{Arrived: spans, Concluded: spans, Again: got.Again}, got)
				_ = g.Shutdown(context.Background())
			})
		})
	}
}

// A batch that the connector did not use is lost where the agent drops it.
func TestSequence_SpansWereRefusedBefore_AreAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func() error { return nil })
		all := step(0, true)
		g.send(t, all[0], func(err error) error { return err })
		td := all[1]
		spans := int64(td.SpanCount())
		sequencemap.Number(td, g.agent)
		arrivals, _ := sequencemap.Read(td)
		err := ledger.Pass(t.Context(), g.counts, arrivals, func(context.Context) error {
			return consumererror.NewPermanent(errors.New("not for me"))
		})
		require.Error(t, err)
		g.send(t, all[2], func(err error) error { return err })
		assert.Equal(t, spans, g.counts.after(t, 3).Gap)
		require.NoError(t, g.Shutdown(t.Context()))
	})
}
