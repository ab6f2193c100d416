// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// output writes texts, each with one write, so that those of several exporters do not mix. What a
// failed write has left is written before the next text. A write that blocks runs on after the context
// of its caller has ended, and the next text waits for it.
type output struct {
	name    string
	file    *os.File
	to      io.Writer     // the file; a test has another
	turn    chan struct{} // full while one writes of those that write to one terminal
	own     bool          // the file is ours to close
	rest    []byte        // a write that runs reads it
	running chan written  // gets what the write that runs has done; nil: none runs
}

// written is what a write has done.
type written struct {
	n   int
	err error
}

// errBlocked is why a text is not written in time.
var errBlocked = errors.New("its reader does not read")

// Turns of stdout and stderr.
var stdoutTurn, stderrTurn = make(chan struct{}, 1), make(chan struct{}, 1)

// turnOfStderr returns the turn of stdout where both are one terminal, pipe or file. Else a reader that
// does not read the one would block the other.
func turnOfStderr(stdout, stderr *os.File) chan struct{} {
	a, err := stdout.Stat()
	b, err2 := stderr.Stat()
	if err == nil && err2 == nil && os.SameFile(a, b) {
		return stdoutTurn
	}
	return stderrTurn
}

func openOutput(path string) (*output, error) {
	if path == toStdout || path == toStderr {
		// Else the first write to a pipe whose reader has gone would end the collector.
		signal.Ignore(syscall.SIGPIPE)
	}
	switch path {
	case toStdout:
		return &output{name: path, file: os.Stdout, to: os.Stdout, turn: stdoutTurn}, nil
	case toStderr:
		return &output{name: path, file: os.Stderr, to: os.Stderr, turn: turnOfStderr(os.Stdout, os.Stderr)}, nil
	}
	// For reading as well: a FIFO without a reader would block the start.
	// Others may read it, as they may a log.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // see above
	if err != nil {
		return nil, fmt.Errorf("open path %s: %w; %s", path, cause(err), remedy(err))
	}
	o := &output{name: path, file: file, to: file, turn: make(chan struct{}, 1), own: true}
	cut, err := endsCut(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the end of %s: %w", path, cause(err)), file.Close())
	}
	if cut { // by a process that was killed
		o.rest = []byte{'\n'}
	}
	return o, nil
}

func remedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "make its directory"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("let user %d write there", os.Geteuid())
	case errors.Is(err, syscall.EISDIR):
		return "want a file"
	}
	return "want stdout, stderr, or a file that can be written"
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

// flush writes what the last write has left, or waits for the write that runs.
func (o *output) flush(ctx context.Context) error {
	if o.running == nil && len(o.rest) == 0 {
		return nil
	}
	if o.running == nil {
		if err := o.begin(ctx); err != nil {
			return err
		}
	}
	select {
	case w := <-o.running:
		o.running, o.rest = nil, o.rest[w.n:]
		return o.failure(w.err)
	case <-ctx.Done():
		return o.blocked(ctx)
	}
}

// begin starts to write the rest, once no other exporter writes to the same terminal.
func (o *output) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("write to %s: %w", o.name, context.Cause(ctx))
	}
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return o.blocked(ctx)
	}
	// The goroutine may outlive the output: it has all that it uses.
	to, text, turn, running := o.to, o.rest, o.turn, make(chan written, 1)
	o.running = running
	go func() {
		n, err := to.Write(text)
		<-turn
		running <- written{n, err}
	}()
	return nil
}

func (o *output) blocked(ctx context.Context) error {
	return fmt.Errorf("write to %s: %w: %w", o.name, errBlocked, context.Cause(ctx))
}

// write writes a text. With an error it reports whether the text has begun: then the rest is kept for
// the next write, and the text must not be written again.
func (o *output) write(ctx context.Context, text []byte) (begun bool, err error) {
	if err := o.flush(ctx); err != nil {
		return false, err
	}
	o.rest = text
	err = o.flush(ctx)
	begun = o.running != nil || len(o.rest) < len(text)
	if !begun {
		o.rest = nil
	}
	return begun, err
}

func (o *output) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed):
		return consumererror.NewPermanent(fmt.Errorf("write to %s: %w; its reader has gone", o.name, cause(err)))
	}
	return fmt.Errorf("write to %s: %w", o.name, cause(err))
}

// close closes a file. A write to a pipe that blocks ends then; one to another file does not, and the
// operating system closes the file after it.
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
