// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// refusedForNow notes that a batch is to be sent again, behind the entries that were not tried yet.
func (b *outbox) refusedForNow(batch []entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.taken(batch, err)
	b.pieces.wait(len(batch))
	b.again.Add(int64(len(rest)))
	b.resting = true
	b.noted.again(len(rest), err)
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
		b.noted.took()
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
	b.noted.drop(len(entries), err)
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
	b.noted.returned()
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
