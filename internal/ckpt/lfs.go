// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errPointer says that a file is a pointer of git-lfs, and not the file itself.
var errPointer = errors.New("run git lfs pull")

// A pointer of git-lfs is a few lines of text; the first is the version.
const (
	lfsVersion = "version https://git-lfs.github.com/spec/"
	maxPointer = 1024 // bytes, by the specification
)

// pointer returns an error where the file is a pointer of git-lfs, with the size of what it points to.
func (f *file) pointer() error {
	if f.size < int64(len(lfsVersion)) || f.size >= maxPointer {
		return nil
	}
	b := make([]byte, f.size)
	if n, err := f.ReadAt(b, 0); err != nil && (!errors.Is(err, io.EOF) || n < len(b)) {
		return clause(err)
	}
	if !bytes.HasPrefix(b, []byte(lfsVersion)) {
		return nil
	}
	of := "an unknown size"
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "size "); ok {
			if n, ok := number(text); ok {
				of = byteSize(n)
			}
		}
	}
	return fmt.Errorf("got a pointer of git-lfs (%d bytes, of %s); want the file itself: %w", f.size, of, errPointer)
}

// byteSize writes a number of bytes for people, in decimal units.
func byteSize(n int64) string {
	const kilo = 1000
	if n < kilo {
		return fmt.Sprintf("%d bytes", n)
	}
	x, unit := float64(n)/kilo, 0
	for x >= kilo && unit < 3 {
		x, unit = x/kilo, unit+1
	}
	return fmt.Sprintf("%.1f %cB", x, "kMGT"[unit])
}
