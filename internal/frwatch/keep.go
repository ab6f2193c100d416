// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// Keeper copies dumps, since the next incident's overwrite them. What it holds is bounded:
// the oldest copies go first.
type Keeper struct {
	Directory string
	MaxBytes  int64
	MaxFiles  int

	// Removed counts the copies that made room for others.
	Removed int64
	// Overwritten counts the copies that one of the same name took the place of.
	Overwritten int64

	folders *bounded.Map[string, incidentFolder] // by job, the one that was used longest ago in front; nil: none
	copies  []kept                               // oldest first
	bytes   int64
	loaded  bool
}

// incidentFolder is where the copies of a job's incident go.
type incidentFolder struct {
	name string
	used time.Time
}

type kept struct {
	path string
	size int64
	time time.Time
}

const (
	// folderTime begins the name of an incident's folder. Nothing in other folders is
	// touched.
	folderTime = "20060102T150405Z"
	// sameIncident is for how long after a copy the next goes to its folder.
	sameIncident = 2 * time.Minute
	// maxFolders bounds the jobs whose folders are remembered. A job that is forgotten begins another folder.
	maxFolders = 1 << 12
)

var ourFolder = regexp.MustCompile(`^\d{8}T\d{6}Z-`)

// Keep writes a copy of a dump of a job. The names of jobs and files are no paths.
func (k *Keeper) Keep(now time.Time, job, source string, data []byte) error {
	if err := k.load(); err != nil {
		return err
	}
	size := int64(len(data))
	if size > k.MaxBytes {
		return fmt.Errorf("keep copy of %s: got %d bytes; want at most %d (max_bytes)", source, size, k.MaxBytes)
	}
	dir := filepath.Join(k.Directory, k.folder(now, job))
	path := filepath.Join(dir, plain(filepath.Base(source)))
	before, rewritten := k.forget(path)
	if err := k.makeRoom(size); err != nil {
		k.restore(before)
		return fmt.Errorf("keep copy of %s: %w", source, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		k.restore(before)
		return fmt.Errorf("keep copy of %s: %w", source, err)
	}
	if err := writeWhole(path, data); err != nil {
		k.restore(before)
		return fmt.Errorf("keep copy of %s: %w", source, err)
	}
	if rewritten {
		k.Overwritten++
	}
	k.copies = append(k.copies, kept{path, size, now})
	k.bytes += size
	return nil
}

// folder returns the folder of the incident that a job is in.
func (k *Keeper) folder(now time.Time, job string) string {
	if k.folders == nil {
		k.folders = bounded.NewMap(bounded.MapConfig[string, incidentFolder]{Entries: maxFolders, Order: bounded.ByUse})
	}
	f, ok := k.folders.Peek(job)
	if !ok || now.Sub(f.used) > sameIncident {
		f.name = now.UTC().Format(folderTime) + "-" + plain(job)
	}
	f.used = now
	k.folders.Set(job, f)
	return f.name
}

// plain makes a name of anything: it can not leave its folder.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || r < ' ' {
			return '_'
		}
		return r
	}, name)
	const maxName = 200 // of the 255 bytes that file systems take
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	if strings.Trim(name, ".") == "" {
		return "_"
	}
	return name
}

// load finds the copies of earlier runs. A folder that can not be looked into is left as it is,
// and its copies are not counted.
func (k *Keeper) load() error {
	if k.loaded {
		return nil
	}
	if err := os.MkdirAll(k.Directory, 0o700); err != nil {
		return fmt.Errorf("keep copies of dumps: %w", err)
	}
	folders, err := os.ReadDir(k.Directory)
	if err != nil {
		return fmt.Errorf("keep copies of dumps: %w", err)
	}
	for _, f := range folders {
		if !f.IsDir() || !ourFolder.MatchString(f.Name()) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(k.Directory, f.Name()))
		if err != nil {
			continue
		}
		for _, file := range files {
			info, err := file.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			k.copies = append(k.copies, kept{filepath.Join(k.Directory, f.Name(), file.Name()), info.Size(), info.ModTime()})
			k.bytes += info.Size()
		}
	}
	slices.SortStableFunc(k.copies, func(a, b kept) int { return a.time.Compare(b.time) })
	k.loaded = true
	return nil
}

// forget takes a copy off the list that is to be written anew, and reports whether there
// is one.
func (k *Keeper) forget(path string) (kept, bool) {
	i := slices.IndexFunc(k.copies, func(c kept) bool { return c.path == path })
	if i < 0 {
		return kept{}, false
	}
	c := k.copies[i]
	k.bytes -= c.size
	k.copies = slices.Delete(k.copies, i, i+1)
	return c, true
}

// restore puts a copy back on the list in whose place none could be written: it is still there.
func (k *Keeper) restore(c kept) {
	if c.path == "" {
		return
	}
	i, _ := slices.BinarySearchFunc(k.copies, c, func(a, b kept) int { return a.time.Compare(b.time) })
	k.copies = slices.Insert(k.copies, i, c)
	k.bytes += c.size
}

// makeRoom removes the oldest copies. What can not be removed takes its room on.
func (k *Keeper) makeRoom(size int64) error {
	full := func() bool {
		return k.bytes+size > k.MaxBytes || len(k.copies) >= k.MaxFiles
	}
	for i := 0; full() && i < len(k.copies); {
		oldest := k.copies[i]
		if err := os.Remove(oldest.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			i++
			continue
		}
		k.Removed++
		k.copies = slices.Delete(k.copies, i, i+1)
		k.bytes -= oldest.size
		_ = os.Remove(filepath.Dir(oldest.path)) // fails while it holds others
	}
	if full() {
		return fmt.Errorf("make room for %d bytes: %d copies of %d bytes can not be removed", size, len(k.copies), k.bytes)
	}
	return nil
}

// writeWhole leaves a whole file or none.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".copy-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
