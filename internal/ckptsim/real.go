// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Make makes the save in a folder of the real file system, with a goroutine for each rank.
// After is called after each operation of any of them, at once by several.
func (s *Save) Make(ctx context.Context, root string, after func(Op)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := &meeting{of: len(s.Ranks), open: make(chan struct{})}
	errs := make([]error, len(s.Ranks))
	var wg sync.WaitGroup
	for n, ops := range s.Ranks {
		wg.Go(func() {
			if errs[n] = perform(ctx, root, ops, all, after); errs[n] != nil {
				cancel() // nobody need wait for this rank
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("make save of epoch %d: %w", s.Epoch, err)
	}
	return nil
}

func perform(ctx context.Context, root string, ops []Op, all *meeting, after func(Op)) error {
	open := map[string]*os.File{}
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	for _, op := range ops {
		if err := ctx.Err(); err != nil {
			return err
		}
		if op.Kind == Barrier {
			if err := all.meet(ctx); err != nil {
				return err
			}
		} else if err := performOne(root, op, open); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		after(op)
	}
	return nil
}

func performOne(root string, op Op, open map[string]*os.File) error {
	name := filepath.Join(root, filepath.FromSlash(op.Path))
	switch op.Kind {
	case Mkdir:
		if err := os.Mkdir(name, 0o755); !errors.Is(err, fs.ErrExist) { //nolint:gosec // as the frameworks make them
			return err
		}
	case Create:
		for path, f := range open {
			if err := f.Close(); err != nil {
				return err
			}
			delete(open, path)
		}
		f, err := os.Create(name) //nolint:gosec // of the simulator
		if err != nil {
			return err
		}
		open[op.Path] = f
	case Write:
		_, err := open[op.Path].WriteAt(op.Data, op.Offset)
		return err
	case Fsync, FsyncDir:
		return fsync(name)
	case Rename:
		return os.Rename(name, filepath.Join(root, filepath.FromSlash(op.To)))
	case Remove:
		if err := os.Remove(name); !op.Maybe || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func fsync(name string) error {
	f, err := os.Open(name) //nolint:gosec // of the simulator
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// meeting is a barrier that is met at again and again.
type meeting struct {
	of   int
	mu   sync.Mutex
	here int
	open chan struct{} // closed when all are here
}

func (m *meeting) meet(ctx context.Context) error {
	m.mu.Lock()
	open := m.open
	if m.here++; m.here == m.of {
		m.here, m.open = 0, make(chan struct{})
		close(open)
	}
	m.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
