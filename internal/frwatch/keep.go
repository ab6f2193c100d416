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
	copies  *bounded.Map[string, int64]          // their sizes, by path, oldest first; nil: not loaded
}

// incidentFolder is where the copies of a job's incident go.
type incidentFolder struct {
	name string
	used time.Time
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
	if err := k.makeRoom(path, size); err != nil {
		return fmt.Errorf("keep copy of %s: %w", source, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep copy of %s: %w", source, err)
	}
	if err := writeWhole(path, data); err != nil {
		return fmt.Errorf("keep copy of %s: %w", source, err)
	}
	if _, rewritten := k.copies.Delete(path); rewritten {
		k.Overwritten++
	}
	k.copies.Set(path, size)
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
	if k.copies != nil {
		return nil
	}
	if err := os.MkdirAll(k.Directory, 0o700); err != nil {
		return fmt.Errorf("keep copies of dumps: %w", err)
	}
	folders, err := os.ReadDir(k.Directory)
	if err != nil {
		return fmt.Errorf("keep copies of dumps: %w", err)
	}
	type found struct {
		path string
		size int64
		time time.Time
	}
	var copies []found
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
			copies = append(copies, found{filepath.Join(k.Directory, f.Name(), file.Name()), info.Size(), info.ModTime()})
		}
	}
	slices.SortStableFunc(copies, func(a, b found) int { return a.time.Compare(b.time) })
	k.copies = bounded.NewMap(bounded.MapConfig[string, int64]{Size: func(_ string, size int64) int { return int(size) }})
	for _, c := range copies {
		k.copies.Set(c.path, c.size)
	}
	return nil
}

// makeRoom removes the oldest copies for one of a path, which takes the place of an earlier one. What can
// not be removed takes its room on.
func (k *Keeper) makeRoom(path string, size int64) error {
	before, rewrites := k.copies.Peek(path)
	others := func() (files int, bytes int64) {
		if rewrites {
			return k.copies.Len() - 1, int64(k.copies.Bytes()) - before
		}
		return k.copies.Len(), int64(k.copies.Bytes())
	}
	full := func() bool {
		files, bytes := others()
		return bytes+size > k.MaxBytes || files >= k.MaxFiles
	}
	for oldest := range k.copies.All() {
		if !full() {
			return nil
		}
		if oldest == path || !removed(oldest) {
			continue
		}
		k.Removed++
		k.copies.Delete(oldest)
		_ = os.Remove(filepath.Dir(oldest)) // fails while it holds others
	}
	if full() {
		files, bytes := others()
		return fmt.Errorf("make room for %d bytes: %d copies of %d bytes can not be removed", size, files, bytes)
	}
	return nil
}

func removed(path string) bool {
	err := os.Remove(path)
	return err == nil || errors.Is(err, os.ErrNotExist)
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
