// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"path"
	"strings"
)

// incomplete ends the name of a file that the Hugging Face hub's client has not finished.
const incomplete = ".incomplete"

// hubDownload is where the client keeps such files of a download into a folder of its own.
const hubDownload = ".cache/huggingface/download"

// unfinished is a file of a download that was not finished; "" for none.
func (s *scan) unfinished(f *folder) string {
	if d, ok := s.fsys.(interface{ Unfinished() string }); ok && f.path == "." {
		if name := d.Unfinished(); name != "" {
			return name
		}
	}
	return s.unfinishedIn(f.join(hubDownload), maxStateDepth)
}

func (s *scan) unfinishedIn(name string, depth int) string {
	f, err := s.folder(name)
	if err != nil {
		return ""
	}
	for _, e := range f.entries {
		switch {
		case strings.HasSuffix(e.Name(), incomplete) && e.Type().IsRegular():
			return f.join(e.Name())
		case e.IsDir() && depth > 0:
			if found := s.unfinishedIn(f.join(e.Name()), depth-1); found != "" {
				return found
			}
		}
	}
	return ""
}

// hubSnapshots names the snapshots in a cache of the Hugging Face hub, or of one repository in it.
func (s *scan) hubSnapshots(f *folder) (names []string) {
	repositories := []string{f.path}
	for _, e := range f.entries {
		if strings.HasPrefix(e.Name(), "models--") && e.IsDir() && len(repositories) < maxProbes {
			repositories = append(repositories, f.join(e.Name()))
		}
	}
	for _, at := range repositories {
		repository, err := s.folder(at)
		if err != nil || !repository.has("blobs") || !repository.has("snapshots") {
			continue
		}
		snapshots, err := s.folder(repository.join("snapshots"))
		if err != nil {
			continue
		}
		for _, e := range snapshots.entries {
			if e.IsDir() && len(names) < maxBelow {
				names = append(names, snapshots.join(e.Name()))
			}
		}
	}
	return names
}

// Unfinished is a blob of the repository whose snapshot the folder is, of which the download was not finished; "" for
// none.
func (d *Dir) Unfinished() string {
	if d.hub == nil {
		return ""
	}
	entries, err := fs.ReadDir(d.hub.root.FS(), ".")
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), incomplete) {
			return path.Join("blobs", e.Name())
		}
	}
	return ""
}
