// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// OpenStorage finds the storage extension that a component is configured to use; nil where it is to use none.
// It is an error where the configured one is none.
func OpenStorage(ctx context.Context, host component.Host, id *component.ID, kind component.Kind, self component.ID) (storage.Client, error) {
	if id == nil {
		return nil, nil //nolint:nilnil // no storage is no error
	}
	ext, ok := host.GetExtensions()[*id]
	if !ok {
		return nil, fmt.Errorf("find storage: got no extension %q; want one that is listed under service::extensions", id)
	}
	s, ok := ext.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("find storage: got extension %q, which stores nothing; want one such as file_storage", id)
	}
	client, err := s.GetClient(ctx, kind, self, "")
	if err != nil {
		return nil, StorageError(self.String(), err)
	}
	return client, nil
}

// errLocked is the text of file_storage's error after it waited for the lock of a file.
const errLocked = "timeout"

// StorageError returns an error that names whose storage could not be opened, and what to do where another
// process may hold its file.
func StorageError(self string, err error) error {
	if err.Error() == errLocked {
		return fmt.Errorf("open storage of %s: %w: another process may hold its file, such as a second collector (fuser names it); "+
			"stop that process, or give this collector a directory of its own", self, err)
	}
	if damaged(err) {
		return fmt.Errorf("open storage of %s: %w: its file is damaged: move the file that is named like this component away, "+
			"in the directory of the storage, and start again", self, err)
	}
	return fmt.Errorf("open storage of %s: %w", self, err)
}

// damaged reports whether an error is that of a damaged file. The texts are those of file_storage's database.
func damaged(err error) bool {
	return slices.ContainsFunc([]string{"invalid database", "checksum error", "file size too small"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// MaxValueBytes bounds a value: the timeline of 65,536 clocks, 1 KiB each, is the largest.
const MaxValueBytes = 64 << 20

// Value is one value of a component, under a key.
type Value struct {
	client storage.Client
	key    string
}

// NewValue returns the value under a key; nil where there is no storage.
func NewValue(client storage.Client, key string) *Value {
	if client == nil {
		return nil
	}
	return &Value{client, key}
}

// ErrTooLarge is the error of a value that is larger than [MaxValueBytes].
var ErrTooLarge = fmt.Errorf("want at most %d bytes", MaxValueBytes)

// Load returns what was saved last; nil for nothing.
func (v *Value) Load(ctx context.Context) ([]byte, error) {
	data, err := v.client.Get(ctx, v.key)
	if err != nil {
		return nil, fmt.Errorf("read storage: %w", err)
	}
	if len(data) > MaxValueBytes {
		return nil, fmt.Errorf("read storage: key %q: got %d bytes; %w", v.key, len(data), ErrTooLarge)
	}
	return data, nil
}

// Save replaces the value.
func (v *Value) Save(ctx context.Context, data []byte) error {
	if data == nil {
		return errors.New("write storage: got no state; want one")
	}
	if len(data) > MaxValueBytes {
		return fmt.Errorf("write storage: key %q: got %d bytes; want at most %d", v.key, len(data), MaxValueBytes)
	}
	if err := v.client.Set(ctx, v.key, data); err != nil {
		return fmt.Errorf("write storage: %w", err)
	}
	return nil
}

// Close gives the storage back.
func (v *Value) Close(ctx context.Context) error {
	if err := v.client.Close(ctx); err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}
