// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ShutdownLimit is how long a component's Shutdown waits for its next components. The
// collector sets no limit when it gets SIGTERM, and stops one component after the other.
const ShutdownLimit = 5 * time.Second

// Shares of the time that a component has to stop. After the first, calls that began before are
// cancelled; after the second, they are left behind, so that there is time for the other next
// components. After the third, the last calls, those that began during the stop, are cancelled;
// after the fourth, every call is left behind. The rest is for the component itself.
const (
	hurryShare  = 0.2
	leaveShare  = 0.4
	cancelShare = 0.75
	closeShare  = 0.9
)

// ErrClosed is the error of data that came to a closed [Gate].
var ErrClosed = errors.New("the component stops, and the next component does not return")

// Gate stands between a component and its next components. It lets the component stop while
// one of them blocks, even one that ignores its context: the call continues in its own
// goroutine, which has only the data that the next component owns anyway. A next component that
// panics refuses the data for good. A gate is safe for concurrent use.
type Gate struct {
	log      *zap.Logger
	inner    bool
	taken    atomic.Pointer[time.Time] // when the newest call was taken that the stop waits after; nil: none was
	stopping atomic.Bool               // calls that begin are the last
	panicked atomic.Bool               // a panic was logged
	hurried  chan struct{}             // closed when those that began before are cancelled
	hurry    func()
	left     chan struct{} // closed when they are left behind
	leave    func()
	closed   chan struct{} // closed when all are
	close    func()

	mu          sync.Mutex
	behind      []string // the signal of each call that did not return, since the last report
	undelivered int      // items
}

// NewGate returns an open gate.
func NewGate(log *zap.Logger) *Gate {
	g := &Gate{log: log, hurried: make(chan struct{}), left: make(chan struct{}), closed: make(chan struct{})}
	g.hurry = sync.OnceFunc(func() { close(g.hurried) })
	g.leave = sync.OnceFunc(func() { close(g.left) })
	g.close = sync.OnceFunc(func() { close(g.closed) })
	return g
}

// NewInnerGate returns an open gate of a component that has others before it. What these give as they stop,
// it may give before it stops itself.
func NewInnerGate(log *zap.Logger) *Gate {
	g := NewGate(log)
	g.inner = true
	return g
}

// Traces returns next behind the gate; nil for nil.
func (g *Gate) Traces(next consumer.Traces) consumer.Traces {
	if next == nil {
		return nil
	}
	return &gated{gate: g, capabilities: next.Capabilities(), traces: next}
}

// Logs returns next behind the gate; nil for nil.
func (g *Gate) Logs(next consumer.Logs) consumer.Logs {
	if next == nil {
		return nil
	}
	return &gated{gate: g, capabilities: next.Capabilities(), logs: next}
}

// Metrics returns next behind the gate; nil for nil.
func (g *Gate) Metrics(next consumer.Metrics) consumer.Metrics {
	if next == nil {
		return nil
	}
	return &gated{gate: g, capabilities: next.Capabilities(), metrics: next}
}

// gated is one consumer behind a gate.
type gated struct {
	gate         *Gate
	capabilities consumer.Capabilities
	traces       consumer.Traces
	logs         consumer.Logs
	metrics      consumer.Metrics
	behind       atomic.Bool // a call was left behind
}

// Capabilities implements consumer.Traces, consumer.Logs and consumer.Metrics.
func (c *gated) Capabilities() consumer.Capabilities { return c.capabilities }

// ConsumeTraces implements consumer.Traces.
func (c *gated) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return c.pass(ctx, "traces", td.SpanCount(), func(ctx context.Context) error { return c.traces.ConsumeTraces(ctx, td) })
}

// ConsumeLogs implements consumer.Logs.
func (c *gated) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return c.pass(ctx, "logs", ld.LogRecordCount(), func(ctx context.Context) error { return c.logs.ConsumeLogs(ctx, ld) })
}

// ConsumeMetrics implements consumer.Metrics.
func (c *gated) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return c.pass(ctx, "metrics", md.DataPointCount(), func(ctx context.Context) error { return c.metrics.ConsumeMetrics(ctx, md) })
}

// pass makes a call, and returns without it when the call is left behind. Then the next component
// gets no other.
func (c *gated) pass(ctx context.Context, signal string, items int, call func(context.Context) error) error {
	g := c.gate
	last := g.stopping.Load()
	if c.behind.Load() || isClosed(g.closed) {
		g.lose(items)
		return ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { g.guard(signal, done, func() error { return call(ctx) }) }()
	if err, ok := g.await(done, last, cancel); ok {
		if err == nil && items > 0 && (last || g.inner) {
			now := time.Now()
			g.taken.Store(&now)
		}
		return err
	}
	c.behind.Store(true)
	g.lose(items, signal)
	return ErrClosed
}

// guard makes a call and sends its error. A next component that panics refuses the data for good, and does not
// end the collector: the goroutine is the gate's, so that nothing of the collector's own would recover.
func (g *Gate) guard(signal string, done chan<- error, call func() error) {
	err := errGone
	defer func() {
		if text := recover(); text != nil {
			err = consumererror.NewPermanent(fmt.Errorf("pass on %s: the next component panicked: %v", signal, text))
			g.logPanic(signal, text)
		}
		done <- err
	}()
	err = call()
}

// errGone is the error of a call that ended its goroutine.
var errGone = consumererror.NewPermanent(errors.New("the next component ended the goroutine of its call"))

// logPanic logs the first panic of a gate with its stack, and further ones at the debug level.
func (g *Gate) logPanic(signal string, text any) {
	level := zapcore.DebugLevel
	if !g.panicked.Swap(true) {
		level = zapcore.ErrorLevel
	}
	g.log.Log(level, "The next component panicked: what it was given counts as refused for good",
		zap.String("signal", signal), zap.Any("panic", text), zap.ByteString("stack", debug.Stack()))
}

// await returns what comes of a call; false where the call is left behind. Unless it is one of the
// last, it is cancelled and left behind early.
func (g *Gate) await(done <-chan error, last bool, cancel func()) (err error, ok bool) { //nolint:revive // the awaited value is an error
	hurried, left := g.hurried, g.left
	if last {
		hurried, left = nil, nil
	}
	for {
		select {
		case err = <-done:
			return err, true
		case <-hurried:
			cancel()
			hurried = nil
			continue
		case <-left:
		case <-g.closed:
		}
		select {
		case err = <-done:
			return err, true
		default:
			return nil, false
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (g *Gate) lose(items int, behind ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undelivered += items
	g.behind = append(g.behind, behind...)
}

// Stop begins the end of the component: it closes the gate before ctx is done, and before
// [ShutdownLimit] is over. It returns the context of what the component gives last. The
// component calls stopped as soon as it gives nothing any more; stopped logs what was not
// delivered because of the gate, and returns it as an error.
func (g *Gate) Stop(ctx context.Context) (last context.Context, stopped func() error) {
	limit := ShutdownLimit
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(at))
	}
	g.stopping.Store(true)
	last, cancel := context.WithTimeout(ctx, share(limit, cancelShare))
	hurry := time.AfterFunc(share(limit, hurryShare), g.hurry)
	leave := time.AfterFunc(share(limit, leaveShare), g.leave)
	closing := time.AfterFunc(share(limit, closeShare), g.close)
	cancelled := context.AfterFunc(ctx, g.close)
	return last, func() error {
		hurry.Stop()
		leave.Stop()
		closing.Stop()
		cancelled()
		cancel()
		g.linger(ctx)
		return g.report()
	}
}

// lingerFor is the time in which a sending queue on disk reads what it was given: once its exporter
// stops, it reads nothing more, and sends the rest at the next start.
const lingerFor = 200 * time.Millisecond

// linger gives the next components lingerFor since the newest call that they took: of those that began during
// the stop, or of all where others stop before.
func (g *Gate) linger(ctx context.Context) {
	taken := g.taken.Load()
	if taken == nil {
		return
	}
	timer := time.NewTimer(lingerFor - time.Since(*taken))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func share(of time.Duration, part float64) time.Duration { return time.Duration(part * float64(of)) }

// report logs what was not delivered since the last report.
func (g *Gate) report() error {
	g.mu.Lock()
	behind, items := g.behind, g.undelivered
	g.behind, g.undelivered = nil, 0
	g.mu.Unlock()
	if len(behind) == 0 && items == 0 {
		return nil
	}
	calls := len(behind)
	slices.Sort(behind)
	signals := strings.Join(slices.Compact(behind), ", ")
	g.log.Error("Stopped before everything was delivered: the next component did not return",
		zap.String("signals", signals), zap.Int("calls_left_behind", calls), zap.Int("items_not_delivered", items))
	return fmt.Errorf("stop: %d calls (%s) of the next component did not return and are left behind; %d items were not delivered: %w",
		calls, signals, items, context.DeadlineExceeded)
}
