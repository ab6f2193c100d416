// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Full returns the directory that has no room, where an error of writing is of that; "" otherwise.
func Full(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(err, syscall.ENOSPC) {
		return filepath.Dir(at.Path)
	}
	return ""
}

// ExplainWrite returns an error of writing with what to do about it, and, of a full disk, how much room there is now.
// It reads the room anew with each call.
func ExplainWrite(err error) error {
	var at *fs.PathError
	switch dir := Full(err); {
	case err == nil:
		return nil
	case dir != "":
		return fmt.Errorf("%w: %s: free room there, or enlarge it; nothing has to be restarted", err, roomOf(dir))
	case errors.Is(err, storage.ErrStorageFull):
		return fmt.Errorf("%w: its file has the size that the storage allows (file_storage::max_size): raise it, or lower queue_size", err)
	case errors.As(err, &at) && errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: raise the quota, or free room in %s", err, filepath.Dir(at.Path))
	case errors.As(err, &at):
		return fmt.Errorf("%w: look at the disk of %s", err, filepath.Dir(at.Path))
	}
	return err
}

func roomOf(dir string) string {
	free, total, err := Room(dir)
	if err != nil {
		return "the disk of " + dir + " is full"
	}
	const mib = 1 << 20
	return fmt.Sprintf("the disk of %s has %.1f MiB of %.1f MiB free", dir, float64(free)/mib, float64(total)/mib)
}
