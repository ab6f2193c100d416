// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

const (
	// maxEntries has room for a model of each clock of a timeline.
	maxEntries = 128 << 10
	// maxEntryBytes bounds what waits for one next component, with what an entry takes beside its data.
	maxEntryBytes = 64 << 20
)

// again is how often refused entries are sent again: a person waits for them, and all go in one call.
var again = configretry.BackOffConfig{
	Enabled: true, InitialInterval: time.Second, Multiplier: 1.5, MaxInterval: 5 * time.Second,
}

// sender sends what build returns until it is taken. Each attempt may have other entries; where none of them was
// taken, left is at least their number.
type sender func(ctx context.Context, r deliver.Retry, build func() []entry) (left int, err error)

// outbox holds entries until the next component takes them. It sends them from a goroutine of its own, all
// in one call. A next component that takes them gets each; of those that it refused, or that find no room,
// the newest of each key is kept. It is safe for concurrent use.
type outbox struct {
	*output

	send   sender
	ctx    context.Context //nolint:containedctx // entries outlive the calls that bring them
	cancel context.CancelFunc

	mu      sync.Mutex
	pending *bounded.Map[place, entry]
	fresh   []place // of entries that are not kept as the newest of their key, in order
	seq     uint64
	running bool // there is a goroutine that sends
	closed  bool

	tried   uint64        // every entry up to this was sent or refused
	resting bool          // entries were refused, and are sent again later
	warned  bool          // the log has that
	began   time.Time     // when the call under way began
	changed chan struct{} // closed when a call is over
}

func newOutbox(o *output, send sender) *outbox {
	b := &outbox{output: o, send: send, changed: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.pending = bounded.NewMap(bounded.MapConfig[place, entry]{Entries: maxEntries, Bytes: maxEntryBytes, Size: entryBytes})
	return b
}

func entryBytes(at place, e entry) int {
	return bounded.EntryBytes[place, entry]() + len(at.key) + e.bytes
}

// put adds entries, and returns the number of the last. What finds no room is lost.
func (b *outbox) put(entries []entry) (last uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		b.seq++
		if e.seq = b.seq; e.key == "" {
			e.key = strconv.FormatUint(e.seq, 10)
		}
		if b.closed || !b.add(e) {
			b.lost.Add(1)
		}
	}
	if !b.running && !b.closed && b.pending.Len() > 0 {
		b.running, b.began = true, time.Now()
		go b.run()
	}
	return b.seq
}

// add adds an entry, in place of the refused one of its key.
func (b *outbox) add(e entry) bool {
	e.kept = b.pending.Has(place{key: e.key})
	if !b.pending.Fits(e.place(), e) {
		b.merge(b.seq)
		e.kept = true
	}
	return b.set(e)
}

// set adds an entry where it belongs.
func (b *outbox) set(e entry) bool {
	at := e.place()
	if !b.pending.Fits(at, e) {
		return false
	}
	if e.kept {
		e.keep()
	} else {
		b.fresh = append(b.fresh, at)
	}
	return b.pending.Set(at, e)
}

// merge keeps the newest of each key of the entries up to a number.
func (b *outbox) merge(until uint64) {
	for len(b.fresh) > 0 && b.fresh[0].seq <= until {
		e, ok := b.pending.Delete(b.fresh[0])
		b.fresh = b.fresh[1:]
		if !ok {
			continue // it was taken
		}
		e.kept = true
		if newest, ok := b.pending.Get(e.place()); !ok || newest.seq < e.seq {
			b.set(e)
		}
	}
	if len(b.fresh) == 0 {
		b.fresh = nil // it holds what was taken
	}
}

// list returns all entries, in order.
func (b *outbox) list() []entry {
	all := make([]entry, 0, b.pending.Len())
	for _, e := range b.pending.All() {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// wait returns when entries up to a number were sent or refused, or the next component is stuck.
func (b *outbox) wait(ctx context.Context, seq uint64) {
	for {
		changed, patience := b.state(seq)
		if patience <= 0 {
			return
		}
		timer := time.NewTimer(patience)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// state returns for how long to wait for entries up to a number, and what is closed when that changes.
func (b *outbox) state(seq uint64) (changed <-chan struct{}, patience time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tried >= seq || b.resting || !b.running {
		return nil, 0
	}
	return b.changed, deliver.Patience - time.Since(b.began)
}

// run sends until nothing is left, or the output ends.
func (b *outbox) run() {
	for b.more() {
		var batch []entry
		left, err := b.send(b.ctx, b.retry(&batch), func() []entry {
			batch = b.batch()
			return batch
		})
		b.over(batch, left, err)
	}
}

// more reports whether there is anything to send; else the sending ends.
func (b *outbox) more() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = b.pending.Len() > 0 && b.ctx.Err() == nil
	if !b.running {
		b.wake()
	}
	return b.running
}

// batch returns all entries.
func (b *outbox) batch() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting, b.began = false, time.Now()
	return b.list()
}

func (b *outbox) retry(batch *[]entry) deliver.Retry {
	return deliver.Retry{Config: again, Retried: func(_ context.Context, err error) { b.restUntilRetry(*batch, err) }}
}

// restUntilRetry notes that a batch is to be sent again.
func (b *outbox) restUntilRetry(batch []entry, err error) {
	b.counts.EventsRefused.Add(int64(len(batch)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting = true
	if !b.warned {
		b.warned = true
		b.log.Warn("The next component refuses events; they are sent again until it takes them", zap.Int("events", len(batch)), zap.Error(err))
	}
	b.merge(lastOf(batch))
	b.attempted(batch)
}

// over notes what came of a batch: only what the end interrupts stays.
func (b *outbox) over(batch []entry, left int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting, b.warned = false, false
	defer b.attempted(batch)
	if err != nil && !deliver.IsPermanent(err) {
		return
	}
	b.remove(batch)
	if err != nil {
		left = min(left, len(batch))
		b.counts.EventsRefused.Add(int64(left))
		b.lost.Add(int64(left))
		b.log.Error("The next component refused events for good", zap.Int("events", left), zap.Error(err))
	}
}

// remove drops what was sent.
func (b *outbox) remove(batch []entry) {
	for _, e := range batch {
		b.pending.Delete(place{e.key, e.seq})
		if kept, ok := b.pending.Get(place{key: e.key}); ok && kept.seq == e.seq { // also where it was not then
			b.pending.Delete(place{key: e.key})
		}
	}
	b.merge(lastOf(batch)) // none of them is fresh
}

// lastOf returns the number of the last entry.
func lastOf(batch []entry) uint64 {
	if len(batch) == 0 {
		return 0
	}
	return batch[len(batch)-1].seq
}

func (b *outbox) attempted(batch []entry) {
	b.tried = max(b.tried, lastOf(batch))
	b.wake()
}

func (b *outbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// stop sends what is left once more. What is refused then is lost.
func (b *outbox) stop(last context.Context) error {
	b.cancel()
	b.join()
	batch := b.batch()
	if len(batch) == 0 {
		b.close(nil, 0)
		return nil
	}
	left, err := b.send(last, deliver.Retry{Once: true}, func() []entry { return batch })
	b.close(batch, min(left, len(batch)))
	if err != nil {
		return fmt.Errorf("deliver the last %d events: %w", len(batch), err)
	}
	return nil
}

// join waits for the goroutine that sends; the gate ends its call.
func (b *outbox) join() {
	for {
		b.mu.Lock()
		running, changed := b.running, b.changed
		b.mu.Unlock()
		if !running {
			return
		}
		<-changed
	}
}

// close drops what is left: of the last batch, and of what came since.
func (b *outbox) close(batch []entry, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.remove(batch)
	b.lost.Add(int64(left + b.pending.Len()))
	b.pending.Clear()
	b.fresh = nil
}
