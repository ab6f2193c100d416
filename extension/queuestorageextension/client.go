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
	lost  func(requests int)
	wrote func(bytes int, requests bool, err error) // a transaction that writes, for health

	mu        sync.Mutex // a queue calls once at a time
	recovered bool
	newest    *uint64  // the greatest key of a request that was there at the start, until the first is stored
	held      []string // keys that are to be deleted, of requests that are to be stored again
	refused   []string // keys of those that could not be stored again
	owed      []string // keys of requests that the queue is done with, and that could not be deleted
}

func newQueueClient(client storage.Client, lost func(requests int), wrote func(bytes int, requests bool, err error)) *queueClient {
	return &queueClient{Client: client, lost: lost, wrote: wrote}
}

// Batch implements storage.Client.
func (c *queueClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stored := slices.IndexFunc(ops, setsRequest); stored >= 0 && c.newest != nil {
		return c.first(ctx, ops, ops[stored].Key)
	}
	return c.apply(ctx, ops)
}

func (c *queueClient) apply(ctx context.Context, ops []*storage.Operation) error {
	switch {
	case slices.ContainsFunc(ops, is(storage.Get)) && slices.ContainsFunc(ops, is(storage.Set)):
		return c.read(ctx, ops)
	case c.recovered:
		return c.store(ctx, ops)
	case consists(ops, deletesRequest):
		return c.hold(ctx, ops)
	default:
		return c.move(ctx, ops)
	}
}

// first stores the first request. In the same transaction it deletes the requests that the queue never
// reads, and counts them. Where it cannot list them it deletes none, and tries again with the next request.
func (c *queueClient) first(ctx context.Context, ops []*storage.Operation, stored string) error {
	stale, err := c.stale(ctx, stored)
	if err != nil {
		return c.apply(ctx, ops)
	}
	all := slices.Clone(ops)
	for _, key := range stale {
		if key != stored {
			all = append(all, storage.DeleteOperation(key))
		}
	}
	if err := c.apply(ctx, all); err != nil {
		return err
	}
	c.newest = nil
	if len(stale) > 0 {
		c.lost(len(stale))
	}
	return nil
}

// stale returns the keys of requests that the queue never reads: those at the key that it stores first,
// or behind it. It stores behind all requests of its own record. If it could not read the record, it begins
// at the first key again.
func (c *queueClient) stale(ctx context.Context, stored string) ([]string, error) {
	first, err := strconv.ParseUint(stored, 10, 64)
	if err != nil || first > *c.newest {
		return nil, nil //nolint:nilerr // it is no key of a request
	}
	keys, err := requestsIn(ctx, c.Client)
	return slices.DeleteFunc(keys, func(key string) bool {
		n, err := strconv.ParseUint(key, 10, 64)
		return err != nil || n < first || slices.Contains(c.held, key) || slices.Contains(c.refused, key)
	}), err
}

// findNewest notes the greatest key of a request. A storage that cannot list its keys leaves it out.
func (c *queueClient) findNewest(ctx context.Context) error {
	keys, err := requestsIn(ctx, c.Client)
	for _, k := range keys {
		if n, err := strconv.ParseUint(k, 10, 64); err == nil && (c.newest == nil || n > *c.newest) {
			c.newest = &n
		}
	}
	return err
}

// requestsIn returns the keys of the requests in a storage.
func requestsIn(ctx context.Context, client storage.Client) (keys []string, err error) {
	w, ok := client.(storage.Walker)
	if !ok {
		return nil, nil
	}
	err = w.Walk(ctx, func(key string, _ []byte) ([]*storage.Operation, error) {
		if _, err := strconv.ParseUint(key, 10, 64); err == nil {
			keys = append(keys, key)
		}
		return nil, nil
	})
	return keys, err
}

// hold notes the keys of requests to delete, and deletes none yet. Where it cannot be found out which of
// them are there, it notes all.
func (c *queueClient) hold(ctx context.Context, ops []*storage.Operation) error {
	values := make([]*storage.Operation, len(ops))
	for i, op := range ops {
		values[i] = storage.GetOperation(op.Key)
	}
	err := c.Client.Batch(ctx, values...)
	for _, op := range values {
		if err != nil || op.Value != nil {
			c.held = append(c.held, op.Key)
		}
	}
	return err
}

// move stores a request again, and deletes it where it was. A request that the queue could not read
// shifts those after it: each then leaves the place of one that the queue is done with. Where the request
// takes the place of one that was to be deleted, it deletes none.
func (c *queueClient) move(ctx context.Context, ops []*storage.Operation) error {
	if len(c.held) == 0 || !slices.ContainsFunc(ops, is(storage.Set)) {
		return c.store(ctx, ops)
	}
	all, again := ops, slices.ContainsFunc(ops, c.replaces)
	if !again {
		all = append(slices.Clone(ops), storage.DeleteOperation(c.held[0]))
	}
	old := c.held[0]
	err := c.store(ctx, all)
	if err != nil {
		c.refused = append(c.refused, old)
	}
	if err != nil || !again {
		c.held = c.held[1:]
	}
	return err
}

// store passes operations on. A key that has a request again is no longer to be deleted.
func (c *queueClient) store(ctx context.Context, ops []*storage.Operation) error {
	if err := c.write(ctx, ops); err != nil {
		return err
	}
	for _, op := range ops {
		if c.replaces(op) {
			again := func(key string) bool { return key == op.Key }
			c.held, c.refused = slices.DeleteFunc(c.held, again), slices.DeleteFunc(c.refused, again)
		}
	}
	return nil
}

// write writes, and deletes what could not be deleted before: the queue tries once, and a request whose deletion a full
// disk refuses would keep its room for ever.
func (c *queueClient) write(ctx context.Context, ops []*storage.Operation) error {
	all := make([]*storage.Operation, 0, len(c.owed)+len(ops))
	for _, key := range c.owed {
		all = append(all, storage.DeleteOperation(key))
	}
	err := c.Client.Batch(ctx, append(all, ops...)...)
	switch {
	case err == nil:
		c.owed = nil
	case len(c.owed) > 0:
		err = c.Client.Batch(ctx, ops...)
	}
	if err != nil && c.recovered {
		c.owe(ctx, ops)
	}
	c.wrote(sizeOf(ops), slices.ContainsFunc(ops, setsRequest), err)
	return err
}

// owe notes the requests that could not be deleted.
func (c *queueClient) owe(ctx context.Context, ops []*storage.Operation) {
	for _, op := range ops {
		if !deletesRequest(op) || slices.Contains(slices.Concat(c.owed, c.held, c.refused), op.Key) {
			continue
		}
		// The queue deletes also what it could not store.
		if value, err := c.Get(ctx, op.Key); err != nil || value != nil {
			c.owed = append(c.owed, op.Key)
		}
	}
}

// sizeOf returns how many bytes operations store.
func sizeOf(ops []*storage.Operation) (n int) {
	for _, op := range ops {
		if op.Type == storage.Set {
			n += len(op.Value)
		}
	}
	return n
}

// replaces reports whether an operation stores a request at a key that is to be deleted.
func (c *queueClient) replaces(op *storage.Operation) bool {
	return op.Type == storage.Set && (slices.Contains(c.held, op.Key) || slices.Contains(c.refused, op.Key))
}

// read gives the queue a request. The first one ends the recovery: that transaction deletes what is still
// held, except the request itself, since the queue's own record no longer names it. Where the record cannot
// be written, the request is read alone: the queue would drop it. The next start then reads it a second time.
func (c *queueClient) read(ctx context.Context, ops []*storage.Operation) error {
	c.recovered = true
	all := slices.Clone(ops)
	for _, key := range slices.Concat(c.refused, c.held) {
		if !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Key == key }) {
			all = append(all, storage.GetOperation(key), storage.DeleteOperation(key))
		}
	}
	if err := c.write(ctx, all); err != nil {
		alone := slices.DeleteFunc(slices.Clone(ops), func(op *storage.Operation) bool { return op.Type != storage.Get })
		if c.Client.Batch(ctx, alone...) != nil {
			return err
		}
		return nil
	}
	if n := there(all[len(ops):]); n > 0 {
		c.lost(n)
	}
	c.held, c.refused = nil, nil
	return nil
}

// there counts the values that were read.
func there(ops []*storage.Operation) (n int) {
	for _, op := range ops {
		if op.Type == storage.Get && op.Value != nil {
			n++
		}
	}
	return n
}

func is(kind storage.OpType) func(*storage.Operation) bool {
	return func(op *storage.Operation) bool { return op.Type == kind }
}

// deletesRequest reports whether an operation deletes a request: the keys of requests are numbers.
func deletesRequest(op *storage.Operation) bool {
	_, err := strconv.ParseUint(op.Key, 10, 64)
	return op.Type == storage.Delete && err == nil
}

// setsRequest reports whether an operation stores a request.
func setsRequest(op *storage.Operation) bool {
	_, err := strconv.ParseUint(op.Key, 10, 64)
	return op.Type == storage.Set && err == nil
}

// consists reports whether all operations, and one at least, are of a kind.
func consists(ops []*storage.Operation, kind func(*storage.Operation) bool) bool {
	return len(ops) > 0 && !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return !kind(op) })
}
