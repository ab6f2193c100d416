// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadatatest"
)

// disk is a storage extension that outlives receivers.
type disk struct {
	mu   sync.Mutex
	data map[string][]byte
	fail bool
}

var storageID = component.MustNewID("file_storage")

func (d *disk) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: d}
}
func (*disk) Start(context.Context, component.Host) error { return nil }
func (*disk) Shutdown(context.Context) error              { return nil }
func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}
func (*disk) Close(context.Context) error { return nil }

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := d.Batch(ctx, op)
	return op.Value, err
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail {
		return errors.New("the disk is full")
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = d.data[op.Key]
		case storage.Set:
			if d.data == nil {
				d.data = map[string][]byte{}
			}
			d.data[op.Key] = op.Value
		case storage.Delete:
			delete(d.data, op.Key)
		}
	}
	return nil
}

// life is one life of a receiver. A test makes each look of it.
type life struct {
	*bench
	rd *reader
}

// faces are the receivers of both signals, which share a reader.
type faces []*rankReceiver

func newFaces(t *testing.T, cfg *Config, b *bench, core zapcore.Core) faces {
	t.Helper()
	own := *cfg // a reader of its own, which looks when the test says so
	own.PollInterval = time.Hour
	require.NoError(t, own.Validate())
	set := metadatatest.NewSettings(b.tel)
	set.Logger = zap.New(core)
	traces, err := createTraces(t.Context(), set, &own, b.spans)
	require.NoError(t, err)
	events, err := createLogs(t.Context(), set, &own, b.events)
	require.NoError(t, err)
	return faces{traces.(*rankReceiver), events.(*rankReceiver)}
}

func (f faces) Start(ctx context.Context, host component.Host) error {
	var errs []error
	for _, r := range f {
		errs = append(errs, r.Start(ctx, host))
	}
	return errors.Join(errs...)
}

func (f faces) Shutdown(ctx context.Context) error {
	var errs []error
	for _, r := range f {
		errs = append(errs, r.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

func begin(t *testing.T, cfg *Config, d *disk) *life {
	t.Helper()
	b := &bench{spans: &consumertest.TracesSink{}, events: &consumertest.LogsSink{}, tel: componenttest.NewTelemetry()}
	core, logs := observer.New(zapcore.DebugLevel)
	b.log = logs
	faces := newFaces(t, cfg, b, core)
	require.NoError(t, faces.Start(t.Context(), d))
	b.stop = sync.OnceFunc(func() { assert.NoError(t, faces.Shutdown(context.Background())) })
	l := &life{bench: b, rd: faces[0].handle.Value}
	t.Cleanup(func() { l.kill(); assert.NoError(t, b.tel.Shutdown(context.Background())) })
	return l
}

// kill ends the receiver without anything that it does at its end.
func (l *life) kill() {
	l.rd.interval.Stop(func() {
		for _, tr := range l.rd.rings {
			_ = tr.ring.Close()
		}
	})
	l.stop()
}

// poll has the receiver look once.
func (l *life) poll() {
	l.rd.lookNext = time.Time{}
	l.rd.poll(time.Now())
}

// save has it keep positions at its next look.
func (l *life) save() { l.rd.store.next = time.Time{} }

// delivered is what all lives handed on.
type delivered struct {
	steps, ops map[int64]map[pcommon.SpanID]int // by number; of operations that on the communicators
	sums       map[int64]int64                  // operations that a step's first span announces
	missing    map[int64]bool
	incomplete map[int64]bool // steps that lost records
}

func newDelivered() *delivered {
	return &delivered{steps: map[int64]map[pcommon.SpanID]int{}, ops: map[int64]map[pcommon.SpanID]int{}, sums: map[int64]int64{}, missing: map[int64]bool{}, incomplete: map[int64]bool{}}
}

func note(in map[int64]map[pcommon.SpanID]int, n int64, id pcommon.SpanID) {
	if in[n] == nil {
		in[n] = map[pcommon.SpanID]int{}
	}
	in[n][id]++
}

// take adds what a life handed on.
func (d *delivered) take(t *testing.T, l *life) {
	t.Helper()
	for _, td := range l.spans.AllTraces() {
		ranks, problems := otelmap.TracesToOps(td)
		require.Empty(t, problems)
		spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i, op := range ranks[0].Ops {
			if op.Kind == model.KindStep {
				note(d.steps, op.Step.V, spans.At(i).SpanID())
				d.sums[op.Step.V] = op.StepOps.V
				lost, _ := spans.At(i).Attributes().Get(semconv.SummaryLost)
				d.incomplete[op.Step.V] = d.incomplete[op.Step.V] || lost.Int() > 0
				continue
			}
			note(d.ops, op.Collective.Seq.V, spans.At(i).SpanID())
		}
	}
	for _, ld := range l.events.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				if lr.EventName() != semconv.EventStepsMissing {
					continue
				}
				first, _ := lr.Attributes().Get(semconv.StepsMissingFirst)
				last, _ := lr.Attributes().Get(semconv.StepsMissingLast)
				for n := first.Int(); n <= last.Int(); n++ {
					d.missing[n] = true
				}
			}
		}
	}
}

func withStorage(dir string) *Config {
	cfg := config(dir)
	cfg.StorageID = &storageID
	cfg.deadAfter = time.Hour * 24 * 365 * 100 // the ring's clock is its own
	cfg.Record = recordUnchanged
	return cfg
}

// counted sums up the records of all lives by their counters.
type counted struct{ read, lost, before, skipped, reread int64 }

func (c *counted) take(t *testing.T, l *life) {
	t.Helper()
	c.read += l.counter(t, "records_read")
	c.lost += l.counter(t, "records_lost")
	c.before += l.counter(t, "records_before_attach")
	c.skipped += l.counter(t, "records_skipped")
	c.reread += l.counter(t, "records_reread")
}

// restarts is a rank that writes on while its receiver lives and dies.
type restarts struct {
	t     *testing.T
	rng   *rand.Rand
	dir   string
	disk  *disk
	ring  *ringFile
	marks bool // the program marks its steps
	away  int  // steps without a receiver, at most

	life     *life // nil while there is none
	up, down int   // steps until it ends, and until the next begins
	seq      int64
	opsOf    map[int64]int64 // operations by step
	stepOf   map[int64]int64 // steps by the number of the operation
	all      *delivered
	sums     counted
}

func newRestarts(t *testing.T, seed uint64) *restarts {
	t.Helper()
	r := &restarts{
		t: t, rng: rand.New(rand.NewPCG(seed, 25)), dir: t.TempDir(), disk: &disk{}, marks: seed%4 < 2,
		opsOf: map[int64]int64{}, stepOf: map[int64]int64{}, all: newDelivered(),
	}
	// So that in every second run a lane goes round while no receiver reads.
	r.away = []int{4, 60}[seed%2]
	r.ring = newRingFile(t, r.dir, 3, []uint64{256, 64}[seed%2], 5)
	return r
}

func (r *restarts) begin() {
	cfg := withStorage(r.dir)
	if !r.marks {
		cfg.Anchor = AnchorConfig{Function: model.AllReduce, Every: 2}
	}
	r.life, r.up = begin(r.t, cfg, r.disk), r.rng.IntN(20)
}

// end lets the receiver end in order, or kills it.
func (r *restarts) end(kill bool) {
	if kill {
		r.life.kill()
	} else {
		r.life.stop()
	}
	r.all.take(r.t, r.life)
	r.sums.take(r.t, r.life)
	r.life, r.down = nil, r.rng.IntN(r.away)
}

func (r *restarts) op(lane int, n, number int64) {
	step := n
	if !r.marks {
		step = unmarked
	}
	r.ring.op(lane, uint16(lane), step, uint64(number))
	r.opsOf[n]++
	r.stepOf[number] = n
}

// step writes a step. The receiver may look in the middle of it. Without marks, the first two
// operations on the first communicator are the step.
func (r *restarts) step(n int64) {
	if r.marks {
		r.ring.mark(n)
	} else {
		r.op(1, n, 2*n)
		r.op(1, n, 2*n+1)
	}
	if n == 0 {
		r.life.poll() // and keeps that a step was seen
	}
	for range 1 + r.rng.IntN(6) {
		lane := 2
		if r.marks {
			lane -= r.rng.IntN(2)
		}
		r.op(lane, n, 1000+r.seq)
		r.seq++
		if r.life != nil && r.rng.IntN(3) == 0 {
			r.life.poll()
		}
	}
}

// between is what becomes of the receiver between two steps.
func (r *restarts) between() {
	switch {
	case r.life == nil && r.down == 0:
		r.begin()
	case r.life == nil:
		r.down--
	case r.up == 0:
		r.end(r.rng.IntN(4) > 0)
	default:
		r.up--
		if r.rng.IntN(3) == 0 {
			r.life.save()
		}
	}
}

// last has a receiver read the rest of the ring.
func (r *restarts) last() {
	if r.life == nil {
		r.begin()
	}
	r.life.poll()
	r.life.poll()
	r.life.save()
	r.life.poll()
	r.all.take(r.t, r.life)
	r.sums.take(r.t, r.life)
}

// A receiver that is killed at any moment continues where it was. It emits each step, the same each
// time, or lists it as missing, and counts each record in one life.
func TestRestart_RandomKills_LoseNothingUncounted(t *testing.T) {
	const steps = 200
	reread := int64(0)
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRestarts(t, seed)
			r.begin()
			for n := range int64(steps) {
				r.step(n)
				r.between()
			}
			r.last()
			r.checkRecords()
			r.checkSteps(steps - 1)
			r.checkOperations()
			reread += r.sums.reread
		})
	}
	assert.Positive(t, reread)
}

func (r *restarts) checkRecords() {
	r.t.Helper()
	s := &r.sums
	assert.Equal(r.t, int64(r.ring.written()), s.read+s.lost+s.skipped, "%+v", s)
	assert.Zero(r.t, s.before)
	kept := r.life.rd.rings[r.ring.path].rank.Counted()
	assert.Equal(r.t, rankevents.Counted{Read: s.read, Lost: s.lost, Skipped: s.skipped}, kept)
	if r.away < 10 {
		assert.Zero(r.t, s.lost)
		assert.Len(r.t, r.all.ops, len(r.stepOf))
	}
}

// whole reports whether nothing of a step was lost. One that was handed on and not kept so may be
// listed all the same.
func (r *restarts) whole(n int64) bool { return !r.all.incomplete[n] && !r.all.missing[n] }

func (r *restarts) checkSteps(closed int64) {
	r.t.Helper()
	for n := range closed {
		if len(r.all.steps[n]) == 0 {
			assert.True(r.t, r.all.missing[n], "step %d is neither delivered nor listed", n)
			continue
		}
		assert.Len(r.t, r.all.steps[n], 1, "ids of step %d", n)
		if r.whole(n) {
			assert.Equal(r.t, r.opsOf[n], r.all.sums[n], "operations that step %d announces", n)
		}
	}
}

func (r *restarts) checkOperations() {
	r.t.Helper()
	owner := map[pcommon.SpanID]int64{}
	for n, ids := range r.all.ops {
		if !r.whole(r.stepOf[n]) {
			continue
		}
		assert.Len(r.t, ids, 1, "ids of operation %d", n)
		for id := range ids {
			assert.NotContains(r.t, owner, id, "operation %d", n)
			owner[id] = n
		}
	}
}

// gauge returns the values of a gauge by reason.
func (b *bench) gauge(t *testing.T, name string) map[string]int64 {
	t.Helper()
	m, err := b.tel.GetMetric("otelcol_receiver_rank_events_" + name)
	require.NoError(t, err)
	out := map[string]int64{}
	for _, dp := range m.Data.(metricdata.Gauge[int64]).DataPoints {
		reason, _ := dp.Attributes.Value(attribute.Key("reason"))
		out[reason.AsString()] = dp.Value
	}
	return out
}
