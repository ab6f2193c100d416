// SPDX-License-Identifier: Apache-2.0

package testdata

import (
	"os"
	"syscall"
	"testing"
)

// Program writes a file that can be run at once. A process that another goroutine starts
// while the file is open for writing would inherit it, and until that process runs its own
// program the kernel would refuse to run the file: "text file busy".
func Program(tb testing.TB, path, text string) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		tb.Fatalf("write program: %v", err)
	}
}
