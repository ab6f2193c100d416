// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// ErrLegacy says that a file is of torch.save before 1.6, which is no zip file: nothing in
// it says where it ends.
var ErrLegacy = errors.New("file is of torch.save before PyTorch 1.6")

// ErrLimit says that a file has a record, or a directory, that is larger than what is read of one.
// What is too large in the pickle itself is pickle.ErrLimit.
var ErrLimit = errors.New("larger than what is read of one")

// legacyMagic is how such a file begins: a pickle of the number 0x1950a86a20f9469cfc6c.
var legacyMagic = []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.")

// maxDirectory bounds the zip directory, bytes: 100 bytes for each of 600,000 storages.
const maxDirectory = 64 << 20

// File is an open file of torch.save.
type File struct {
	zip *zip.Reader
	at  io.ReaderAt // of the whole file
	// size of the whole file, bytes
	size int64
	// prefix is the folder within the archive: the name that the file was first given.
	prefix string
	root   *zip.File // data.pkl
	// records are those of storages, by their key; nil until one is asked for.
	records map[string]*zip.File
	err     error // the first that kept a number from being read
	lost    error // the first storage that the pickle names and is not there as it says
}

// Err returns the first error that kept Number from reading a number that is there.
func (f *File) Err() error { return f.err }

// Open reads the directory of a file. A file that does not end as a zip file does is torn.
func Open(r io.ReaderAt, size int64) (*File, error) {
	dir, err := findDirectory(r, size)
	if err != nil {
		return nil, notAZip(r, size, err)
	}
	if dir.size > maxDirectory {
		return nil, fmt.Errorf("read zip directory: got %d bytes; want at most %d: %w", dir.size, maxDirectory, ErrLimit)
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("read zip directory: %w", err)
	}
	f := &File{zip: z, at: r, size: size}
	for _, e := range z.File {
		if name, ok := strings.CutSuffix(e.Name, "/data.pkl"); ok && !strings.Contains(name, "/") {
			if f.root != nil {
				return nil, errors.New("read zip directory: got two data.pkl; want one")
			}
			f.root, f.prefix = e, name
		}
	}
	if f.root == nil {
		return nil, errors.New("read zip directory: got no data.pkl; want a file of torch.save")
	}
	return f, nil
}

// notAZip says what a file is instead.
func notAZip(r io.ReaderAt, size int64, err error) error {
	head := make([]byte, min(size, int64(len(legacyMagic))))
	if n, _ := r.ReadAt(head, 0); n == len(legacyMagic) && bytes.Equal(head, legacyMagic) {
		return ErrLegacy
	}
	return err
}

// Value reads data.pkl, whose checksum is compared. The machine has the value's parts. Whether the
// storages that it names are there, Lost tells then.
func (f *File) Value(l pickle.Limits) (*pickle.Machine, pickle.Value, error) {
	l = l.Or(pickle.DefaultLimits())
	f.lost = nil
	data, err := f.record(f.root, int64(l.Bytes))
	if err != nil {
		return nil, pickle.Value{}, fmt.Errorf("read data.pkl: %w", err)
	}
	m := pickle.NewMachine(data, pickle.Inert, l)
	m.Persist = func(id pickle.Value) { f.persist(m, id) }
	v, err := m.Run()
	if err != nil {
		return nil, pickle.Value{}, fmt.Errorf("read data.pkl: %w", err)
	}
	return m, v, nil
}

// record reads a record of at most limit bytes.
func (f *File) record(e *zip.File, limit int64) ([]byte, error) {
	if e.UncompressedSize64 > uint64(limit) {
		return nil, fmt.Errorf("got %d bytes; want at most %d: %w", e.UncompressedSize64, limit, ErrLimit)
	}
	r, err := open(e)
	if err != nil {
		return nil, err
	}
	// A compressed record may be longer than it says.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("got more than %d bytes; want at most that: %w", limit, ErrLimit)
	}
	return data, nil
}

// open opens a record. Its checksum is compared where it has one: PyTorch can be told to
// compute none, and leaves 0.
func open(e *zip.File) (io.Reader, error) {
	if e.CRC32 == 0 && e.Method == zip.Store {
		return e.OpenRaw()
	}
	return e.Open()
}

// Verify compares the directory with what lies before each record, and reads every record and compares
// its checksum. Records without one are counted.
func (f *File) Verify() (unchecked int, err error) {
	if err := f.checkDirectory(); err != nil {
		return 0, fmt.Errorf("verify zip directory: %w", err)
	}
	for _, e := range f.zip.File {
		if e.CRC32 == 0 && e.UncompressedSize64 > 0 {
			unchecked++
		}
		r, err := open(e)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return unchecked, fmt.Errorf("verify record %.80q: %w", e.Name, err)
		}
	}
	return unchecked, nil
}
