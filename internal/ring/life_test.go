// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aRing writes a ring that nobody holds, with a heartbeat some time ago.
func aRing(t *testing.T, boot string, ago time.Duration) string {
	t.Helper()
	w := startWriter(t, "--threads", "1", "--records", "8", "--lanes", "2", "--capacity", "64")
	_, err := w.end()
	require.NoError(t, err)
	b, err := os.ReadFile(w.path)
	require.NoError(t, err)
	binary.NativeEndian.PutUint64(b[atState:], 1)
	binary.NativeEndian.PutUint64(b[atHeartbeat:], Now()-uint64(ago))
	binary.NativeEndian.PutUint64(b[atCreated:], Now()-uint64(ago))
	if boot == "" {
		b[atBootID]++
	}
	if boot == noBoot {
		clear(b[atBootID:][:16])
	}
	path := t.TempDir() + "/1-2-00000000.ring"
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// A living process may lose its lock for up to a second: the lock alone proves no
// death, and its ring is not removed.
func TestALostLockIsNoDeath(t *testing.T) {
	for _, tc := range []struct {
		name, boot string
		ago        time.Duration
		dead       bool
	}{
		{"just seen", BootID(), time.Second, false},
		{"silent", BootID(), DeathSilence + time.Second, true},
		{"of another boot", "", 0, true},
		{"of an unknown boot", noBoot, time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := aRing(t, tc.boot, tc.ago)
			r := openRing(t, path)
			alive, _, err := r.Alive()
			require.NoError(t, err)
			assert.False(t, alive, "nobody holds the lock")
			dead, err := r.Dead()
			require.NoError(t, err)
			assert.Equal(t, tc.dead, dead)
			info, err := os.Lstat(path)
			require.NoError(t, err)
			err = Remove(path, info, DeathSilence)
			if !tc.dead {
				require.ErrorContains(t, err, "heartbeat")
				assert.FileExists(t, path)
				return
			}
			require.NoError(t, err)
			assert.NoFileExists(t, path)
		})
	}
}

func TestRing_DeadAfter_IsHowLongItMustBeSilent(t *testing.T) {
	path := aRing(t, BootID(), time.Minute)
	for after, want := range map[time.Duration]bool{time.Second: true, time.Hour: false} {
		r, err := Open(path, Options{DeadAfter: after})
		require.NoError(t, err)
		dead, err := r.Dead()
		require.NoError(t, err)
		assert.Equal(t, want, dead, "%v", after)
		require.NoError(t, r.Close())
	}
}

func TestRemoveRefusesWhatIsHeldOrAnother(t *testing.T) {
	w := startWriter(t, "--threads", "1", "--records", "0", "--lanes", "2", "--capacity", "64", "--seconds", "60")
	info, err := os.Lstat(w.path)
	require.NoError(t, err)
	require.ErrorContains(t, Remove(w.path, info, 0), "lock")
	other, err := os.Lstat(t.TempDir())
	require.NoError(t, err)
	require.ErrorContains(t, Remove(w.path, other, 0), "another file")
	require.ErrorContains(t, Remove(w.path, nil, 0), "another file")
	assert.FileExists(t, w.path)
}

func TestNowPair(t *testing.T) {
	p := NowPair()
	assert.InDelta(t, float64(time.Now().UnixNano()), float64(p.Realtime), 1e9)
	assert.Less(t, p.Width, uint64(math.MaxUint32))
}

// What was overwritten before the ring was opened is no fault of this reader.
func TestLossBeforeOpeningIsApart(t *testing.T) {
	w := startWriter(t, "--threads", "1", "--records", "1000", "--lanes", "2", "--capacity", "64")
	_, err := w.end()
	require.NoError(t, err)
	r := openRing(t, w.path)
	c := r.Poll(LevelAll, func(int, *Record) {})
	assert.Equal(t, Counts{Read: 64, Lost: 936, Before: 936}, c)
	assert.Equal(t, uint64(936), r.Stats().Before)
}

func TestLastSeen(t *testing.T) {
	for kind, want := range map[Kind]uint64{KindOp: 11, KindStep: 3, KindScope: 3, KindAPI: 3, KindNet: 3, KindProxyStep: 9, KindKernelChannel: 6, 99: 0} {
		rec := Record{0, uint64(kind), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		assert.Equal(t, want, rec.LastSeen(), "%v", kind)
	}
}

// The kernel knows who holds a ring, whatever the ring says.
func TestHolder(t *testing.T) {
	w := startWriter(t, "--threads", "1", "--records", "0", "--lanes", "2", "--capacity", "64", "--seconds", "60")
	r := openRing(t, w.path)
	pid, ok := r.Holder()
	assert.True(t, ok)
	assert.Equal(t, w.cmd.Process.Pid, pid)
	require.NoError(t, w.cmd.Process.Kill())
	_ = w.cmd.Wait()
	_, ok = r.Holder()
	assert.False(t, ok)
	require.NoError(t, r.Close())
	_, ok = r.Holder()
	assert.False(t, ok)
}
