// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// keepEvery is how often positions are kept, as long as that takes less than a part in
	// keepShare of the time.
	keepEvery = time.Second
	keepShare = 50

	indexKey = "rings"
	// maxPositionBytes bounds a kept position: one of 512 open steps takes 64 KiB.
	maxPositionBytes = 1 << 20
	// maxListBytes bounds the list of rings: 4,096 names of 255 bytes take 1 MiB.
	maxListBytes = 2 << 20
	// goneReason is why a ring ended that was being read before a restart, and is not there after.
	goneReason = "gone"
)

func entryKey(name string) string { return "ring/" + name }

// store keeps how far rings were read in a storage extension, one entry a ring; nil keeps nothing.
type store struct {
	client  storage.Client
	known   map[string]bool // names of the rings that have an entry; true: read to their end
	changed bool            // known differs from what the storage has
	gone    []string        // names whose entry is to be deleted
	next    time.Time
	failing bool // the last writing failed, and a log line says so
}

func openStore(ctx context.Context, host component.Host, id *component.ID, self component.ID) (*store, error) {
	client, err := hub.OpenStorage(ctx, host, id, component.KindReceiver, self)
	if err != nil || client == nil {
		return nil, err
	}
	return &store{client: client, known: map[string]bool{}}, nil
}

// load reads which rings have an entry.
func (s *store) load(ctx context.Context) error {
	raw, err := s.client.Get(ctx, indexKey)
	if err != nil || raw == nil {
		return err
	}
	if len(raw) > maxListBytes {
		return fmt.Errorf("decode list of rings: got %d bytes; want at most %d", len(raw), maxListBytes)
	}
	if err := json.Unmarshal(raw, &s.known); err != nil || s.known == nil {
		s.known = map[string]bool{}
		return fmt.Errorf("decode list of rings: got %d bytes that are none: %w", len(raw), err)
	}
	return nil
}

// position reads the entry of a ring; nil where there is none.
func (s *store) position(ctx context.Context, name string) (*rankevents.Position, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // no position is no error
	}
	if _, ok := s.known[name]; !ok {
		return nil, nil //nolint:nilnil // no position is no error
	}
	raw, err := s.client.Get(ctx, entryKey(name))
	if err != nil {
		return nil, fmt.Errorf("read position of %s: %w", name, err)
	}
	return decodePosition(raw)
}

func decodePosition(raw []byte) (*rankevents.Position, error) {
	if len(raw) > maxPositionBytes {
		return nil, fmt.Errorf("decode position: got %d bytes; want at most %d", len(raw), maxPositionBytes)
	}
	p := &rankevents.Position{}
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("decode position: got %d bytes that are none: %w", len(raw), err)
	}
	return p, nil
}

// forget deletes the entry of a ring with the next writing.
func (s *store) forget(name string) {
	delete(s.known, name)
	s.gone, s.changed = append(s.gone, name), true
}

// write keeps entries, all or nothing.
func (s *store) write(ctx context.Context, ops []*storage.Operation) error {
	for _, name := range s.gone {
		if _, again := s.known[name]; !again {
			ops = append(ops, storage.DeleteOperation(entryKey(name)))
		}
	}
	if s.changed {
		raw, err := json.Marshal(s.known)
		if err != nil {
			return fmt.Errorf("encode list of rings: %w", err)
		}
		ops = append(ops, storage.SetOperation(indexKey, raw))
	}
	if len(ops) == 0 {
		return nil
	}
	if err := s.client.Batch(ctx, ops...); err != nil {
		return fmt.Errorf("write positions: %w", err)
	}
	s.gone, s.changed = nil, false
	return nil
}

// keep writes, now and then, how far all rings were read.
func (rd *reader) keep(now time.Time) {
	if rd.store == nil || now.Before(rd.store.next) {
		return
	}
	began := time.Now()
	rd.save()
	rd.store.next = now.Add(max(keepEvery, keepShare*time.Since(began)))
}

// save writes how far rings were read, and counts what they came to: of all of them where none is
// named.
func (rd *reader) save(of ...*tracked) {
	if rd.store == nil {
		return
	}
	if of == nil {
		for _, t := range rd.rings {
			of = append(of, t)
		}
	}
	var ops []*storage.Operation
	var saved []*tracked
	for _, t := range of {
		if t.rank == nil || t.undelivered {
			continue
		}
		p, ok := t.rank.Position()
		if !ok {
			continue
		}
		p.Ended = t.ended && t.ring.Err() == nil // one that broke is tried again
		saved = append(saved, t)
		raw, err := json.Marshal(&p)
		if err != nil || bytes.Equal(raw, t.position) {
			continue
		}
		name := filepath.Base(t.path)
		if ended, ok := rd.store.known[name]; !ok || ended != t.ended {
			rd.store.known[name], rd.store.changed = t.ended, true
		}
		ops, t.position = append(ops, storage.SetOperation(entryKey(name), raw)), raw
	}
	rd.wrote(rd.store.write(rd.ctx, ops), saved)
	for _, t := range saved {
		t.count(rd)
	}
}

// wrote counts and logs a writing that failed. What was read is counted all the same: without a
// storage that works, rings are still read.
func (rd *reader) wrote(err error, saved []*tracked) {
	rd.health.Set("storage", health.ExplainWrite(err))
	if err == nil {
		rd.store.failing = false
		return
	}
	for _, t := range saved {
		t.position = nil
	}
	rd.telemetry.ReceiverRankEventsStorageErrors.Add(rd.ctx, 1)
	if !rd.store.failing {
		rd.store.failing = true
		rd.log.Error("Positions in rings cannot be kept: after a restart, more is read again", zap.Error(err))
	}
}

// leaveToNext reports whether what was refused is left to the next reader, since this one stops
// and keeps no position behind it. What was refused for good is not.
func (rd *reader) leaveToNext(err error) bool {
	leave := rd.store != nil && (rd.stopping || rd.ctx.Err() != nil) && !deliver.IsPermanent(err)
	rd.left = rd.left || leave
	return leave
}

// takeUp has a ring read from where the reader before was. It reports whether there is nothing
// left to read.
func (rd *reader) takeUp(t *tracked, h *ring.Header) (ended bool) {
	name := filepath.Base(t.path)
	p, err := rd.store.position(rd.ctx, name)
	if p != nil && p.Process != rankevents.ProcessOf(h) {
		rd.lostRing(name, p)
		return false
	}
	if p != nil && p.Ended {
		return true
	}
	if p != nil {
		err = t.rank.Resume(p)
	}
	if err != nil {
		rd.telemetry.ReceiverRankEventsStorageErrors.Add(rd.ctx, 1)
		rd.log.Warn("Kept position is of no use: all that the ring holds is read, again where it was read before",
			zap.String("file", t.path), zap.Error(err))
	}
	return false
}

// lostRing counts a ring that was being read before a restart, and is no more.
func (rd *reader) lostRing(name string, p *rankevents.Position) {
	if p == nil || p.Ended {
		return
	}
	rd.telemetry.ReceiverRankEventsRingsEnded.Add(rd.ctx, 1, reason(goneReason))
	fields := []zap.Field{zap.String("file", name)}
	if p.Rank != nil {
		fields = append(fields, zap.Int64("rank", p.Rank.Global), zap.Int64("last_step", p.Rank.Closed))
	}
	rd.log.Warn("Ring was removed while it was not read: what its process did since is not known", fields...)
}

// forgetGone lets go of the positions of rings that are not there any more, and of files that are not read
// beyond as many as Discover looks at: these were refused, and counted then.
func (rd *reader) forgetGone() {
	if rd.store == nil {
		return
	}
	if _, err := os.Stat(rd.cfg.Directory); err != nil {
		return // it may come
	}
	unread := 0
	for _, name := range slices.Sorted(maps.Keys(rd.store.known)) {
		path := filepath.Join(rd.cfg.Directory, name)
		if rd.rings[path] != nil {
			continue
		}
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			rd.forgetLost(name)
			continue
		}
		if unread++; unread > maxMaxRings {
			rd.store.forget(name)
		}
	}
}

func (rd *reader) forgetLost(name string) {
	p, err := rd.store.position(rd.ctx, name)
	if err != nil {
		rd.telemetry.ReceiverRankEventsStorageErrors.Add(rd.ctx, 1)
	}
	rd.lostRing(name, p)
	rd.store.forget(name)
}
