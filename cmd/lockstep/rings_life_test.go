// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Places in a ring's header: docs/format/ring.md.
const (
	headerBoot      = 24
	headerCreated   = 56
	headerHeartbeat = 88
)

// unlockedRing copies the ring of a living process under a name: nobody holds the
// lock of the copy.
func unlockedRing(t *testing.T, name string, change func(b []byte)) (path string) {
	t.Helper()
	dir := t.TempDir()
	holdRing(t, dir)
	rings, err := filepath.Glob(filepath.Join(dir, "*.ring"))
	require.NoError(t, err)
	require.Len(t, rings, 1)
	b, err := os.ReadFile(rings[0])
	require.NoError(t, err)
	change(b)
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func ringsSay(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	status, stdout, stderr := call(append([]string{"rings"}, args...)...)
	require.Equal(t, exitNothing, status, stderr)
	return stdout
}

func setWord(b []byte, at int, v uint64) { binary.NativeEndian.PutUint64(b[at:], v) }

// A process that closes all its descriptors loses the lock and lives on.
func TestRingsTellALostLockFromADeath(t *testing.T) {
	path := unlockedRing(t, "1-2-00000000.ring", func([]byte) {})
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := file.WriteAt(binary.NativeEndian.AppendUint64(nil, ring.Now()), headerHeartbeat)
		require.NoError(c, err)
		assert.Contains(c, ringsSay(t, path), "  no lock, but a heartbeat ")
	}, 20*time.Second, time.Millisecond)
}

func TestRingsOfAnotherBoot(t *testing.T) {
	path := unlockedRing(t, "1-2-00000000.ring", func(b []byte) {
		b[headerBoot]++
		setWord(b, headerHeartbeat, binary.NativeEndian.Uint64(b[headerCreated:])+uint64(time.Hour))
	})
	said := ringsSay(t, path)
	assert.Contains(t, said, "the process died, last heartbeat of another boot,")
	assert.Regexp(t, `(?m)^  (59m|1h0m0s)\S* +AllReduce  41 .* for (59m|1h0m0s)`, said, "ages are up to its last heartbeat")
}

func TestRingsWithAHeartbeatInTheFuture(t *testing.T) {
	path := unlockedRing(t, "1-2-00000000.ring", func(b []byte) {
		setWord(b, headerHeartbeat, ring.Now()+uint64(time.Hour))
	})
	assert.Contains(t, ringsSay(t, path), "last heartbeat in the future,")
}

func TestRingLifeWords(t *testing.T) {
	beat := uint64(time.Hour)
	at := func(silent time.Duration, l ringLife) *ringLife {
		l.beat, l.now, l.silent = beat, beat+uint64(silent), silent
		return &l
	}
	for want, l := range map[string]*ringLife{
		"live, last heartbeat 900ms ago":                                                        at(900*time.Millisecond, ringLife{held: true}),
		"live, but no heartbeat for 6.0s: stopped, or starved of CPU":                           at(6*time.Second, ringLife{held: true}),
		"process 4711 is stopped by a signal (kill -CONT lets it go on), last heartbeat 6s ago": at(6*time.Second, ringLife{held: true, pid: 4711, process: model.ProcessStopped}),
		"process 4711 is stopped by a debugger, last heartbeat 1s ago":                          at(time.Second, ringLife{held: true, pid: 4711, process: model.ProcessTraced}),
		"process 4711 is frozen with its cgroup, last heartbeat 2s ago":                         at(2*time.Second, ringLife{held: true, pid: 4711, process: model.ProcessFrozen}),
		"live, last heartbeat of another boot":                                                  at(6*time.Second, ringLife{held: true, otherBoot: true}),
		"the process died, last heartbeat 6s ago":                                               at(6*time.Second, ringLife{dead: true}),
		"no lock, but a heartbeat 96ms ago: alive, or just died":                                at(96*time.Millisecond, ringLife{}),
		"closed, last heartbeat 6s ago":                                                         at(6*time.Second, ringLife{closed: true}),
	} {
		assert.Equal(t, want, l.words())
	}
}

func TestAgesOfTheDeadEndWithThem(t *testing.T) {
	open := []ring.Slot{{Last: 70}, {}}
	open[1].Record[6] = 80
	assert.Equal(t, uint64(80), (&ringLife{dead: true, beat: 60}).until(open))
	assert.Equal(t, uint64(90), (&ringLife{closed: true, beat: 90}).until(open))
	assert.Greater(t, (&ringLife{held: true, beat: 90}).until(open), uint64(90))
}

// A file's name is its maker's.
func TestRingsPrintNoControlCharacters(t *testing.T) {
	path := unlockedRing(t, "a\x1b[2J\u009b.ring", func([]byte) {})
	const name = "b\x1b]0;x\x07.ring"
	fake := filepath.Join(filepath.Dir(path), name)
	require.NoError(t, os.WriteFile(fake, bytes.Repeat([]byte{7}, 8192), 0o600))
	status, stdout, stderr := call("rings", filepath.Dir(path))
	require.Equal(t, exitNothing, status, stderr)
	assert.Contains(t, stdout, "a�[2J�.ring\n")
	assert.Contains(t, stderr, "b�]0;x�.ring")
	records := ringsSay(t, "--records", path)
	for _, said := range []string{stdout, stderr, records} {
		assert.NotContains(t, said, "\x1b")
		assert.NotContains(t, said, "\u009b")
	}
}
