// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// A slot changes hands while it is copied: what is handed on is one operation.
func TestInFlightIsNeverTorn(t *testing.T) {
	w := startWriter(t, "--threads", "2", "--records", "0", "--slots", "2", "--capacity", "64", "--operations", "--seconds", "60")
	r := openRing(t, w.path)
	var slots []Slot
	seen := 0
	for until := time.Now().Add(time.Duration(tier.N(t, 100, 500)) * time.Millisecond); time.Now().Before(until); {
		for range 100 {
			slots = r.InFlight(slots[:0])
			requireWhole(t, slots)
			seen += len(slots)
		}
	}
	assert.Positive(t, seen)
}

// TestLapped: lanes of 64 records, writers stopped in mid-record at random.
// LOCKSTEP_LAPPED_MS sets for how many milliseconds, both kinds of lanes together.
func TestLapped(t *testing.T) {
	milliseconds := tier.NOr(t, "LOCKSTEP_LAPPED_MS", 300, 3000)
	for name, lanes := range map[string]string{"own lanes": "9", "shared lane": "1"} {
		t.Run(name, func(t *testing.T) { lappedRun(t, name, lanes, time.Duration(milliseconds)*time.Millisecond/2) })
	}
}

func lappedRun(t *testing.T, name, lanes string, d time.Duration) {
	t.Helper()
	w := startWriter(t, "--threads", "8", "--records", "0", "--seconds", "100000", "--stop-random",
		"--capacity", "64", "--lanes", lanes)
	r, c := openRing(t, w.path), newCheck()
	var again uint64
	for until := time.Now().Add(d); time.Now().Before(until); {
		r.Poll(LevelAll, c.take)
		again += r.Snapshot(func(_ int, rec *Record) {
			if !holds(rec) {
				c.torn++
			}
		}).Read
	}
	require.NoError(t, w.cmd.Process.Kill())
	_ = w.cmd.Wait() // says that it was killed
	drain(r, c.take)
	heads := []uint64{}
	for _, l := range r.Lanes(nil) {
		heads = append(heads, l.Head)
	}
	requireExact(t, r, heads)
	s := r.Stats()
	assert.Zero(t, c.torn)
	assert.Zero(t, c.backwards)
	assert.Positive(t, s.Read)
	t.Logf("lapped, %s, %v: read %d, lost %d, read again %d: torn %d, backwards %d",
		name, d, s.Read, s.Lost, again, c.torn, c.backwards)
}
