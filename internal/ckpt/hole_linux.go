// SPDX-License-Identifier: Apache-2.0

package ckpt

// seekHole is SEEK_HOLE of lseek(2): the next place that no block of the disk backs.
const seekHole = 4

// Hole returns where the first hole of a file is. Data that was written and never reached
// the disk before a crash reads as zeros from a hole, or from an extent that was never
// written, which counts as one. Without a hole it is the size of the file, which is also
// what file systems say that know nothing of holes.
func (f dirFile) Hole() (int64, error) { return f.Seek(0, seekHole) }
