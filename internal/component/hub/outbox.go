// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
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

	tried    uint64        // every entry up to this was sent or refused
	resting  bool          // entries were refused, and are sent again later
	warned   bool          // the log has that
	dropped  int           // entries since the log had it
	why      error         // of the last
	reported time.Time     // when the log had it
	due      *time.Timer   // until the log has the next; nil: none waits
	began    time.Time     // when the call under way began
	late     *time.Timer   // until the call under way takes long
	slow     bool          // the log has that the next component does not return
	changed  chan struct{} // closed when a call is over
}

func newOutbox(o *output, send sender) *outbox {
	b := &outbox{output: o, send: send, changed: make(chan struct{}), ends: make(chan struct{}), pieces: newPieces()}
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
		b.late = time.AfterFunc(deliver.Patience, b.warnLate)
	}
	slices.SortFunc(batch, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	return batch
}

// warnLate logs that the next component does not return.
func (b *outbox) warnLate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.slow && !b.stopping() && time.Since(b.began) >= deliver.Patience {
		b.slow = true
		b.log.Warn("The next component does not return; events wait for it", zap.Int("events", b.pending.Len()), zap.Duration("after", deliver.Patience))
	}
}

func (b *outbox) retry(batch *[]entry) deliver.Retry {
	return deliver.Retry{
		Config: again, Whole: true, Stop: b.ends,
		Retried: func(_ context.Context, err error) { b.refusedForNow(*batch, err) },
	}
}

// refusedForNow notes that a batch is to be sent again, behind the entries that were not tried yet.
func (b *outbox) refusedForNow(batch []entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.taken(batch, err)
	b.pieces.wait(len(batch))
	b.again.Add(int64(len(rest)))
	b.resting = true
	if !b.warned && !b.stopping() {
		b.warned = true
		b.log.Warn("The next component refuses events; they are sent again until it takes them", zap.Int("events", len(rest)), zap.Error(err))
	}
	b.merge(lastFresh(batch))
	for _, e := range b.order { // as they waited: else the same entries would be in each smaller call
		if kept, ok := b.pending.Get(place{key: e.key}); ok {
			b.pending.Delete(place{key: e.key})
			b.pending.Set(place{key: e.key}, kept)
		}
	}
	b.attempted(batch)
}

// over notes what came of a batch: what the end interrupts stays. An entry that is refused for good alone is lost.
func (b *outbox) over(batch []entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting = false
	defer b.attempted(batch)
	switch {
	case err == nil:
		if b.warned {
			b.log.Info("The next component takes events again")
		}
		b.warned = false
		b.took(batch)
	case deliver.IsPermanent(err):
		b.divide(batch, err)
	}
}

// took removes a batch that was taken.
func (b *outbox) took(batch []entry) {
	b.pieces.took(len(batch))
	b.arrived(batch)
}

// divide has what was refused for good of a batch sent in smaller ones.
func (b *outbox) divide(batch []entry, err error) {
	rest := b.taken(batch, err)
	b.again.Add(int64(len(rest)))
	if b.pieces.divide(len(rest)); len(rest) == 1 {
		b.drop(rest, err)
	}
}

// drop loses entries that are refused for good.
func (b *outbox) drop(entries []entry, err error) {
	b.remove(entries)
	b.lost.Add(int64(len(entries)))
	b.dropped += len(entries)
	b.why = err
	switch wait := deliver.RepeatEvery - time.Since(b.reported); {
	case b.due != nil:
	case wait <= 0:
		b.report()
	default:
		b.due = time.AfterFunc(wait, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.report()
		})
	}
}

// report logs how many entries were refused for good since the last report.
func (b *outbox) report() {
	if b.due != nil {
		b.due.Stop()
		b.due = nil
	}
	if b.dropped > 0 {
		b.log.Error("The next component refused events for good", zap.Int("events", b.dropped), zap.Error(b.why))
		b.dropped, b.reported = 0, time.Now()
	}
}

// taken removes what the next component took of a batch that it refused in part, and returns the rest.
func (b *outbox) taken(batch []entry, err error) (rest []entry) {
	ld, ok := deliver.RefusedLogs(err, len(batch))
	if !ok {
		return batch
	}
	refused, others := refusedIn(ld)
	known := map[revision]bool{}
	var gone []entry
	for _, e := range batch {
		switch f := e.finding; {
		case f == nil: // of other events it is unknown which were taken
			rest = append(rest, e)
		case refused[revision{f.ID, f.Revision}]:
			rest = append(rest, e)
			known[revision{f.ID, f.Revision}] = true
		default:
			gone = append(gone, e)
		}
	}
	if len(known) < len(refused) || others > 0 && len(gone) > 0 {
		return batch // a component between may have changed them
	}
	b.arrived(gone)
	return rest
}

// refusedIn returns the findings among records, and how many others there are.
func refusedIn(ld plog.Logs) (refused map[revision]bool, others int) {
	refused = map[revision]bool{}
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok {
					refused[revision{f.ID, f.Revision}] = true
				} else {
					others++
				}
			}
		}
	}
	return refused, others
}

type revision struct {
	id string
	n  int64
}

// arrived drops what was taken, and what it replaces: a revision that was refused while a newer one waited.
func (b *outbox) arrived(batch []entry) {
	for _, e := range batch {
		if kept, ok := b.pending.Get(place{key: e.key}); ok && kept.seq < e.seq {
			b.pending.Delete(place{key: e.key})
		}
	}
	b.remove(batch)
}

// remove drops entries.
func (b *outbox) remove(batch []entry) {
	for _, e := range batch {
		b.pending.Delete(place{e.key, e.seq})
		if kept, ok := b.pending.Get(place{key: e.key}); ok && kept.seq == e.seq { // also where it was not then
			b.pending.Delete(place{key: e.key})
		}
	}
	b.merge(lastFresh(batch)) // none of those before is fresh
}

// lastOf returns the greatest number of entries.
func lastOf(batch []entry) (last uint64) {
	for _, e := range batch {
		last = max(last, e.seq)
	}
	return last
}

// lastFresh returns the greatest number of entries that were not kept as the newest of their key. Such entries
// are sent in the order of their numbers; a kept one stays at its place when it gets a newer revision.
func lastFresh(batch []entry) (last uint64) {
	for _, e := range batch {
		if !e.kept {
			last = max(last, e.seq)
		}
	}
	return last
}

func (b *outbox) attempted(batch []entry) {
	b.order = nil
	b.late.Stop()
	b.slow = b.slow && time.Since(b.began) >= deliver.Patience
	last := lastOf(batch)
	if len(b.fresh) > 0 {
		last = min(last, b.fresh[0].seq-1)
	}
	b.tried = max(b.tried, last)
	b.wake()
}

func (b *outbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// refuses reports whether entries wait, or were lost at the end though another try might have delivered them.
func (b *outbox) refuses() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending.Len() > 0 || b.unsent
}

// stop sends what is left once more, until last is done. What is refused then is lost.
func (b *outbox) stop(last context.Context) error {
	done := context.AfterFunc(last, b.cancel)
	defer done()
	b.end()
	b.join()
	b.pieces.end()
	lost, why := 0, error(nil)
	for batch := b.batch(); len(batch) > 0 && last.Err() == nil; batch = b.batch() {
		err := b.send(last, deliver.Retry{Once: true, Whole: true}, func() []entry { return batch })
		if why == nil {
			why = err
		}
		if errors.Is(err, deliver.ErrClosed) { // it is stuck, and is not called again
			break
		}
		lost += b.last(batch, err)
	}
	if lost += b.close(); lost > 0 {
		b.lost.Add(int64(lost))
		return fmt.Errorf("deliver the last events: %d are lost: %w", lost, cmp.Or(why, context.Cause(last)))
	}
	return nil
}

// last notes what came of one of the last batches, and returns how many entries are lost with it.
func (b *outbox) last(batch []entry, err error) (lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.took(batch)
		return 0
	}
	rest := b.taken(batch, err)
	b.again.Add(int64(len(rest)))
	if b.pieces.last(len(rest), deliver.IsPermanent(err)) {
		return 0
	}
	b.unsent = b.unsent || !deliver.IsPermanent(err)
	b.remove(batch)
	return len(rest)
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

// close drops what is left, and returns how many entries that are.
func (b *outbox) close() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.pending.Len()
	b.unsent = b.unsent || left > 0
	b.pending.Clear()
	b.fresh = nil
	if b.late != nil {
		b.late.Stop()
	}
	b.cancel()
	b.report()
	return left
}
