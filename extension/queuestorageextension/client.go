// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// queueClient is the storage of one queue. Until the queue reads its first request, it recovers: what
// it deletes stays until it is stored again, and leaves in the same transaction. The queue stores in
// the order in which it deleted; what it stores need not be encoded as it was.
type queueClient struct {
	storage.Client
	lost func(requests int)

	mu        sync.Mutex // a queue calls once at a time
	recovered bool
	held      []string // keys that are to be deleted, of requests that are to be stored again
	refused   []string // keys of those that could not be stored again
}

func newQueueClient(client storage.Client, lost func(requests int)) *queueClient {
	return &queueClient{Client: client, lost: lost}
}

// Batch implements storage.Client.
func (c *queueClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case slices.ContainsFunc(ops, is(storage.Get)) && slices.ContainsFunc(ops, is(storage.Set)):
		return c.read(ctx, ops)
	case c.recovered:
		return c.Client.Batch(ctx, ops...)
	case consists(ops, deletesRequest):
		return c.hold(ctx, ops)
	default:
		return c.move(ctx, ops)
	}
}

// hold notes the keys of requests to delete, and deletes none yet.
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
			c.held = append(c.held, op.Key)
		}
	}
	return nil
}

// move stores a request again, and deletes it where it was. A request that the queue could not read
// shifts those after it: each then leaves the place of one that the queue is done with.
func (c *queueClient) move(ctx context.Context, ops []*storage.Operation) error {
	if len(c.held) == 0 || !slices.ContainsFunc(ops, is(storage.Set)) {
		return c.Client.Batch(ctx, ops...)
	}
	key := c.held[0]
	c.held = c.held[1:]
	err := c.Client.Batch(ctx, append(slices.Clone(ops), storage.DeleteOperation(key))...)
	if err != nil {
		c.refused = append(c.refused, key)
	}
	return err
}

// read gives the queue a request. The first one ends the recovery: in that transaction, the queue's
// own record no longer names any request that is still held. Where the record cannot be written, the
// request is read alone: the queue would drop it. The next start then reads it a second time.
func (c *queueClient) read(ctx context.Context, ops []*storage.Operation) error {
	c.recovered = true
	all := slices.Clone(ops)
	for _, key := range slices.Concat(c.refused, c.held) {
		all = append(all, storage.DeleteOperation(key))
	}
	if err := c.Client.Batch(ctx, all...); err != nil {
		alone := slices.DeleteFunc(all, func(op *storage.Operation) bool { return op.Type != storage.Get })
		if c.Client.Batch(ctx, alone...) != nil {
			return err
		}
		return nil
	}
	if n := len(all) - len(ops); n > 0 {
		c.lost(n)
	}
	c.held, c.refused = nil, nil
	return nil
}

func is(kind storage.OpType) func(*storage.Operation) bool {
	return func(op *storage.Operation) bool { return op.Type == kind }
}

// deletesRequest reports whether an operation deletes a request: the keys of requests are numbers.
func deletesRequest(op *storage.Operation) bool {
	_, err := strconv.ParseUint(op.Key, 10, 64)
	return op.Type == storage.Delete && err == nil
}

// consists reports whether all operations, and one at least, are of a kind.
func consists(ops []*storage.Operation, kind func(*storage.Operation) bool) bool {
	return len(ops) > 0 && !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return !kind(op) })
}
