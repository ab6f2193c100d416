// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Engine is what a connector concludes with: functions that the hub calls. Of Apply, Tick, Flush, Open, Metrics,
// Forget, Suspend and Seen the hub calls one at a time, with Lock. The others may run at the same time as those. Traces must
// be set where the factory takes traces, Logs where it takes logs; all else is optional.
type Engine struct {
	Settings

	// Traces and Logs read a batch, which belongs to others once they have returned. Several calls may be
	// under way, beside calls of the other functions.
	Traces func(ptrace.Traces) Input
	Logs   func(plog.Logs) Input

	// Start is called once, before all others but those that read and Seen.
	Start func(context.Context, component.Host, Outputs) error
	// Tick is called every Interval, and returns what has changed with time.
	Tick func(now time.Time) Output
	// Flush returns what is left as an output ends. Input may come afterwards, for other outputs; then Flush
	// is called again.
	Flush func(now time.Time) Output
	// Open returns the open findings, to be sent again.
	Open func(now time.Time) []model.Finding
	// Metrics returns all series. The next component owns them.
	Metrics func(now time.Time) pmetric.Metrics
	// Forget drops all of some jobs, named by their ids, and concludes nothing of them: another collector has them
	// from now on.
	Forget func(ids []string)
	// Suspend has Tick and Flush conclude nothing that is open, since its source is cut off and may give it again.
	// With false, the engine goes on.
	Suspend func(suspended bool)
	// Collects: the engine takes what other connectors conclude, and forgets jobs after them.
	Collects bool
	// Used is called in the call of a sender, with its context, once the engine has used the batch and before what
	// came of that was sent. It needs Wait.
	Used func(context.Context)
	// Seen is called after each use, to publish what telemetry reads without waiting for the engine.
	Seen func()
	// Stop is called once, after all others. An engine that does not return is left behind without it.
	Stop func()

	// Lock is held as Engine describes; nil: the hub has its own.
	Lock sync.Locker
	// States are what the storage keeps, by key.
	States map[string]State
	// Save keeps states before an output with findings is sent. Nil: all of them, so that a restart knows each
	// finding that was sent. Every FlushInterval all states are kept in any case. The hub holds no lock.
	Save func(context.Context, *States, *Output)
	// Sent is called after an output was taken, by several goroutines. While findings wait that the next
	// component refuses it is not called, and states are not kept every FlushInterval either. It needs Wait.
	Sent func(context.Context, *States, *Output)

	// Counts count what the hub does. The component's telemetry shows them.
	Counts *Counts
	// StorageFailures counts failures of the storage; nil: nothing does.
	StorageFailures metric.Int64Counter
}

// Settings are how often a hub does what, and how much it holds.
type Settings struct {
	// Interval is how often Tick is called; 0: every second.
	Interval time.Duration
	// FlushInterval is how often metrics are sent, and states are kept, to the nearest tick; 0: every 15 s,
	// as many scrape.
	FlushInterval time.Duration
	// RepeatInterval is how often open findings are sent again, first with the first tick, so that
	// consumers know those of before a restart; 0: never.
	RepeatInterval time.Duration
	// InboxBytes bounds what waits for the engine; 0: 16 MiB.
	InboxBytes int
	// Wait has a sender wait until the engine has used its batch, and until what came of that was sent or
	// refused. Engines with step traces need it: their refusal goes back to the sender.
	Wait bool
	// Storage names the storage extension that keeps the states; nil: nothing does.
	Storage *component.ID
	// Jobs names the extension that names jobs to Forget; nil: none does.
	Jobs *component.ID
}

// Outputs are the signals that pipelines take from a connector.
type Outputs struct{ Logs, Metrics, Traces bool }

// Input is what was read of a batch.
type Input struct {
	// Bytes is about how much Apply holds.
	Bytes int
	// Apply gives it to the engine; nil: nothing was read.
	Apply func(now time.Time) Output
}

// Output is what an engine has concluded.
type Output struct {
	// Findings are sent as log events, in this order. The newest revision of each is sent until it is
	// taken.
	Findings []model.Finding
	// Records are other log events, and are sent as findings are.
	Records []Record
	// FindingSpans are findings to be sent as spans, in the same way.
	FindingSpans []model.Finding
	// Spans are other spans, sent in the same way.
	Spans []Spans
	// StepTraces are sent once. What is refused goes back to the sender. Those of
	// a batch need Wait, and are dropped without.
	StepTraces []ptrace.Traces
	// Measured has metrics sent now instead of with the next flush.
	Measured bool
	// Settled, if any, is called once the step traces were taken, or their sender has the error. It needs Wait.
	Settled func()
}

// Record is a log event other than a finding.
type Record struct {
	// Key names what the event is about: of several events of one key the last is sent.
	Key   string
	Bytes int
	Write func(plog.LogRecord)
}

// Spans are some spans about one thing, which is their key.
type Spans struct {
	Key   string
	Bytes int
	Write func(ptrace.Traces)
}

// Counts count what a hub does.
type Counts struct {
	// InboxRefused counts batches that the sender was asked to send again.
	InboxRefused atomic.Int64
	// EventsRefused counts findings and records that were refused, each time. They are sent again.
	EventsRefused atomic.Int64
	// EventsLost counts those that were dropped: no room, a permanent refusal, or the end.
	EventsLost atomic.Int64
	// SpansLost counts spans of findings, other spans and spans of step traces that were dropped.
	SpansLost atomic.Int64
}
