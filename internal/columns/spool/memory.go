// SPDX-License-Identifier: Apache-2.0

package spool

import "time"

// bound closes files until what is in memory is within its limit.
func (s *Spool) bound(now time.Time) {
	for s.Memory() > s.config.MaxMemory || len(s.open) > maxOpen {
		var largest *openFile
		for _, f := range s.open {
			if largest == nil || f.memory() > largest.memory() {
				largest = f
			}
		}
		if largest == nil {
			return
		}
		s.close(largest, now)
	}
}

// maxOpen bounds the open files: each has buffers of its own.
const maxOpen = 64

// Memory returns about how many bytes of memory the operations take that are not on the disk.
func (s *Spool) Memory() (n int) {
	for _, f := range s.open {
		n += f.memory()
	}
	for _, p := range s.pending {
		n += len(p.content)
	}
	return n
}

// Waiting returns how many operations are not on the disk.
func (s *Spool) Waiting() (n int64) {
	for _, f := range s.open {
		n += f.writer.Rows()
	}
	for _, p := range s.pending {
		n += p.rows
	}
	return n
}
