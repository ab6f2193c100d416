// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lockstep-otel/lockstep/internal/regular"
)

// Faults of a file that is not read.
var (
	ErrNotRegular = errors.New("no regular file")
	ErrTooLarge   = errors.New("too large")
)

// Read returns what a file holds, at most limit bytes of it. It opens nothing but regular
// files: of a pipe it would steal what was written, and a link may lead anywhere.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, readFlags, 0)
	if isLink(err) {
		return nil, fmt.Errorf("open dump %s: got a link: %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, fmt.Errorf("open dump: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("open dump: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open dump %s: got %s: %w", path, regular.Kind(info.Mode()), ErrNotRegular)
	case info.Size() > limit:
		return nil, fmt.Errorf("read dump %s: got %d bytes; want at most %d: %w", path, info.Size(), limit, ErrTooLarge)
	}
	return readAll(f, path, info.Size(), limit)
}

// firstRead bounds what is set aside because somebody said that so much will come, bytes.
const firstRead = 1 << 20

// readAll reads to the end, or to one byte more than the limit: it may grow meanwhile.
func readAll(from io.Reader, name string, expected, limit int64) ([]byte, error) {
	buf := make([]byte, 0, max(min(expected, limit, firstRead), 0)+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := from.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, fmt.Errorf("read dump %s: got more than %d bytes; want at most that: %w", name, limit, ErrTooLarge)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, fmt.Errorf("read dump %s: %w", name, err)
		}
	}
}
