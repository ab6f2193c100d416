// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// output writes texts, each with one write, so that those of several exporters do not mix. What a
// failed write has left is written before the next text.
type output struct {
	name string
	file *os.File
	to   io.Writer   // the file; a test has another
	lock sync.Locker // of those that write to one terminal
	own  bool        // the file is ours to close
	rest []byte
}

// standard is the lock of stdout and stderr, which are one terminal as a rule.
var standard sync.Mutex

func openOutput(path string) (*output, error) {
	switch path {
	case toStdout:
		return &output{name: path, file: os.Stdout, to: os.Stdout, lock: &standard}, nil
	case toStderr:
		return &output{name: path, file: os.Stderr, to: os.Stderr, lock: &standard}, nil
	}
	// Others may read it, as they may a log.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // see above
	if err != nil {
		return nil, fmt.Errorf("open path %s: %w; make its directory, and let the collector write there", path, cause(err))
	}
	o := &output{name: path, file: file, to: file, lock: new(sync.Mutex), own: true}
	cut, err := endsCut(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the end of %s: %w", path, cause(err)), file.Close())
	}
	if cut { // by a process that was killed
		o.rest = []byte{'\n'}
	}
	return o, nil
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

// flush writes what the last write has left.
func (o *output) flush() error {
	if len(o.rest) == 0 {
		return nil
	}
	n, err := o.put(o.rest)
	o.rest = o.rest[n:]
	return err
}

// write writes a text. With an error it reports whether the text has begun: then the rest is kept for
// the next write, and the text must not be written again.
func (o *output) write(text []byte) (begun bool, err error) {
	if err := o.flush(); err != nil {
		return false, err
	}
	n, err := o.put(text)
	o.rest = nil
	if err != nil && n > 0 {
		o.rest = text[n:]
	}
	return n > 0, err
}

func (o *output) put(text []byte) (int, error) {
	o.lock.Lock()
	n, err := o.to.Write(text)
	o.lock.Unlock()
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed):
		return n, consumererror.NewPermanent(fmt.Errorf("write to %s: %w; its reader has gone", o.name, cause(err)))
	}
	return n, fmt.Errorf("write to %s: %w", o.name, cause(err))
}

func (o *output) close() error {
	if !o.own {
		return nil
	}
	if err := o.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", o.name, cause(err))
	}
	return nil
}

// cause returns why a call on a file failed, without its path.
func cause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
