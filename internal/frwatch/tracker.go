// SPDX-License-Identifier: Apache-2.0

package frwatch

import "time"

// version is how two contents of one file are told apart.
type version struct {
	size int64
	time time.Time
}

type tracked struct {
	seen    version // at the last look
	changed time.Time
	// tried: the version was read before it had settled, and was not whole.
	tried bool
	read  version // zero before the first reading
}

// Due is a file to read now.
type Due struct {
	File
	// Settled: it was not written for long enough. Else it may be torn, and is of use only
	// where it is whole.
	Settled bool
}

// Tracker says which files are due. It remembers the files of the last look and no others.
type Tracker struct {
	// Settle is how long a file must not change until it counts as written.
	Settle time.Duration
	// MaxAge is how old a file may be that is seen first; 0 is any age. Dumps of earlier
	// incidents lie about until they are overwritten.
	MaxAge time.Duration

	files map[string]*tracked
}

// Look takes what is there and returns what to read, and how many files it saw first and
// found to be of old.
func (t *Tracker) Look(now time.Time, files []File) (due []Due, old int) {
	next := make(map[string]*tracked, len(files))
	for _, f := range files {
		is := version{f.Size, f.Time}
		k := t.files[f.Path]
		if k == nil {
			k = &tracked{}
			if t.MaxAge > 0 && now.Sub(f.Time) > t.MaxAge {
				k.seen, k.read = is, is
				old++
			}
		}
		next[f.Path] = k
		if k.seen != is {
			k.seen, k.changed, k.tried = is, now, false
		}
		switch {
		case k.read == is:
		case now.Sub(k.changed) >= t.Settle:
			due = append(due, Due{File: f, Settled: true})
		case !k.tried && f.Size > 0:
			k.tried = true
			due = append(due, Due{File: f})
		}
	}
	t.files = next
	return due, old
}

// Done says that a file was read as it is, or will not be.
func (t *Tracker) Done(f *File) {
	if k := t.files[f.Path]; k != nil {
		k.read = version{f.Size, f.Time}
	}
}

// Unsettled reports whether a file is being written.
func (t *Tracker) Unsettled(path string) bool {
	k := t.files[path]
	return k != nil && k.read != k.seen
}
