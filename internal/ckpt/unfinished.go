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
