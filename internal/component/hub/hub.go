// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Hub is what the instances of one configuration of a connector have in common: the engine, the interval,
// the inbox and the outputs.
//
// Whoever uses the engine has the turn: a sender whose batch finds the engine free, the interval, or an
// instance that leaves. The turn lasts until what came of the use is with the outputs, which keeps that in
// order. The engine's lock is held for the use alone. No consumer is called with either.
type Hub struct {
	engine   *Engine
	id       component.ID
	log      *zap.Logger
	interval *Interval
	begin    sync.Once
	beginErr error
	started  int // instances; guarded by leaving

	feeding [sources]bool // instances are made by one goroutine

	inbox inbox
	turn  chan struct{} // holds a value while the engine is used
	lock  sync.Locker
	ends  context.Context //nolint:containedctx // done when the last instance leaves: the interval waits no longer for the turn
	end   context.CancelFunc

	// What follows belongs to the turn.
	states            *States // nil: nothing is kept
	flushed, repeated time.Time
	drained           bool // the engine was flushed, and nothing came since
	leaveJobs         func()
	warned            bool // that step traces are dropped

	logs, metrics, traces *output // nil: no pipeline takes the signal

	leaving sync.Mutex   // guards what follows, and how many instances of each output are open
	open    int          // instances
	busy    bool         // the engine was left behind
	rest    []deliveries // of flushes
}

// Defaults of [Settings].
const (
	defaultInterval      = time.Second
	defaultFlushInterval = 15 * time.Second
)

func newHub(e *Engine, id component.ID, set component.TelemetrySettings) *Hub {
	e.Interval, e.FlushInterval = cmp.Or(e.Interval, defaultInterval), cmp.Or(e.FlushInterval, defaultFlushInterval)
	h := &Hub{engine: e, id: id, log: set.Logger, turn: make(chan struct{}, 1), lock: e.Lock}
	if h.lock == nil {
		h.lock = &sync.Mutex{}
	}
	if e.Counts == nil {
		e.Counts = &Counts{}
	}
	h.ends, h.end = context.WithCancel(context.Background())
	h.inbox.limit = cmp.Or(e.InboxBytes, defaultInboxBytes)
	h.interval = NewInterval(e.Interval, h.tick)
	h.use(func() {})
	return h
}

// feed reports whether an instance is the first that takes a signal.
func (h *Hub) feed(from source) bool {
	first := !h.feeding[from]
	h.feeding[from] = true
	return first
}

// start takes what the run before kept, and begins the interval once all instances have started: the next
// components of each have started before it.
func (h *Hub) start(ctx context.Context, host component.Host) error {
	h.begin.Do(func() { h.beginErr = h.restore(ctx, host) })
	h.leaving.Lock()
	h.started++
	all := h.started == h.open
	h.leaving.Unlock()
	if all && h.beginErr == nil {
		h.interval.Start()
	}
	return h.beginErr
}

func (h *Hub) restore(ctx context.Context, host component.Host) error {
	h.turn <- struct{}{}
	defer h.yield()
	if h.engine.Start != nil {
		outputs := Outputs{Logs: h.logs != nil, Metrics: h.metrics != nil, Traces: h.traces != nil}
		if err := h.engine.Start(ctx, host, outputs); err != nil {
			return err
		}
	}
	if err := h.joinJobs(host); err != nil {
		return err
	}
	at := Storage{Extension: h.engine.Storage, Kind: component.KindConnector, Component: h.id}
	states, err := OpenStates(ctx, host, at, h.lock, h.engine.States, h.storageFailed)
	h.states = states
	if h.engine.Sent != nil {
		states.holdWhile(h.refused)
	}
	h.use(func() {})
	return err
}

func (h *Hub) storageFailed(err error) {
	if h.engine.StorageFailures != nil {
		h.engine.StorageFailures.Add(context.Background(), 1)
	}
	h.log.Warn("Storage of findings fails", zap.Error(err))
}

// consume has the engine use what was read of a batch: now where the engine is free, else as soon as it is.
func (h *Hub) consume(ctx context.Context, in Input) error {
	if in.Apply == nil {
		return nil
	}
	w := &waiting{input: in, used: make(chan struct{})}
	if err := h.inbox.put(ctx, w); err != nil {
		h.engine.Counts.InboxRefused.Add(1)
		return err
	}
	h.work()
	if !h.engine.Wait {
		return w.failed()
	}
	if err := h.await(ctx, w); err != nil {
		return err
	}
	if err := w.failed(); err != nil {
		return err
	}
	if h.engine.Used != nil {
		h.engine.Used(ctx)
	}
	if err := h.settle(ctx, &w.sent); err != nil { // the engine has used the batch: the same again would be duplicates
		return consumererror.NewPermanent(deliver.Analysed(fmt.Errorf("deliver step traces of data that were analysed, and are not lost: %w", err)))
	}
	return nil
}

// await returns once the engine has used a batch, or takes it back when the sender gives up.
func (h *Hub) await(ctx context.Context, w *waiting) error {
	select {
	case <-w.used:
		return nil
	default:
	}
	select {
	case <-w.used:
	case <-ctx.Done():
		if h.inbox.withdraw(w) {
			h.engine.Counts.InboxRefused.Add(1)
			return fmt.Errorf("wait for the analysis: %w", context.Cause(ctx))
		}
		<-w.used
	}
	return nil
}

// settle waits until what came of a use was taken or refused, and returns the refusal of step traces.
func (h *Hub) settle(ctx context.Context, d *deliveries) error {
	err := d.wait(ctx, nil)
	d.settled()
	if h.engine.Sent != nil && h.states != nil && !h.refused() {
		h.engine.Sent(context.WithoutCancel(ctx), h.states, d.of)
	}
	return err
}

// refused reports whether findings wait that the next component does not take, or were lost at the end.
func (h *Hub) refused() bool {
	return h.logs != nil && h.logs.box.refuses() || h.traces != nil && h.traces.box.refuses()
}

// work has the engine use what waits, where it is free. The goroutine that uses it now looks again afterwards.
func (h *Hub) work() {
	select {
	case h.turn <- struct{}{}:
		defer h.yield()
		h.drain()
	default:
	}
}

// enter takes the turn, unless the engine is busy until ctx is done.
func (h *Hub) enter(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the analysis is busy: %w", context.Cause(ctx))
	}
}

// yield ends the turn. A goroutine goes on with what came since: a sender works for itself and for those
// before it.
func (h *Hub) yield() {
	<-h.turn
	if h.inbox.len() > 0 {
		go h.work()
	}
}

// drain has the engine use what waits by now; the caller has the turn.
func (h *Hub) drain() {
	for range h.inbox.len() {
		if w := h.inbox.first(); w != nil {
			h.apply(w)
		}
	}
}

// apply has the engine use a batch. An engine that panics loses that batch, and takes no other one along.
func (h *Hub) apply(w *waiting) {
	defer close(w.used)
	defer func() {
		if text := recover(); text != nil {
			w.err = consumererror.NewPermanent(fmt.Errorf("use a batch: the analysis panicked: %v", text))
			h.log.Error("The analysis panicked: a batch is lost", zap.Any("panic", text), zap.ByteString("stack", debug.Stack()))
		}
	}()
	now, out := time.Now(), &Output{}
	w.sent.of = out
	h.drained = false
	h.use(func() { *out = w.input.Apply(now) })
	if !h.engine.Wait {
		h.loseStepTraces(out)
	}
	w.sent = h.emit(context.Background(), out, now, out.Measured)
}

// use calls the engine, and publishes its counters.
func (h *Hub) use(do func()) {
	h.lock.Lock()
	defer h.lock.Unlock()
	do()
	if h.engine.Seen != nil {
		h.engine.Seen()
	}
}

// tick has the engine conclude from time, and waits for the outputs as a sender does.
func (h *Hub) tick(time.Time) {
	if err := h.enter(h.ends); err != nil {
		return
	}
	sent, due := h.conclude()
	ctx := context.Background()
	if err := h.settle(ctx, &sent); err != nil {
		h.log.Warn("Step traces were refused", zap.Error(err))
	}
	if due {
		h.states.Save(ctx) // without the turn: a slow storage holds up no sender
	}
}

// conclude returns what came of a tick, and whether metrics and states were due; the caller has the turn, which
// ends with it.
func (h *Hub) conclude() (sent deliveries, due bool) {
	defer h.yield()
	h.drain()
	now := time.Now() // the turn and the inbox took time, and time runs forward for the engine
	e, out := h.engine, &Output{}
	if e.Tick != nil {
		h.use(func() { *out = e.Tick(now) })
	}
	if e.Open != nil && e.RepeatInterval > 0 && now.Sub(h.repeated) >= e.RepeatInterval {
		h.repeated = now
		h.use(func() { out.Findings = withOthers(out.Findings, e.Open(now)) })
	}
	due = now.Sub(h.flushed) >= e.FlushInterval-e.Interval/2 // ticks jitter
	if due || out.Measured {
		h.flushed = now
	}
	return h.emit(context.Background(), out, now, due || out.Measured), due
}

// withOthers appends the open findings to those that have changed.
func withOthers(changed, open []model.Finding) []model.Finding {
	known := make(map[string]bool, len(changed))
	for i := range changed {
		known[changed[i].ID] = true
	}
	for i := range open {
		if id := open[i].ID; id == "" || !known[id] {
			changed = append(changed, open[i])
		}
	}
	return changed
}

// emit keeps what an output is about, and gives it to the outputs; the caller has the turn. States are kept
// before, so that a restart knows each finding that was sent.
func (h *Hub) emit(ctx context.Context, out *Output, now time.Time, measured bool) deliveries {
	switch e := h.engine; {
	case h.states == nil || len(out.Findings) == 0:
	case e.Save != nil:
		e.Save(ctx, h.states, out)
	default:
		h.states.Save(ctx)
	}
	all := deliveries{of: out}
	all.add(h.logs, h.logs.putEvents(logEntries(out)))
	all.add(h.traces, h.traces.putEvents(spanEntries(out)))
	all.stepTraces = h.traces.putStepTraces(out.StepTraces)
	if measured {
		all.add(h.metrics, h.putMetrics(now))
	}
	return all
}

// loseStepTraces drops those of a batch that no sender waits for: nothing would bound them.
func (h *Hub) loseStepTraces(out *Output) {
	if h.traces == nil {
		return
	}
	for _, td := range out.StepTraces {
		h.engine.Counts.SpansLost.Add(int64(td.SpanCount()))
	}
	if len(out.StepTraces) > 0 && !h.warned {
		h.warned = true
		h.log.Error("Drop step traces: got an engine without Wait; want one with it")
	}
	out.StepTraces = nil
}

func (h *Hub) putMetrics(now time.Time) wait {
	if h.metrics == nil || h.engine.Metrics == nil || !h.metrics.idle() {
		return nil
	}
	var md pmetric.Metrics
	h.use(func() { md = h.engine.Metrics(now) })
	return h.metrics.putMetrics(md)
}
