// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"fmt"
	"path"
	"time"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// openFile is a file that operations are added to, in memory.
type openFile struct {
	life    life
	begun   time.Time
	step    model.Optional[int64] // of the first operation that has one
	number  int64
	content *bytes.Buffer
	writer  *columns.Writer
}

func (s *Spool) begin(of life, step model.Optional[int64], now time.Time) (*openFile, error) {
	f := &openFile{life: of, begun: now, step: step, number: s.ring.number(now.UnixMilli()), content: &bytes.Buffer{}}
	var err error
	f.writer, err = columns.NewWriter(f.content, columns.Meta{
		Job: of.job, Incarnation: of.incarnation, Resolution: s.config.Resolution, Producer: s.config.Producer, Sequence: f.number,
	})
	if err != nil {
		return nil, err
	}
	s.open[of] = f
	return f, nil
}

// add adds an operation. What the encoder cannot encode costs the file, and not the process.
func (f *openFile) add(rank *model.Rank, op *model.Op, summary *model.Summary) error {
	if !f.step.OK {
		f.step = op.Step
	}
	return encode(func() error { return f.writer.AddOp(rank, op, summary) })
}

func (f *openFile) finish() error { return encode(f.writer.Close) }

func encode(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encode file: %v", p)
		}
	}()
	return do()
}

// beyond reports whether a step is of a later range of so many steps than the first of the file.
func (f *openFile) beyond(step model.Optional[int64], steps int64) bool {
	return steps > 0 && step.OK && f.step.OK && step.V/steps > f.step.V/steps
}

// encoderBytes is about what the buffers of an encoder take once it has written a row group.
const encoderBytes = 16 << 20

func (f *openFile) memory() int {
	n := f.writer.Waiting() + f.content.Cap()
	if f.writer.Written() > 0 {
		n += encoderBytes
	}
	return n
}

// close encodes a file to its end, and writes it to the disk.
func (s *Spool) close(f *openFile, now time.Time) {
	delete(s.open, f.life)
	rows := f.writer.Rows()
	if err := f.finish(); err != nil {
		s.events.Dropped(rows, Encoding)
		return
	}
	if n := f.writer.Cut(); n > 0 {
		s.events.Cut(n)
	}
	p := &encoded{life: f.life, rows: rows, number: f.number, content: f.content.Bytes()}
	p.first, p.last = f.writer.Steps()
	s.pending = append(s.pending, p)
	if s.failed == nil {
		_ = s.writePending(now) // whoever adds next gets the error
	}
}

// retry writes again what could not be written, at most once in [retryAfter].
func (s *Spool) retry(now time.Time) error {
	if len(s.pending) == 0 {
		return nil
	}
	if s.failed != nil && now.Sub(s.tried) < retryAfter {
		return s.failed
	}
	return s.writePending(now)
}

// writePending writes the files that are whole, the oldest first, until one cannot be written.
func (s *Spool) writePending(now time.Time) error {
	s.failed = nil
	for len(s.pending) > 0 {
		if err := s.write(s.pending[0]); err != nil {
			s.failed, s.tried = fmt.Errorf("write operations to %s: %w", s.config.Directory, err), now
			return s.failed
		}
		s.pending = s.pending[1:]
	}
	s.pending = nil
	return nil
}

func (s *Spool) write(p *encoded) error {
	size := int64(len(p.content))
	if err := s.ring.makeRoom(size, s.config.Uploads); err != nil {
		return err
	}
	at := path.Join(Folder(p.life.job), Folder(p.life.incarnation), fileName(p.first, p.last, p.number))
	if err := place(s.config.Directory, at, p.content); err != nil {
		return err
	}
	s.ring.add(&File{Path: at, Size: size, number: p.number})
	s.events.Written(p.rows, size)
	return nil
}
