// SPDX-License-Identifier: Apache-2.0

package hub

import "sync"

// Map holds one value per key as long as one instance of a component uses it. The collector makes one
// instance per signal or signal pair; instances of one configuration must use one engine, or each would
// see a part. The zero value is ready; it is safe for concurrent use.
type Map[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*held[V]
}

type held[V any] struct {
	value V
	users int
}

// Handle is one user's hold on a value.
type Handle[V any] struct {
	Value   V
	release func()
}

// Acquire returns the key's value, made by create where there is none.
func (m *Map[K, V]) Acquire(key K, create func() (V, error)) (*Handle[V], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil {
		v, err := create()
		if err != nil {
			return nil, err
		}
		if m.entries == nil {
			m.entries = map[K]*held[V]{}
		}
		e = &held[V]{value: v}
		m.entries[key] = e
	}
	e.users++
	return &Handle[V]{Value: e.value, release: sync.OnceFunc(func() { m.release(key, e) })}, nil
}

// Release gives the value up; the last to do so removes it. Further calls do nothing.
func (h *Handle[V]) Release() { h.release() }

func (m *Map[K, V]) release(key K, e *held[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.users--
	if e.users == 0 {
		delete(m.entries, key)
	}
}
