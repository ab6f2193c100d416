// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/config/configretry"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

const (
	// maxEntries has room for a model of each clock of a timeline.
	maxEntries = 128 << 10
	// maxEntryBytes bounds what waits for one next component, with what an entry takes beside its data.
	maxEntryBytes = 64 << 20
)

// again is how often refused entries are sent again: a person waits for them.
var again = configretry.BackOffConfig{
	Enabled: true, InitialInterval: time.Second, Multiplier: 1.5, MaxInterval: 5 * time.Second,
}

// sender sends what build returns until it is taken. Each attempt may have other entries.
type sender func(ctx context.Context, r deliver.Retry, build func() []entry) error

// outbox holds entries until the next component takes them. It sends them from a goroutine of its own, some
// in one call. A next component that takes them gets each; of those that it refused, or that find no room,
// the newest of each key is kept. It is safe for concurrent use.
type outbox struct {
	*output

	send   sender
	ends   chan struct{} // closed when the output ends
	end    func()
	ctx    context.Context //nolint:containedctx // done when the time of the output's end is over
	cancel context.CancelFunc

	mu      sync.Mutex
	pending *bounded.Map[place, entry]
	fresh   []place // of entries that are not kept as the newest of their key, in order
	seq     uint64
	running bool // there is a goroutine that sends
	closed  bool
	unsent  bool // the end lost entries that another try might have delivered
	pieces  pieces
	order   []entry // of the call under way, as they waited

	noted   outboxLog
	tried   uint64        // every entry up to this was sent or refused
	resting bool          // entries were refused, and are sent again later
	began   time.Time     // when the call under way began
	changed chan struct{} // closed when a call is over
}

func newOutbox(o *output, send sender) *outbox {
	b := &outbox{output: o, send: send, changed: make(chan struct{}), ends: make(chan struct{}), pieces: newPieces()}
	b.noted = outboxLog{log: o.log, lock: &b.mu}
	b.end = sync.OnceFunc(func() { close(b.ends) })
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
			b.unsent = b.unsent || b.closed
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
		err := b.send(b.ctx, b.retry(&batch), func() []entry {
			batch = b.batch()
			return batch
		})
		b.over(batch, err)
	}
}

// more reports whether there is anything to send; else the sending ends.
func (b *outbox) more() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = b.pending.Len() > 0 && !b.stopping()
	if !b.running {
		b.wake()
	}
	return b.running
}

func (b *outbox) stopping() bool {
	select {
	case <-b.ends:
		return true
	default:
		return false
	}
}

// batch returns the entries of one call, in the order in which they came: of all, those that wait longest for a
// call.
func (b *outbox) batch() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting, b.began = false, time.Now()
	n := min(b.pending.Len(), b.pieces.next())
	batch := make([]entry, 0, n)
	for _, e := range b.pending.All() {
		if len(batch) == n {
			break
		}
		batch = append(batch, e)
	}
	b.order = slices.Clone(batch)
	if len(batch) > 0 {
		b.noted.begin(b.pending.Len())
	}
	slices.SortFunc(batch, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	return batch
}

func (b *outbox) retry(batch *[]entry) deliver.Retry {
	return deliver.Retry{
		Config: again, Whole: true, Stop: b.ends,
		Retried: func(_ context.Context, err error) { b.refusedForNow(*batch, err) },
	}
}

// refuses reports whether entries wait, or were lost at the end though another try might have delivered them.
func (b *outbox) refuses() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending.Len() > 0 || b.unsent
}
