// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap/zapcore"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/faulty"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// hold stops the first that comes to it, until it is released.
type hold struct {
	entered, released chan struct{}
	release           func()
	once              atomic.Bool
}

func newHold() *hold {
	h := &hold{entered: make(chan struct{}), released: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.released) })
	return h
}

func (h *hold) pass() {
	if !h.once.Swap(true) {
		close(h.entered)
		<-h.released
	}
}

// heldStorage is a storage whose first write takes long, and a host that has it.
type heldStorage struct {
	*memory
	hold *hold
}

func (s heldStorage) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: s}
}

func (s heldStorage) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

func (s heldStorage) Set(ctx context.Context, key string, value []byte) error {
	s.hold.pass()
	return s.memory.Set(ctx, key, value)
}

// busied returns the connector in a process in which a write takes long while the engine is used: one to the storage, or,
// where the connector has none, one to the log.
func (a *analysis) busied(t *testing.T, h *hold) *rig {
	t.Helper()
	if a.logs {
		return a.rigged(t, componenttest.NewNopHost(), "", nil, func(zapcore.Entry) error {
			h.pass()
			return nil
		})
	}
	return a.rigged(t, heldStorage{newMemory(), h}, "", nil)
}

// full has a batch come while the engine is busy, and there is no room in the inbox: it is refused as a whole, the sender
// repeats it, and everything that comes later arrives.
func (a *analysis) full(t *testing.T, put map[string][]item) string {
	t.Helper()
	h := newHold()
	defer h.release()
	r := a.busied(t, h)
	early := make(chan struct{})
	go func() {
		defer close(early)
		r.untilHeld(t, h)
	}()
	<-h.entered
	synctest.Wait()
	used := r.counter(a.used)

	filled := make(chan error, 1)
	go func() { filled <- r.send(a.filler()) }()
	synctest.Wait()
	began := time.Now()
	probe := func() batch { return a.feed("probe", began, a.probe) }
	refusal := r.send(probe())
	require.ErrorIs(t, refusal, hub.ErrBusy)
	assert.False(t, consumererror.IsPermanent(refusal), "the sender repeats it")
	assert.LessOrEqual(t, time.Since(began), time.Duration(a.takes)*deliver.Patience)
	h.release()
	require.NoError(t, <-filled)
	<-early
	time.Sleep(time.Second)
	assert.Equal(t, used+a.filled, r.counter(a.used), "something of a refused batch was used")
	require.NoError(t, r.send(probe()))
	time.Sleep(time.Second)
	assert.Greater(t, r.counter(a.used), used+a.filled)

	r.run("")
	counted := r.counter(a.refused)
	_, err := r.end(t, a.emits[0].signal, "")
	require.NoError(t, err)
	for _, o := range a.emits {
		if o.rule == series {
			continue
		}
		got := newest(itemsOf(r.to[o.signal].taken))
		for key, text := range newest(put[o.signal]) {
			assert.Equal(t, text, got[key], "%s: %s", o.signal, key)
		}
	}
	if a.refused != "" {
		assert.Equal(t, a.takes, counted)
		return "error to the sender, counted; sent again, arrives"
	}
	return "error to the sender; sent again, arrives"
}

// untilHeld sends the feed of another job until the engine is busy.
func (r *rig) untilHeld(t *testing.T, h *hold) {
	t.Helper()
	time.Sleep(phase)
	begin := time.Now()
	if r.of.logs {
		assert.NoError(t, r.send(unreadable()))
	}
	for n := int64(0); !h.once.Load(); n++ {
		assert.NoError(t, r.send(r.of.feed("early", begin, n)))
		time.Sleep(faulty.Period)
	}
}

// unreadable is an event that a connector logs as it next looks.
func unreadable() batch {
	b := newBatch()
	b.logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName(semconv.EventClockEdge)
	return b
}

// A next component that does not return keeps no sender from the engine.
func TestConnector_NextDoesNotReturn_EngineGoesOn(t *testing.T) {
	stuck := ofConnectors[slices.IndexFunc(ofConnectors, func(m mode) bool { return m.name == doesNotReturn })]
	for _, a := range connectors() {
		for _, o := range a.emits {
			t.Run(a.name+" "+o.signal, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := a.rigged(t, componenttest.NewNopHost(), o.signal, &stuck)
					go r.run("")
					<-r.to[o.signal].entered
					synctest.Wait()
					used, began := r.counter(a.used), time.Now()
					sent := make(chan error, 1)
					go func() { sent <- r.send(a.feed("other", began, a.probe)) }()
					synctest.Wait()
					assert.Greater(t, r.counter(a.used), used, "another sender waits for the engine")
					<-sent
					assert.LessOrEqual(t, time.Since(began), deliver.Patience)
					time.Sleep(begins + time.Duration(a.moments)*faulty.Period + a.quiet + time.Minute)
					_, err := r.end(t, o.signal, o.dropped)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				})
			})
		}
	}
}

const (
	// longText is as long as texts may be that connectors hold.
	longText = 60_000
	// inboxBytes is what waits for an engine by default.
	inboxBytes = 16 << 20
)

// longOps are operations without a step.
func longOps(n int) batch {
	b := newBatch()
	r := model.Rank{JobID: "filler", Incarnation: "life", Rank: 1, HostName: "node"}
	ops := make([]model.Op, n)
	for i := range ops {
		ops[i] = model.Op{Kind: model.KindCompute, Name: "gemm", Start: int64(i + 1), End: int64(i + 2), Stack: strings.Repeat("x", longText)}
	}
	otelmap.AppendOps(b.traces, &r, ops)
	return b
}

// manyNames are names of hosts.
func manyNames(n int) batch {
	b := newBatch()
	for range n {
		of := b.logs.ResourceLogs().AppendEmpty()
		of.Resource().Attributes().PutStr(semconv.HostName, "filler")
		of.Resource().Attributes().PutStr(semconv.HostID, "filler")
	}
	b.logs.ResourceLogs().At(0).ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	return b
}

// manyResumes is what one rank has loaded.
func manyResumes(n int) batch {
	b := newBatch()
	for i := range n {
		resumemap.Append(b.logs, &model.Resume{Rank: model.Rank{JobID: "filler", Incarnation: "life", HostName: "node"}, Time: int64(i + 1), Life: "a", Number: 1, Step: 10})
	}
	return b
}

// longFindings are findings with long texts.
func longFindings(n int) batch {
	all := make([]model.Finding, n)
	for i := range all {
		all[i] = model.Finding{
			ID: fmt.Sprint("filler ", i), Revision: 1, Status: model.StatusClosed, Kind: model.FindingDesync, Class: model.ClassNetwork, JobID: "filler",
			Start: 1, Time: 2, Stack: strings.Repeat("x", longText),
		}
	}
	b := newBatch()
	b.logs = otelmap.FindingsToLogs(all)
	return b
}
