// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// queueClient is the storage of one queue. Until the queue reads its first request, it recovers: what
// it deletes stays until it is stored again, and leaves in the same transaction.
type queueClient struct {
	storage.Client
	lost func(requests int)

	mu        sync.Mutex // a queue calls once at a time
	recovered bool
	held      map[digest][]string // keys that are to be deleted, by the value that is there
}

type digest [sha256.Size]byte

func newQueueClient(client storage.Client, lost func(requests int)) *queueClient {
	return &queueClient{Client: client, lost: lost, held: map[digest][]string{}}
}

// Batch implements storage.Client.
func (c *queueClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.recovered:
		return c.Client.Batch(ctx, ops...)
	case consists(ops, storage.Delete):
		return c.hold(ctx, ops)
	case slices.ContainsFunc(ops, is(storage.Get)) && slices.ContainsFunc(ops, is(storage.Set)):
		return c.finish(ctx, ops)
	default:
		return c.move(ctx, ops)
	}
}

// hold remembers what is to be deleted.
func (c *queueClient) hold(ctx context.Context, ops []*storage.Operation) error {
	values := make([]*storage.Operation, len(ops))
	for i, op := range ops {
		values[i] = storage.GetOperation(op.Key)
	}
	if err := c.Client.Batch(ctx, values...); err != nil {
		return err
	}
	for _, op := range values {
		if op.Value != nil {
			d := sha256.Sum256(op.Value)
			c.held[d] = append(c.held[d], op.Key)
		}
	}
	return nil
}

// move stores, and deletes where the same value was held.
func (c *queueClient) move(ctx context.Context, ops []*storage.Operation) error {
	left := map[digest][]string{}
	all := slices.Clone(ops)
	for _, op := range ops {
		if op.Type != storage.Set {
			continue
		}
		d := sha256.Sum256(op.Value)
		if keys := c.held[d]; len(keys) > 0 {
			all = append(all, storage.DeleteOperation(keys[0]))
			left[d] = keys[1:]
		}
	}
	if err := c.Client.Batch(ctx, all...); err != nil {
		return err
	}
	for d, keys := range left {
		c.held[d] = keys
	}
	return nil
}

// finish ends the recovery with the first request that the queue reads: in that transaction, the
// queue's own record names nothing any more of what is still held.
func (c *queueClient) finish(ctx context.Context, ops []*storage.Operation) error {
	all := slices.Clone(ops)
	for _, keys := range c.held {
		for _, key := range keys {
			all = append(all, storage.DeleteOperation(key))
		}
	}
	if err := c.Client.Batch(ctx, all...); err != nil {
		return err
	}
	if n := len(all) - len(ops); n > 0 {
		c.lost(n)
	}
	c.held, c.recovered = nil, true
	return nil
}

func is(kind storage.OpType) func(*storage.Operation) bool {
	return func(op *storage.Operation) bool { return op.Type == kind }
}

// consists reports whether all operations, and one at least, are of a kind.
func consists(ops []*storage.Operation, kind storage.OpType) bool {
	return len(ops) > 0 && !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type != kind })
}
