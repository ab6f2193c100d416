// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var errKilled = errors.New("the process has been killed")

// disk is a storage extension that applies each transaction as a whole until the process is killed,
// and refuses all transactions after it.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte
	done   int // transactions
	limit  int // transactions after which the process is killed; negative is never
	fail   func(ops []*storage.Operation) error
	open   error // of a client
	walk   func() error
}

func newDisk(values map[string][]byte, limit int) *disk {
	return &disk{values: maps.Clone(values), limit: limit}
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, d.open
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limit >= 0 && d.done >= d.limit {
		return errKilled
	}
	if d.fail != nil {
		if err := d.fail(ops); err != nil {
			return err
		}
	}
	d.done++
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = slices.Clone(d.values[op.Key])
		case storage.Set:
			d.values[op.Key] = slices.Clone(op.Value)
		default:
			delete(d.values, op.Key)
		}
	}
	return nil
}

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := d.Batch(ctx, op)
	return op.Value, err
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

// Walk implements storage.Walker, for walks that only read.
func (d *disk) Walk(_ context.Context, fn storage.WalkFunc) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.walk != nil {
		if err := d.walk(); err != nil {
			return err
		}
	}
	for key, value := range d.values {
		if _, err := fn(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (*disk) Close(context.Context) error { return nil }

// kill refuses all further transactions, and returns the stored values.
func (d *disk) kill() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = 0
	return maps.Clone(d.values)
}

func (d *disk) transactions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// keys returns how many values are there; of a queue that holds nothing, there is its own record.
func (d *disk) keys() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.values)
}
