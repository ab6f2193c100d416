// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"io"

	"github.com/lockstep-otel/lockstep/internal/regular"
)

// ReadFile returns the content of a regular file that has at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if size := int64(len(content)); size > limit {
		if info, err := f.Stat(); err == nil {
			size = max(size, info.Size())
		}
		return nil, fmt.Errorf("read file %s: got %d bytes; want at most %d", path, size, limit)
	}
	return content, nil
}
