// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// consumerCapabilities says that an exporter changes nothing.
type consumerCapabilities struct{}

func (consumerCapabilities) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// kept is what storage clients have stored; it outlives a collector.
var kept = struct {
	sync.Mutex
	by map[string][]byte
}{by: map[string][]byte{}}

// memory is a storage extension that keeps what it stores for the process's next collector.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
}

func newMemory() extension.Factory {
	return extension.NewFactory(component.MustNewType("memory"), func() component.Config { return &struct{}{} },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return &memory{}, nil
		}, component.StabilityLevelDevelopment)
}

// GetClient implements storage.Extension.
func (*memory) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	return client(kind.String() + " " + id.String() + " " + name + " "), nil
}

// client is the prefix of its keys.
type client string

func (c client) Get(_ context.Context, key string) ([]byte, error) {
	kept.Lock()
	defer kept.Unlock()
	return slices.Clone(kept.by[string(c)+key]), nil
}

func (c client) Set(_ context.Context, key string, value []byte) error {
	kept.Lock()
	defer kept.Unlock()
	kept.by[string(c)+key] = slices.Clone(value)
	return nil
}

func (c client) Delete(_ context.Context, key string) error {
	kept.Lock()
	defer kept.Unlock()
	delete(kept.by, string(c)+key)
	return nil
}

// Batch does the operations in order; nothing of them can fail.
func (c client) Batch(_ context.Context, ops ...*storage.Operation) error {
	kept.Lock()
	defer kept.Unlock()
	next := maps.Clone(kept.by)
	for _, op := range ops {
		switch key := string(c) + op.Key; op.Type {
		case storage.Get:
			op.Value = slices.Clone(next[key])
		case storage.Set:
			next[key] = slices.Clone(op.Value)
		case storage.Delete:
			delete(next, key)
		}
	}
	kept.by = next
	return nil
}

func (client) Close(context.Context) error { return nil }
