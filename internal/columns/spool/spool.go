// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Config is where files are, and when one is closed.
type Config struct {
	// Directory is the folder of the files. It is made where it is missing, in a folder that is there.
	Directory string
	// MaxBytes bounds all files together. It is larger than a file. There are at most 65,536 files besides.
	MaxBytes int64
	// MaxFileRows, MaxFileBytes and MaxFileSteps close a file that has as many operations, bytes, or steps; 0: no
	// steps do. A file has a row group more than its bytes at most.
	MaxFileRows, MaxFileBytes, MaxFileSteps int64
	// MaxAge closes a file so long after its first operation.
	MaxAge time.Duration
	// MaxMemory bounds what is not in a file on the disk yet, bytes. Beyond, the largest file is closed.
	MaxMemory int
	// Resolution is that of times.
	Resolution columns.Resolution
	// Producer is the version of the program.
	Producer string
	// Uploads is true where files are uploaded: those that make room before are counted apart.
	Uploads bool
}

// Events are called for what happens, in the goroutine that uses the spool. None may be nil.
type Events struct {
	// Written: a file of so many operations and bytes is on the disk.
	Written func(operations, bytes int64)
	// Dropped: so many operations are lost.
	Dropped func(operations int64, reason string)
	// Deleted: a file was deleted.
	Deleted func(reason string)
	// Cut: so many texts of a file were longer than the format takes.
	Cut func(texts int64)
}

// Reasons for which operations are dropped.
const (
	// NoRoom is of operations that could not be written by the end.
	NoRoom = "no_room"
	// Encoding is of operations that could not be encoded.
	Encoding = "encoding"
)

// lockName is the file that keeps other collectors out.
const lockName = ".lockstep-parquet.lock"

var errLocked = errors.New("another exporter writes there; want a directory for each")

// Spool writes operations to files. Add, Tick and Close are used by one goroutine at a time; the others are safe for
// concurrent use.
type Spool struct {
	config Config
	events Events
	ring   ring
	lock   *os.File
	open   map[life]*openFile
	// pending are files that could not be written, in memory. Nothing more is added as long as there are some.
	pending []*encoded
	tried   time.Time // when they were tried to be written
	failed  error     // why they could not be
}

// life is one life of a job, which has files of its own.
type life struct{ job, incarnation string }

// encoded is a whole file in memory.
type encoded struct {
	life        life
	first, last model.Optional[int64]
	rows        int64
	number      int64
	content     []byte
}

// Open locks the directory, and finds the files of earlier runs.
func Open(c Config, e Events) (*Spool, error) {
	s := &Spool{config: c, events: e, ring: ring{directory: c.Directory, limit: c.MaxBytes, most: maxFiles, deleted: e.Deleted}, open: map[life]*openFile{}}
	if err := s.start(); err != nil {
		if s.lock != nil {
			_ = s.lock.Close() // nothing was written
		}
		return nil, fmt.Errorf("open directory %s: %w", c.Directory, err)
	}
	return s, nil
}

func (s *Spool) start() (err error) {
	if err = os.Mkdir(s.config.Directory, folderMode); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // the group reads it
		return fmt.Errorf("%w; want a folder that the collector can make, or one that is there", bare(err))
	}
	if s.lock, err = lock(filepath.Join(s.config.Directory, lockName)); err != nil {
		return writable(err)
	}
	probe, err := os.CreateTemp(s.config.Directory, "probe-*"+temporary)
	if err != nil {
		return writable(err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return writable(err)
	}
	if err := s.ring.scan(); err != nil {
		return err
	}
	return s.ring.makeRoom(0, s.config.Uploads)
}

// writable adds what to do about a directory in which nothing can be written.
func writable(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w; want a folder that the collector's user may write: change its owner, or set another directory", bare(err))
	}
	return err
}

// bare drops the path of a file error: the message has the directory already.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// retryAfter is how long the disk is left alone after it had no room.
const retryAfter = time.Second

// Add takes operations. It returns an error, and has taken nothing, as long as files of before cannot be written.
func (s *Spool) Add(batches []columns.Batch, now time.Time) error {
	if err := s.retry(now); err != nil {
		return err
	}
	for i := range batches {
		b := &batches[i]
		for k := range b.Ops {
			s.add(&b.Rank, &b.Ops[k], b.Summaries[k], now)
		}
	}
	s.bound(now)
	return nil
}

// add adds an operation to the open file of its job, which is closed before where the operation is of a later range
// of steps, and afterwards where it is full.
func (s *Spool) add(rank *model.Rank, op *model.Op, summary *model.Summary, now time.Time) {
	of := life{rank.JobID, rank.Incarnation}
	f := s.open[of]
	if f != nil && f.beyond(op.Step, s.config.MaxFileSteps) {
		s.close(f, now)
		f = nil
	}
	if f == nil {
		var err error
		if f, err = s.begin(of, op.Step, now); err != nil {
			s.events.Dropped(1, Encoding)
			return
		}
	}
	if err := f.add(rank, op, summary); err != nil {
		s.discard(f)
		return
	}
	if f.writer.Rows() >= s.config.MaxFileRows || f.writer.Written() >= s.config.MaxFileBytes {
		s.close(f, now)
	}
}

// discard drops a file that could not be encoded.
func (s *Spool) discard(f *openFile) {
	delete(s.open, f.life)
	s.events.Dropped(f.writer.Rows(), Encoding)
}

// Tick closes the files that have their age, and writes again those that could not be written.
func (s *Spool) Tick(now time.Time) error {
	for _, f := range s.open {
		if now.Sub(f.begun) >= s.config.MaxAge {
			s.close(f, now)
		}
	}
	return s.retry(now)
}

// Close writes all that is in memory, and unlocks the directory. What cannot be written is dropped.
func (s *Spool) Close(now time.Time) error {
	for _, f := range s.open {
		s.close(f, now)
	}
	s.tried = time.Time{}
	err := s.retry(now)
	for _, p := range s.pending {
		s.events.Dropped(p.rows, NoRoom)
	}
	s.pending = nil
	return errors.Join(err, s.lock.Close())
}

// Bytes returns the size of all files.
func (s *Spool) Bytes() int64 { return s.ring.bytes() }

// Unsent returns the oldest file that was not uploaded, and how many there are.
func (s *Spool) Unsent() (oldest File, n int) { return s.ring.unsent() }

// Sent notes that a file was uploaded.
func (s *Spool) Sent(f File) { s.ring.markSent(f.Path) }

// Path returns where a file is.
func (s *Spool) Path(f File) string { return s.ring.path(&f) }
