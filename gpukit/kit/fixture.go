// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

const (
	// MaxFixtures is how many fixture files a run may leave: with the two reports, eight.
	MaxFixtures = 6
	// MaxFixtureBytes bounds each.
	MaxFixtureBytes = 16 << 20
)

var errTooLarge = errors.New("archive too large")

type fixtures struct {
	mu    sync.Mutex
	dir   string
	max   int // bytes of each; MaxFixtureBytes but in tests
	names []string
}

// Entry is one file in a fixture.
type Entry struct {
	Name    string // in the archive
	Content []byte
}

// maxFile bounds a file that is kept, bytes.
const maxFile = 64 << 20

// FileEntry reads a file of at most 64 MiB as an entry that has its base name.
func FileEntry(path string) (Entry, error) {
	content, err := ReadFile(path, maxFile)
	if err != nil {
		return Entry{}, fmt.Errorf("keep fixture: %w", err)
	}
	return Entry{Name: filepath.Base(path), Content: content}, nil
}

// Fixture keeps files of a part for later tests, as name.tar.gz in the output folder,
// without what names the machine. Files that are compressed are kept as what they hold.
// It refuses more than MaxFixtures in a run, and an archive above MaxFixtureBytes.
func (k *Kit) Fixture(name string, entries ...Entry) error {
	entries, err := k.scrubbed(entries)
	if err != nil {
		return fmt.Errorf("keep fixture %s: %w", name, err)
	}
	archive, err := pack(entries)
	if err != nil {
		return err
	}
	if len(archive) > k.fixtures.max {
		return fmt.Errorf("keep fixture %s: %w: got %d bytes; want at most %d", name, errTooLarge, len(archive), k.fixtures.max)
	}
	f := k.fixtures
	f.mu.Lock()
	defer f.mu.Unlock()
	file := name + ".tar.gz"
	if !slices.Contains(f.names, file) {
		if len(f.names) >= MaxFixtures {
			return fmt.Errorf("keep fixture %s: got more than %d; want fewer", name, MaxFixtures)
		}
		f.names = append(f.names, file)
	}
	if err := os.WriteFile(filepath.Join(f.dir, file), archive, 0o644); err != nil {
		return fmt.Errorf("keep fixture: %w", err)
	}
	return nil
}

// FixtureWith keeps extra entries, too, as far as they fit, in their order, and returns the
// names of those that do not. Where entries are too large without them, it keeps those
// that fit, and the error names the ones that do not.
func (k *Kit) FixtureWith(name string, extra []Entry, entries ...Entry) (left []string, err error) {
	if err := k.Fixture(name, slices.Concat(entries, extra)...); !errors.Is(err, errTooLarge) {
		return nil, err
	}
	kept, lost, room, err := k.fitting(entries, k.fixtures.max)
	if err != nil {
		return nil, err
	}
	more, left, _, err := k.fitting(extra, room)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		err = fmt.Errorf("keep fixture %s: %w: left out %s", name, errTooLarge, strings.Join(lost, ", "))
	}
	if kept = append(kept, more...); len(kept) > 0 {
		err = errors.Join(err, k.Fixture(name, kept...))
	}
	return left, err
}

// Keep keeps a fixture as FixtureWith does, and adds a check to the part where something is
// left out: noted for extra entries, failed for others and for any other reason.
func (k *Kit) Keep(p *report.Part, name string, extra []Entry, entries ...Entry) {
	if len(extra)+len(entries) == 0 {
		return
	}
	left, err := k.FixtureWith(name, extra, entries...)
	if err != nil {
		p.Add("fixture", report.Failed, err.Error())
	}
	if len(left) > 0 {
		p.Addf("fixture", report.Noted, "left out of %s.tar.gz, which may have %d MiB: %s", name, MaxFixtureBytes>>20, strings.Join(left, ", "))
	}
}

// fitting returns the entries that fit into so many bytes of an archive, in their order,
// the names of the rest, and the bytes that remain.
func (k *Kit) fitting(entries []Entry, room int) (fit []Entry, rest []string, remain int, err error) {
	size, err := k.size(entries...)
	if err != nil {
		return nil, nil, 0, err
	}
	if size <= room {
		return entries, nil, room - size, nil
	}
	for _, e := range entries {
		size, err := k.size(e)
		if err != nil {
			return nil, nil, 0, err
		}
		if size > room { // one archive of all is no larger than those of each
			rest = append(rest, e.Name)
			continue
		}
		room -= size
		fit = append(fit, e)
	}
	return fit, rest, room, nil
}

// size returns how large an archive of the entries is, bytes; 0 where there is none.
func (k *Kit) size(entries ...Entry) (int, error) {
	if len(entries) == 0 {
		return 0, nil
	}
	clean, err := k.scrubbed(entries)
	if err != nil {
		return 0, fmt.Errorf("keep fixture: %w", err)
	}
	archive, err := pack(clean)
	return len(archive), err
}

// Fixtures returns the names of the files that were kept.
func (k *Kit) Fixtures() []string {
	k.fixtures.mu.Lock()
	defer k.fixtures.mu.Unlock()
	return slices.Clone(k.fixtures.names)
}

// maxEntry bounds what a compressed file may hold, bytes.
const maxEntry = 256 << 20

func (k *Kit) scrubbed(entries []Entry) ([]Entry, error) {
	clean := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if name, zipped := strings.CutSuffix(e.Name, ".gz"); zipped {
			content, err := unzip(e.Content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			e = Entry{Name: name, Content: content}
		}
		content, err := k.Scrub.Text(e.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		clean = append(clean, Entry{Name: e.Name, Content: content})
	}
	return clean, nil
}

func unzip(b []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(zip, maxEntry+1))
	if err == nil && len(content) > maxEntry {
		err = fmt.Errorf("got more than %d bytes in it; want fewer", maxEntry)
	}
	return content, err
}

func pack(entries []Entry) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Mode: 0o644, Size: int64(len(e.Content)), Format: tar.FormatPAX}
		if err := tape.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack fixture: %w", err)
		}
		if _, err := tape.Write(e.Content); err != nil {
			return nil, fmt.Errorf("pack fixture: %w", err)
		}
	}
	if err := tape.Close(); err != nil {
		return nil, fmt.Errorf("pack fixture: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("pack fixture: %w", err)
	}
	return out.Bytes(), nil
}
