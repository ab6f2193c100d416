// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// store keeps how far files were read, one entry a file, in a storage extension; nil
// keeps nothing.
type store struct {
	client storage.Client
	last   int64
	known  map[int64]kept // entries that are there, by number
	old    map[int64]position
	gone   []int64
}

// kept is what the index says of a file.
type kept struct {
	Path string `json:"path"`
	Head []byte `json:"head"`
}

const indexKey = "files"

func entryKey(id int64) string { return "file/" + strconv.FormatInt(id, 10) }

// openStore finds the extension. It is an error where the configured one is none.
func openStore(ctx context.Context, host component.Host, id *component.ID, self component.ID) (*store, error) {
	client, err := hub.OpenStorage(ctx, host, id, component.KindReceiver, self)
	if err != nil || client == nil {
		return nil, err
	}
	return &store{client: client, known: map[int64]kept{}, old: map[int64]position{}}, nil
}

func (s *store) lasting() bool { return s != nil }

func (s *store) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if err := s.client.Close(ctx); err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}

// load reads what the run before kept.
func (s *store) load(ctx context.Context) error {
	if s == nil {
		return nil
	}
	raw, err := s.client.Get(ctx, indexKey)
	if err != nil || raw == nil {
		return err
	}
	if err := json.Unmarshal(raw, &s.known); err != nil {
		return fmt.Errorf("decode index: %w", err)
	}
	var errs []error
	for id := range s.known {
		s.last = max(s.last, id)
		raw, err := s.client.Get(ctx, entryKey(id))
		var p position
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read entry of %s: %w", s.known[id].Path, err))
			s.forget(id)
			continue
		}
		s.old[id] = p
	}
	return errors.Join(errs...)
}

// take returns what was kept of a file: the entry with its path, where the content
// begins as it did, else another one that does.
func (s *store) take(path string, head []byte) (p position, id int64, ok bool) {
	if s == nil {
		return p, 0, false
	}
	for n, e := range s.old {
		if !same(e.Head, head) {
			continue
		}
		if at := s.known[n].Path; !ok || at == path {
			p, id, ok = e, n, true
		}
	}
	delete(s.old, id)
	return p, id, ok
}

// next returns a number for a file.
func (s *store) next() int64 {
	if s == nil {
		return 0
	}
	s.last++
	return s.last
}

func (s *store) forget(id int64) {
	if s == nil {
		return
	}
	delete(s.known, id)
	s.gone = append(s.gone, id)
}

// keep writes what changed, all or nothing.
func (s *store) keep(ctx context.Context, files []*file) error {
	var ops []*storage.Operation
	for _, f := range files {
		if !f.changed {
			continue
		}
		raw, err := json.Marshal(f.position())
		if err != nil {
			return fmt.Errorf("encode entry: %w", err)
		}
		s.known[f.id] = kept{Path: f.path, Head: f.head}
		ops = append(ops, storage.SetOperation(entryKey(f.id), raw))
	}
	for _, id := range s.gone {
		ops = append(ops, storage.DeleteOperation(entryKey(id)))
	}
	if len(ops) == 0 {
		return nil
	}
	raw, err := json.Marshal(s.known)
	if err != nil {
		return fmt.Errorf("encode index: %w", err)
	}
	if err := s.client.Batch(ctx, append(ops, storage.SetOperation(indexKey, raw))...); err != nil {
		return fmt.Errorf("write storage: %w", err)
	}
	for _, f := range files {
		f.changed = false
	}
	s.gone = nil
	return nil
}

// load and keep count and log what fails: without a storage that works, logs are
// still read.
func (rd *reader) load() {
	if err := rd.store.load(rd.ctx); err != nil {
		rd.storageFailed(err)
	}
}

func (rd *reader) keep() {
	if rd.store == nil {
		return
	}
	err := rd.store.keep(rd.ctx, rd.files)
	if rd.ctx.Err() != nil {
		return
	}
	rd.health.Set("storage", health.ExplainWrite(err))
	if err != nil {
		rd.storageFailed(err)
	}
}

func (rd *reader) storageFailed(err error) {
	rd.telemetry.ReceiverNcclInspectorStorageErrors.Add(rd.ctx, 1)
	rd.log.Error("Storage of how far logs were read fails", zap.Error(err))
}
