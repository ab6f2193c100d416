// SPDX-License-Identifier: Apache-2.0

package ckpt

import "github.com/lockstep-otel/lockstep/internal/pickle"

// Options say how to read. The zero value reads with default limits.
type Options struct {
	Limits Limits
	// WorldSize is how many ranks write a save, where the user says so; 0 where only the save
	// itself can.
	WorldSize int64
	// Verify reads every byte of files that hold checksums, and compares.
	Verify bool
	// IgnoreTimes takes no modification time for evidence.
	IgnoreTimes bool
}

// Limits bound what one reading may cost. Zero limits mean the defaults.
type Limits struct {
	Entries  int // of one folder
	Saves    int // newest first
	Domains  int // of one save
	Problems int // of one save, and of the root
	Pickle   pickle.Limits
	Text     int64 // bytes of a tracker or marker
	JSON     int64 // bytes of a JSON document
}

// DefaultLimits has room for the largest saves that are known of.
func DefaultLimits() Limits {
	return Limits{
		Entries:  400_000, // 131,072 files of 16,384 ranks with 8 domains, three times
		Saves:    4096,    // a save an hour for half a year
		Domains:  200_000, // the same 131,072
		Problems: 1000,    // a person reads ten
		Text:     4 << 10, // a number, or a tag that names a folder
		JSON:     64 << 20,
		Pickle:   pickle.DefaultLimits(),
	}
}

func (l Limits) or(def Limits) Limits {
	for _, p := range []struct {
		to  *int
		def int
	}{{&l.Entries, def.Entries}, {&l.Saves, def.Saves}, {&l.Domains, def.Domains}, {&l.Problems, def.Problems}} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	if l.Text <= 0 {
		l.Text = def.Text
	}
	if l.JSON <= 0 {
		l.JSON = def.JSON
	}
	l.Pickle = l.Pickle.Or(def.Pickle)
	return l
}
