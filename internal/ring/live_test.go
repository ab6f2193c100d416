// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// drain polls until nothing is left.
func drain(r *Ring, fn func(int, *Record)) {
	for {
		if r.Poll(LevelAll, fn) == (Counts{}) {
			return
		}
	}
}

// requireExact compares each lane's counts with what its producer wrote.
func requireExact(t *testing.T, r *Ring, produced []uint64) {
	t.Helper()
	lanes := r.Lanes(nil)
	require.Len(t, lanes, len(produced))
	for i, l := range lanes {
		require.Equal(t, produced[i], l.Read+l.Lost+l.Skipped, "lane %d", i)
		require.Zero(t, l.Corrupt, "lane %d", i)
	}
}

// TestLossIsExact: 8 threads at full speed, a reader slower than they are.
// LOCKSTEP_RUNS sets how often.
func TestLossIsExact(t *testing.T) {
	runs := tier.NOr(t, "LOCKSTEP_RUNS", 1, 3)
	var read, lost uint64
	for range runs {
		c := lossRun(t, "9")
		read, lost = read+c.Read, lost+c.Lost
	}
	assert.Positive(t, read)
	assert.Positive(t, lost, "the reader was not slow enough to show anything")
	t.Logf("exact loss: %d of %d runs: produced %d = read %d + lost %d", runs, runs, read+lost, read, lost)
}

// With 4 lanes, 5 of the 8 threads share one, on which a record may be dropped.
func TestLossIsExactOnTheSharedLane(t *testing.T) {
	for range tier.N(t, 1, 2) {
		lossRun(t, "4")
	}
}

func lossRun(t *testing.T, lanes string) Stats {
	t.Helper()
	w := startWriter(t, "--threads", "8", "--records", "30000", "--lanes", lanes, "--capacity", "1024")
	r, c := openRing(t, w.path), newCheck()
	c.spin = 100
	var s summary
	done := make(chan error, 1)
	go func() {
		var err error
		s, err = w.end()
		done <- err
	}()
	for running := true; running; {
		r.Poll(LevelAll, c.take)
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		default:
		}
	}
	drain(r, c.take)
	requireExact(t, r, s.Produced)
	require.Zero(t, c.torn)
	require.Zero(t, c.backwards)
	emitted := uint64(0)
	for _, n := range s.Emitted {
		emitted += n
	}
	require.Equal(t, uint64(8*30000), emitted)
	own := uint64(0)
	for _, n := range s.Produced[1:] {
		own += n
	}
	require.Equal(t, emitted, own+s.Dropped.SharedLane+s.Dropped.SharedBusy, "drops are counted")
	require.NoError(t, r.Close())
	return r.Stats()
}

// TestKilled: a process killed at any instant leaves no torn record, and what it
// had open is seen. LOCKSTEP_RUNS sets how often.
func TestKilled(t *testing.T) {
	runs := tier.NOr(t, "LOCKSTEP_RUNS", 2, 5)
	var read uint64
	open := 0
	for range runs {
		n, o := killRun(t)
		read, open = read+n, open+o
	}
	t.Logf("killed in mid-write: %d of %d runs: %d records read, none torn; the open operation seen each time, %d of writers beside it",
		runs, runs, read, open)
}

func killRun(t *testing.T) (read uint64, open int) {
	t.Helper()
	// 4 of the 6 threads have lanes of their own; the others share one.
	w := startWriter(t, "--threads", "6", "--records", "0", "--lanes", "5", "--capacity", "256",
		"--operations", "--open", "1", "--stop-random", "--seconds", "60")
	r, c := openRing(t, w.path), newCheck()
	alive, closed, err := r.Alive()
	require.NoError(t, err)
	require.True(t, alive)
	require.False(t, closed)
	var slots []Slot
	for until := time.Now().Add(time.Duration(1+rand.IntN(30)) * time.Millisecond); time.Now().Before(until); {
		slots = r.InFlight(slots[:0])
		requireWhole(t, slots)
		r.Poll(LevelAll, c.take)
	}
	require.NoError(t, w.cmd.Process.Kill())
	_ = w.cmd.Wait() // says that it was killed
	alive, closed, err = r.Alive()
	require.NoError(t, err)
	require.False(t, alive, "the kernel gave its lock back")
	require.False(t, closed)
	drain(r, c.take)
	require.Zero(t, c.torn)
	require.Zero(t, c.backwards)
	heads := []uint64{}
	for _, l := range r.Lanes(nil) {
		heads = append(heads, l.Head)
	}
	requireExact(t, r, heads)
	slots = r.InFlight(slots[:0])
	requireOpenOperation(t, r, slots)
	requireOpenOrRecorded(t, slots, c)
	require.NoError(t, r.Close())
	return r.Stats().Read, len(slots) - 1
}

// requireWhole checks the copies of writers' slots: torn ones would not hold.
func requireWhole(t *testing.T, slots []Slot) {
	t.Helper()
	for i := range slots {
		s := &slots[i]
		if s.Record.Comm() == 0 { // of a writing thread
			require.True(t, holds(&s.Record), "slot %d is torn: %v", s.Index, s)
			require.Equal(t, s.Record[3]+1, s.Order)
		}
	}
}

// requireOpenOrRecorded: a thread writes a record before it frees the slot, so
// its open operation is the last that it recorded or the next one.
func requireOpenOrRecorded(t *testing.T, slots []Slot, c *check) {
	t.Helper()
	for i := range slots {
		rec := &slots[i].Record
		for lane := uint64(1); lane < 5; lane++ { // on the shared lane records may be dropped
			if last := c.last[[2]uint64{lane, rec[2]}]; last > 0 && rec.Comm() == 0 {
				require.Contains(t, []uint64{last, last + 1}, rec[3]+1)
			}
		}
	}
}

func requireOpenOperation(t *testing.T, r *Ring, slots []Slot) {
	t.Helper()
	requireWhole(t, slots)
	var found *Slot
	for i := range slots {
		if slots[i].Record.Comm() != 0 {
			require.Nil(t, found)
			found = &slots[i]
		}
	}
	require.NotNil(t, found, "the open operation")
	require.Equal(t, SlotEnqueued, found.State)
	require.Equal(t, uint64(1), found.Order)
	require.Equal(t, "AllReduce", r.String(uint16(found.Record.Func())))
	require.Equal(t, found.Record.EnqueueBegin(), found.Last)
	require.Less(t, found.Last, Now())
	comms := r.Comms(nil)
	require.Len(t, comms, 2, "and the one for those without room")
	require.Equal(t, found.Record.Comm(), comms[1].Index)
	require.Equal(t, Comm{
		Index: comms[1].Index, Hash: 0x1234, Ranks: 2, Rank: 0, Nodes: 1, ABI: 4,
		Created: comms[1].Created, Name: "test",
	}, comms[1])
	frontiers := r.Frontiers(nil)
	require.Len(t, frontiers, 1)
	require.Equal(t, Frontier{
		Comm: found.Record.Comm(), Func: found.Record.Func(),
		Enqueued: Mark{Known: true, Seq: 0, At: found.Last}, Open: 1, Total: 1,
	}, frontiers[0])
}

// A record of the shared lane that a living writer has not finished is waited
// for, and the records after it too.
func TestSharedLaneWaitsForTheLiving(t *testing.T) {
	w := startWriter(t, "--threads", "1", "--records", "10", "--shared", "--lanes", "2", "--hold")
	require.Equal(t, "written", w.line(t))
	r := openRing(t, w.path)
	file, err := os.OpenFile(w.path, os.O_RDWR, 0)
	require.NoError(t, err)
	m := &image{capacity: r.Header().Capacity, file: file, b: make([]byte, r.Header().FileSize)}
	defer func() { _ = file.Close() }()
	m.offset[sRecords] = r.shape.section[sRecords].offset
	m.set(m.word(0, 4, 0), writing|4)
	read, _ := numbers(r, LevelAll)
	assert.Equal(t, []uint64{0, 1, 2, 3}, read[0])
	m.set(m.word(0, 4, 0), 4+1)
	read, _ = numbers(r, LevelAll)
	assert.Equal(t, []uint64{4, 5, 6, 7, 8, 9}, read[0], "it came in time")

	again := openRing(t, w.path)
	m.set(m.word(0, 4, 0), writing|4)
	_, _ = numbers(again, LevelAll)
	again.lanes[0].since = time.Now().Add(-2 * patience)
	read, c := numbers(again, LevelAll)
	assert.Equal(t, []uint64{5, 6, 7, 8, 9}, read[0], "patience ends")
	assert.Equal(t, Counts{Read: 5, Lost: 1}, c)
}

func TestAProcessOfItsOwn(t *testing.T) {
	w := startWriter(t, "--threads", "2", "--records", "10", "--hold")
	r := openRing(t, w.path)
	require.Equal(t, "written", w.line(t))
	h := r.Header()
	assert.Equal(t, uint64(w.cmd.Process.Pid), h.PID)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	assert.Equal(t, string(boot), h.BootID+"\n")
	assert.Positive(t, h.StartTime)
	assert.InDelta(t, Now(), r.Heartbeat(), 3e9)
	pairs := r.ClockPairs(nil)
	require.NotEmpty(t, pairs)
	assert.InDelta(t, time.Now().UnixNano(), pairs[0].Realtime, 10e9)
	_, marked := r.Step()
	assert.False(t, marked)
	assert.Equal(t, LevelCollectives, r.Level(), "the default")
	alive, closed, err := r.Alive()
	require.NoError(t, err)
	assert.Equal(t, []bool{true, false}, []bool{alive, closed})
	require.NoError(t, r.SetLevel(LevelAll))
	assert.Eventually(t, func() bool { return r.Level() == LevelAll }, 5*time.Second, 10*time.Millisecond)
	require.NoError(t, w.input.Close())
	_, err = w.end()
	require.NoError(t, err)
	alive, closed, err = r.Alive()
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true}, []bool{alive, closed})
	found, refused := Discover(filepath.Dir(w.path), Options{})
	assert.Equal(t, []string{w.path}, found)
	assert.Empty(t, refused)
}
