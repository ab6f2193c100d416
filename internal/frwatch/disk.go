// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// How long a file system may take. One whose server is gone answers never: the call can not be
// called back, and what waits for it waits for ever.
const (
	// ListLimit is for looking at the names of a folder, ReadLimit for reading or copying one
	// dump, which may be hundreds of megabytes.
	ListLimit = 5 * time.Second
	ReadLimit = 30 * time.Second
	// maxStuck bounds the calls that are waited for no more but have not come back: each keeps
	// a thread of the process.
	maxStuck = 32
)

// Disk makes calls of file systems that may not come back. A place of which one has not is left
// alone until it does, so that the others are looked at. It is safe for concurrent use.
type Disk struct {
	mu    sync.Mutex
	stuck map[string]bool // places of which a call has not come back
}

// Do calls f, and returns without it when the limit is over or ctx is done. What f writes must
// be its own: it may go on.
func Do[T any](ctx context.Context, d *Disk, place string, limit time.Duration, f func() T) (out T, err error) {
	if err := d.claim(place); err != nil {
		return out, err
	}
	done := make(chan T, 1)
	go func() {
		v := f()
		d.clear(place)
		done <- v
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case out = <-done:
		return out, nil
	case <-timer.C:
		return out, silent(place)
	case <-ctx.Done():
		return out, fmt.Errorf("wait for file system of %s: %w", place, ctx.Err())
	}
}

// claim marks a place as asked, or says why it can not be asked now.
func (d *Disk) claim(place string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.stuck[place]:
		return silent(place)
	case len(d.stuck) >= maxStuck:
		return fmt.Errorf("wait for file system of %s: %d calls of others have not come back; want less than %d", place, len(d.stuck), maxStuck)
	case d.stuck == nil:
		d.stuck = map[string]bool{}
	}
	d.stuck[place] = true
	return nil
}

func silent(place string) error {
	return fmt.Errorf("wait for file system of %s: it does not answer, and is left alone until it does", place)
}

func (d *Disk) clear(place string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.stuck, place)
}
