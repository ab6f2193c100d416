// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// State is what an engine knows that must survive a restart.
type State interface {
	// Snapshot returns the state. While nothing changes it is the same.
	Snapshot() ([]byte, error)
	// Restore takes what Snapshot returned, before anything is observed.
	Restore(data []byte, now time.Time) error
}

// States keeps the states of one component, each under a key of its own. A nil one keeps nothing.
type States struct {
	client storage.Client
	lock   sync.Locker
	failed func(error)
	values []*keptState
	// took is how long the last Save took, until when it ended.
	took  time.Duration
	until time.Time
}

type keptState struct {
	Value
	of    State
	saved []byte // last
}

// Storage names where a component keeps its states.
type Storage struct {
	Extension *component.ID // nil: nothing is kept
	Kind      component.Kind
	Component component.ID
}

// Unlocked is the lock of a component that holds its own lock around all calls.
type Unlocked struct{}

// Lock implements sync.Locker.
func (Unlocked) Lock() {}

// Unlock implements sync.Locker.
func (Unlocked) Unlock() {}

// OpenStates restores the states that were saved before, and keeps them from then on. It holds lock
// while it uses a state. A state that cannot be used costs that state: failed is called with the reason,
// then and wherever Save fails. A storage that cannot be read is an error, since the next Save would
// replace what it holds.
func OpenStates(ctx context.Context, host component.Host, at Storage, lock sync.Locker, states map[string]State, failed func(error)) (*States, error) {
	client, err := Open(ctx, host, at.Extension, at.Kind, at.Component)
	if err != nil || client == nil {
		return nil, err
	}
	s := &States{client: client, lock: lock, failed: failed}
	now := time.Now()
	for _, key := range slices.Sorted(maps.Keys(states)) {
		k := &keptState{Value: Value{client, key}, of: states[key]}
		s.values = append(s.values, k)
		data, err := k.Load(ctx)
		switch {
		case errors.Is(err, ErrTooLarge):
			failed(err)
		case err != nil:
			return nil, errors.Join(err, s.client.Close(ctx))
		case data != nil:
			s.restore(k, data, now)
		default: // an engine that knows nothing is not worth a write
			k.saved, _ = s.snapshot(k)
		}
	}
	return s, nil
}

func (s *States) restore(k *keptState, data []byte, now time.Time) {
	s.lock.Lock()
	err := k.of.Restore(data, now)
	s.lock.Unlock()
	if err != nil {
		s.failed(fmt.Errorf("restore %q: %w; start without it", k.key, err))
	}
}

func (s *States) snapshot(k *keptState) ([]byte, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return k.of.Snapshot()
}

// Save keeps the states that have changed.
func (s *States) Save(ctx context.Context) {
	if s == nil {
		return
	}
	began := time.Now()
	defer func() { s.until, s.took = time.Now(), time.Since(began) }()
	for _, k := range s.values {
		data, err := s.snapshot(k)
		if err == nil && !bytes.Equal(data, k.saved) {
			if err = k.Value.Save(ctx, data); err == nil {
				k.saved = data
			}
		}
		if err != nil {
			s.failed(fmt.Errorf("save %q: %w", k.key, err))
		}
	}
}

// saveShare is the part of all time that SaveSoon may take.
const saveShare = 20

// SaveSoon is Save where the last one is over for long enough; otherwise it returns after how long it is.
// A component that changes its state with every message calls it then, and once more after that time.
func (s *States) SaveSoon(ctx context.Context) (wait time.Duration) {
	if s == nil {
		return 0
	}
	if wait = saveShare*s.took - time.Since(s.until); wait > 0 {
		return wait
	}
	s.Save(ctx)
	return 0
}

// Close saves the states a last time and closes the storage.
func (s *States) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.Save(ctx)
	if err := s.client.Close(ctx); err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}
