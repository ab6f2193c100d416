// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// lineFile appends lines to a file. Each is one write(2), with the newline in it: what has been
// written is the kernel's, so that a kill of this process takes nothing back, and lines of two
// processes do not mix. A line that was cut is ended by the next, which thus begins on its own.
type lineFile struct {
	limit   int64 // bytes; 0 is no limit
	backups int
	onCut   func(reason string)

	mu   sync.Mutex
	path string
	file *os.File
	cut  bool // the file does not end with a newline
}

// Reasons for which a line is cut.
const (
	processEnded = "process_ended"
	writeFailed  = "write_failed"
)

// openLineFile opens the file, or makes it. The last line may have been cut by the end of the process that wrote it.
func openLineFile(c *Config, onCut func(reason string)) (*lineFile, error) {
	f := &lineFile{path: c.Path, onCut: onCut}
	if c.Rotation != nil {
		f.limit, f.backups = c.Rotation.MaxMegabytes<<20, c.Rotation.MaxBackups
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	// Rotate the file that a link names, not the link. A pipe behind a link has no path.
	if real, err := filepath.EvalSymlinks(f.path); err == nil {
		f.path = real
	}
	if f.cut {
		onCut(processEnded)
	}
	return f, nil
}

func (f *lineFile) open() error {
	// Others may read what it says, as they may a log.
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // see above
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	cut, err := endsCut(file)
	if err != nil {
		return errors.Join(fmt.Errorf("read end of %s: %w", f.path, err), file.Close())
	}
	f.file, f.cut = file, cut
	return nil
}

// endsCut reports whether a file ends within a line. A file that is not regular never does.
func endsCut(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}

// write appends a line, which has no newline yet. After an error, none of it counts as written.
func (f *lineFile) write(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.rotate(int64(len(line)) + 1); err != nil {
		return err
	}
	text := append(line, '\n')
	if f.cut {
		text = append([]byte{'\n'}, text...)
	}
	n, err := f.file.Write(text)
	if n > 0 {
		f.cut = text[n-1] != '\n'
	}
	if err == nil {
		return nil
	}
	if f.cut && n > 0 {
		f.onCut(writeFailed)
	}
	return fmt.Errorf("write line: %w", err)
}

// rotate begins a new file where the line would exceed the limit. The size is asked for, since
// others may have cut the file.
func (f *lineFile) rotate(more int64) error {
	if f.limit == 0 {
		return nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("rotate file: %w", err)
	}
	if info.Size() == 0 || info.Size()+more <= f.limit {
		return nil
	}
	for i := f.free(); i > 0; i-- {
		if err := os.Rename(f.backup(i-1), f.backup(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate file: %w", err)
		}
	}
	old := f.file
	if err := f.open(); err != nil {
		return err // f.file stays the old one, and the next line tries again
	}
	return old.Close()
}

// free returns the newest backup that is missing, or the oldest one. A rotation that failed half way
// has freed it already: older backups keep their place.
func (f *lineFile) free() int {
	for i := range f.backups {
		if _, err := os.Lstat(f.backup(i)); errors.Is(err, fs.ErrNotExist) {
			return i
		}
	}
	return f.backups
}

// backup returns the path of a backup, the newest first: file.1.jsonl of file.jsonl. 0 is the file.
func (f *lineFile) backup(i int) string {
	if i == 0 {
		return f.path
	}
	ext := filepath.Ext(f.path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(f.path, ext), i, ext)
}

func (f *lineFile) close() error {
	if err := f.file.Close(); err != nil {
		return fmt.Errorf("close file: %w", err)
	}
	return nil
}
