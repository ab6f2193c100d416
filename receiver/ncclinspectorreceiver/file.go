// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockstep-otel/lockstep/internal/inspector"
)

const (
	// headBytes is how much of a file's beginning tells it from others: the first
	// line holds communicator, host, process and microsecond in as much.
	headBytes = 512
	// chunkBytes is read at once.
	chunkBytes = 256 << 10
	// turnBytes is read of a file until the others have their turn.
	turnBytes = 16 << 20
)

// place is how far a file was read.
type place struct {
	Head  []byte               `json:"head"` // the file's first bytes
	Split inspector.SplitState `json:"split"`
	Lends *inspector.Context   `json:"lends,omitempty"`
	Alien string               `json:"alien,omitempty"` // version of a dump that is not known
}

// position is how far a file was read, and what is needed to go on.
type position struct {
	place
	Before *place          `json:"before,omitempty"`
	Torn   int64           `json:"torn,omitempty"`
	Proc   inspector.State `json:"process"`
	Closed bool            `json:"closed,omitempty"` // what it held was handed on
}

// file is a file that is being read.
type file struct {
	path string
	id   int64 // in the storage
	f    *os.File
	info os.FileInfo // of when it was opened, to know it again
	grew time.Time

	head    []byte
	split   *inspector.Splitter
	parser  inspector.Parser
	process *inspector.Process
	closed  bool

	// gone: no path that is read leads to it any more.
	gone    bool
	changed bool // since its position was kept
	faults  tally
	// before is the place at which it was cut to nothing, until a copy of what
	// there was is found, and read to its end.
	before *place
	torn   int64 // bytes at its end that waited for the end of their line
}

func (f *file) place() place {
	return place{Head: f.head, Split: f.split.State(), Lends: f.parser.Context, Alien: f.parser.Unknown}
}

func (f *file) position() position {
	return position{place: f.place(), Before: f.before, Torn: f.torn, Proc: f.process.State, Closed: f.closed}
}

// resume puts a file to a position; its process is made apart.
func (f *file) resume(p *position, limit int) {
	f.before, f.torn, f.closed = p.Before, p.Torn, p.Closed
	f.goTo(&p.place, limit)
}

// goTo puts a file to a place.
func (f *file) goTo(p *place, limit int) {
	f.head = p.Head
	f.split = inspector.NewSplitter(limit, p.Split)
	f.parser.Context, f.parser.Unknown = p.Lends, p.Alien
}

// readHead returns the first bytes.
func readHead(f *os.File) ([]byte, error) {
	head := make([]byte, headBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read beginning of file: %w", err)
	}
	return head[:n], nil
}

// minHead is how much must agree for two files to count as one and its copy: less
// than a header and the time of a dump are no identity.
const minHead = 64

// same reports whether a file that begins with now may be the one that began with
// head, which it still does, or has grown since.
func same(head, now []byte) bool {
	return len(head) >= minHead && len(now) >= len(head) && bytes.Equal(head, now[:len(head)])
}

// begins reports whether part is the beginning of head, and not all of it.
func begins(head, part []byte) bool { return len(part) < len(head) && bytes.HasPrefix(head, part) }

// replaced reports whether the content is another than that which was read: the file
// was cut, and perhaps written anew.
func (f *file) replaced(size int64, head []byte) bool {
	return size < f.split.Next() || len(head) < len(f.head) || !bytes.Equal(f.head, head[:len(f.head)])
}
