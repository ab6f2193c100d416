// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// missing skips the test, or fails it where every part is required.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("LOCKSTEP_E2E_REQUIRE") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// repoRoot is the folder that the published configurations are relative to.
func repoRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	return root
}

// built returns the path of a binary that make puts into bin/.
func built(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(repoRoot(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		missing(t, "find bin/%s: %v; `make e2e` builds it", name, err)
	}
	return path
}

// packaged returns the path of a program of the operating system.
func packaged(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "find %s: %v; it is the Debian package of the same name", name, err)
	}
	return path
}

// recording returns the folder of a recording in testdata/recordings.
func recording(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(repoRoot(t), "testdata", "recordings", name)
	if _, err := os.Stat(path); err != nil {
		missing(t, "find recording: %v", err)
	}
	return path
}

// sharedData returns a folder of real traces that are not part of the project:
// below LOCKSTEP_DATA, else below ../shared/data beside the repository.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("LOCKSTEP_DATA")
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "..", "shared", "data")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("find real traces: %v; LOCKSTEP_DATA names their folder", err)
	}
	return path
}

// given are the addresses that freePorts has returned: tests run in parallel, and one of
// them may not have bound its own yet.
var given sync.Map

// Ports below those that Linux gives to outgoing connections by default: such a connection, of another
// test, would take a port before its owner listens on it.
const firstPort, endPort = 20000, 32768

// freePorts returns addresses of the loopback interface on which nothing listens, each
// once in a run of the tests. A program that takes one before its owner does makes the
// test fail, not lie.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	addresses := make([]string, 0, n)
	var listeners []net.Listener
	for len(addresses) < n {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(endPort-firstPort))
		if _, taken := given.LoadOrStore(address, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		listeners, addresses = append(listeners, listener), append(addresses, address)
	}
	for _, listener := range listeners {
		require.NoError(t, listener.Close())
	}
	return addresses
}
