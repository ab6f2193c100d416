// SPDX-License-Identifier: Apache-2.0

package ckpt

// lostAndFound is the folder that ext4 makes in each new file system.
const lostAndFound = "lost+found"

// isBare reports whether a folder has nothing in it.
func isBare(f *folder) bool {
	return len(f.entries) == 0 || len(f.entries) == 1 && f.entries[0].Name() == lostAndFound && f.entries[0].IsDir()
}
