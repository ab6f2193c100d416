// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// slowStorage is a storage extension in memory whose writes take time.
type slowStorage struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client
	takes atomic.Int64 // nanoseconds

	mu     sync.Mutex
	value  []byte
	sets   int
	closed bool
}

func (s *slowStorage) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

func (s *slowStorage) Get(context.Context, string) ([]byte, error) { return nil, nil }

func (s *slowStorage) Set(_ context.Context, _ string, value []byte) error {
	time.Sleep(time.Duration(s.takes.Load()))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.sets = value, s.sets+1
	return nil
}

func (s *slowStorage) Close(context.Context) error {
	s.closed = true
	return nil
}

// counter is a state that changes with each count. From full on its snapshot is a part.
type counter struct{ n, full int }

func (c *counter) Snapshot() ([]byte, error) {
	if c.full > 0 && c.n >= c.full {
		return fmt.Append(nil, c.full), errors.New("got too many")
	}
	return fmt.Append(nil, c.n), nil
}

func (c *counter) Restore([]byte, time.Time) error { return nil }

type world struct {
	storage *slowStorage
	states  *States
	mu      sync.Mutex
	counter counter
	failing sync.Mutex // guards failed
	failed  []string
}

func newWorld(t *testing.T, takes time.Duration) *world {
	t.Helper()
	w := &world{storage: &slowStorage{}}
	w.storage.takes.Store(int64(takes))
	at := host{componenttest.NewNopHost(), map[component.ID]component.Component{id: w.storage}}
	var err error
	w.states, err = OpenStates(t.Context(), at, Storage{Extension: &id}, &w.mu, map[string]State{"counter": &w.counter}, func(err error) {
		w.failing.Lock()
		defer w.failing.Unlock()
		w.failed = append(w.failed, err.Error())
	})
	require.NoError(t, err)
	return w
}

func (w *world) count() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counter.n++
}

func TestSaveSoon_ManyChanges_TakesATwentiethOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10*time.Millisecond)
		for range 1000 {
			w.count()
			w.states.SaveSoon(t.Context())
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, "1000", string(w.storage.value), "the last change is kept, too")
		assert.InDelta(t, 1000/(20*10), w.storage.sets, 2)
		require.NoError(t, w.states.Close(t.Context()))
		assert.Empty(t, w.failed)
	})
}

func TestClose_WhatComesLater_IsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 10*time.Millisecond)
		for range 2 { // the second save is due
			w.count()
			w.states.SaveSoon(t.Context())
		}
		require.NoError(t, w.states.Close(t.Context()))
		assert.Equal(t, "2", string(w.storage.value))
		assert.True(t, w.storage.closed)
		w.count()
		w.states.Save(t.Context())
		w.states.SaveSoon(t.Context())
		time.Sleep(time.Minute)
		assert.Equal(t, "2", string(w.storage.value))
		assert.Empty(t, w.failed)
	})
}

func TestStorageIsStuck_OthersGiveUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Hour)
		w.count()
		go w.states.Save(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		w.states.SaveSoon(ctx)
		assert.Zero(t, time.Since(began))
		w.states.Save(ctx)
		require.ErrorIs(t, w.states.Close(ctx), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		w.failing.Lock()
		assert.Len(t, w.failed, 1)
		w.failing.Unlock()
		time.Sleep(2 * time.Hour)
		require.NoError(t, w.states.Close(t.Context()))
	})
}

func TestSave_Part_IsKeptAndReportedOnce(t *testing.T) {
	w := newWorld(t, 0)
	w.counter.full = 2
	for range 5 {
		w.count()
		w.states.Save(t.Context())
	}
	assert.Equal(t, "2", string(w.storage.value))
	assert.Equal(t, []string{`save "counter": got too many`}, w.failed)
	require.NoError(t, w.states.Close(t.Context()))
}

// A storage that does not return holds up a component that saves with each message for 10 s, once.
func TestSaveSoon_StorageIsStuck_ReturnsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Hour)
		w.count()
		began := time.Now()
		w.states.SaveSoon(t.Context())
		assert.Equal(t, patience, time.Since(began))
		w.count()
		w.states.SaveSoon(t.Context())
		assert.Equal(t, patience, time.Since(began), "it is in use")
		w.failing.Lock()
		assert.Len(t, w.failed, 1)
		w.failing.Unlock()
		time.Sleep(2 * time.Hour)
		w.storage.takes.Store(0)
		time.Sleep(100 * time.Hour) // a save that is due takes a twentieth of the time
		require.NoError(t, w.states.Close(t.Context()))
	})
}

// watching is a host that notes the last status.
type watching struct {
	host

	last *componentstatus.Event
}

func (w *watching) Report(e *componentstatus.Event) { w.last = e }

// A state that cannot be written shows in the health of the component until it can.
func TestSave_StorageIsFull_ShowsUntilItIsNot(t *testing.T) {
	m := &memory{data: map[string][]byte{}}
	h := &watching{host: host{componenttest.NewNopHost(), map[component.ID]component.Component{id: m}}}
	var mu sync.Mutex
	c := &counter{}
	failed := 0
	s, err := OpenStates(t.Context(), h, Storage{Extension: &id}, &mu, map[string]State{"counter": c}, func(error) { failed++ })
	require.NoError(t, err)
	dir := t.TempDir()
	c.n, m.fail = 1, &fs.PathError{Op: "write", Path: filepath.Join(dir, "connector_toy_"), Err: syscall.ENOSPC}
	s.Save(t.Context())
	require.NotNil(t, h.last)
	assert.Equal(t, componentstatus.StatusRecoverableError, h.last.Status())
	require.ErrorContains(t, h.last.Err(), `save "counter": write storage: write `+dir+`/connector_toy_: no space left on device: the disk of `+dir+" has ")
	assert.Equal(t, 1, failed)
	m.fail = nil
	s.Save(t.Context())
	assert.Equal(t, componentstatus.StatusOK, h.last.Status())
	require.NoError(t, s.Close(t.Context()))
}
