// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/lockstep-otel/lockstep/internal/component/health"
)

// State is what an engine knows that must survive a restart.
type State interface {
	// Snapshot returns the state. While nothing changes it is the same. With an error, it may be a part.
	Snapshot() ([]byte, error)
	// Restore takes what Snapshot returned, before anything is observed.
	Restore(data []byte, now time.Time) error
}

// States keeps the states of one component, each under a key of its own. A nil one keeps nothing. It is
// safe for concurrent use.
type States struct {
	client storage.Client
	lock   sync.Locker
	failed func(error)
	status health.Status // shows which state cannot be written, and why
	held   func() bool   // nothing but single states is kept; nil: never

	using  chan struct{} // holds a value while the storage, or what follows, is used
	values []*keptState
	// took is how long the last Save took, until when it ended.
	took   time.Duration
	until  time.Time
	closed atomic.Bool

	timing sync.Mutex
	due    *time.Timer // of a save that waits; nil: none does
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

// OpenStates restores the states that were saved before, and keeps them from then on. It holds lock
// while it uses a state. A state that cannot be used costs that state: failed is called with the reason,
// then and wherever Save fails. A storage that cannot be read is an error, since the next Save would
// replace what it holds.
func OpenStates(ctx context.Context, host component.Host, at Storage, lock sync.Locker, states map[string]State, failed func(error)) (*States, error) {
	client, err := OpenStorage(ctx, host, at.Extension, at.Kind, at.Component)
	if err != nil || client == nil {
		return nil, err
	}
	s := &States{client: client, lock: lock, failed: failed, using: make(chan struct{}, 1)}
	s.status.Start(host)
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

// patience is how long a caller waits for the storage.
const patience = 10 * time.Second

// use has a function use the storage, and waits for it. It gives up where ctx ends; the function may go on then.
func (s *States) use(ctx context.Context, do func()) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case s.using <- struct{}{}:
	default:
		select {
		case s.using <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.leave()
		do()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *States) leave() { <-s.using }

// holdWhile has nothing but single states be kept while a function returns true. It is called before any use.
func (s *States) holdWhile(held func() bool) {
	if s != nil {
		s.held = held
	}
}

// Save keeps the states that have changed. It waits for the storage for 10 s at most.
func (s *States) Save(ctx context.Context) {
	if s == nil {
		return
	}
	s.reach(ctx, func() { s.save(context.WithoutCancel(ctx)) })
}

// SaveOne keeps one state where it has changed, as Save does.
func (s *States) SaveOne(ctx context.Context, key string) {
	if s == nil {
		return
	}
	s.reach(ctx, func() {
		for _, k := range s.values {
			if k.key == key && !s.closed.Load() {
				s.saveValue(context.WithoutCancel(ctx), k, nil)
			}
		}
	})
}

func (s *States) reach(ctx context.Context, do func()) {
	if err := s.use(ctx, do); err != nil {
		s.failed(fmt.Errorf("wait for storage: %w", err))
	}
}

func (s *States) save(ctx context.Context) {
	if s.closed.Load() {
		return
	}
	began := time.Now()
	defer func() { s.until, s.took = time.Now(), time.Since(began) }()
	for _, k := range s.values {
		s.saveValue(ctx, k, s.held)
	}
}

func (s *States) saveValue(ctx context.Context, k *keptState, held func() bool) {
	data, err := s.snapshot(k)
	if held != nil && held() { // asked after the snapshot, which has what waits by now
		return
	}
	if data != nil {
		if bytes.Equal(data, k.saved) {
			s.status.Set(k.key, nil)
			return // also where it is a part: that was reported
		}
		saved := k.Value.Save(ctx, data)
		s.wrote(k.key, saved)
		if saved == nil {
			k.saved = data
		}
		err = errors.Join(err, saved)
	}
	if err != nil {
		s.failed(fmt.Errorf("save %q: %w", k.key, err))
	}
}

// wrote reports whether a state could be written, until it is: the collector goes on, and its health shows the cause.
func (s *States) wrote(key string, err error) {
	if err != nil {
		err = fmt.Errorf("save %q: %w", key, health.ExplainWrite(err))
	}
	s.status.Set(key, err)
}

// saveShare is the part of all time that SaveSoon may take.
const saveShare = 20

// busyWait is after how long SaveSoon looks again where the storage is in use.
const busyWait = 100 * time.Millisecond

// SaveSoon is Save where the last one is over for long enough, and else has it done then. A component that
// changes its state with every message calls it with each. It waits for its own save, for 10 s at most, and for
// no other.
func (s *States) SaveSoon(ctx context.Context) {
	if s == nil {
		return
	}
	select {
	case s.using <- struct{}{}:
	default:
		s.saveIn(busyWait)
		return
	}
	if s.closed.Load() {
		s.leave()
		return
	}
	if wait := saveShare*s.took - time.Since(s.until); wait > 0 {
		s.leave()
		s.saveIn(wait)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer s.leave()
		s.save(context.WithoutCancel(ctx))
	}()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-done:
	case <-limited.Done():
		s.failed(fmt.Errorf("wait for storage: %w", limited.Err()))
	}
}

// saveIn has SaveSoon called after a time, unless it is to be called already.
func (s *States) saveIn(wait time.Duration) {
	s.timing.Lock()
	defer s.timing.Unlock()
	if s.due == nil {
		s.due = time.AfterFunc(wait, func() {
			s.forgetDue()
			s.SaveSoon(context.Background())
		})
	}
}

func (s *States) forgetDue() {
	s.timing.Lock()
	defer s.timing.Unlock()
	if s.due != nil {
		s.due.Stop()
		s.due = nil
	}
}

// Close saves the states a last time and closes the storage. Nothing is kept that comes later.
func (s *States) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	defer s.closed.Store(true)
	var err error
	waited := s.use(ctx, func() {
		s.forgetDue()
		s.save(context.WithoutCancel(ctx))
		s.closed.Store(true)
		err = s.client.Close(context.WithoutCancel(ctx))
	})
	switch {
	case waited != nil:
		return fmt.Errorf("wait for storage, which stays open: %w", waited)
	case err != nil:
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}
