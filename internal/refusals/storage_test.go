// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var storageID = component.MustNewID("memory")

// memory is a storage extension that outlives the components, and a host that has it.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	mu   sync.Mutex
	data map[string][]byte
}

func newMemory() *memory { return &memory{data: map[string][]byte{}} }

func (m *memory) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: m}
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}

func (*memory) Close(context.Context) error { return nil }

func (m *memory) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := m.Batch(ctx, op)
	return op.Value, err
}

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m *memory) Batch(_ context.Context, ops ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = m.data[op.Key]
		case storage.Set:
			m.data[op.Key] = op.Value
		case storage.Delete:
			delete(m.data, op.Key)
		}
	}
	return nil
}
