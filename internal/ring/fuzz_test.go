// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fullImage has something in every table.
func fullImage() *image {
	m := newImage(3, 8)
	m.emit(0, 0, 5, LevelSummary)
	m.emit(1, 0, 30, LevelSummary)
	m.emit(2, 0, 3, LevelAll)
	m.text(1, "AllReduce")
	m.set(m.offset[sComms], entryLive)
	m.set(m.offset[sGPUs]+gpuWords*8, entryLive)
	m.set(m.offset[sFrontiers], 1|1<<32)
	m.set(m.offset[sSlots], 1<<8|uint64(SlotStarted))
	m.set(atPairs+24, 1)
	return m
}

// editSize is one edit of FuzzOpen's input: where, and which word to put there.
const editSize = 12

func edit(at uint64, value uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(at))
	return binary.LittleEndian.AppendUint64(b, value)
}

// useAll does all that a reader does, and returns how many calls of callbacks
// and entries came of it.
func useAll(r *Ring) (n int) {
	count := func(_ int, rec *Record) {
		n++
		rec.StepMark()
		rec.Scope()
		rec.ProxyStep()
		rec.KernelChannel()
		rec.API()
		rec.Net()
		rec.Kernel()
		rec.Clock()
		rec.Link()
		rec.Resume()
		rec.Fingerprint()
		rec.LastSeen()
		rec.Waits()
		_, _ = rec.ProxyStop()
		_ = r.String(uint16(rec.Func()))
		_ = rec.Kind().String()
	}
	slots := r.InFlight(nil)
	for i := range slots {
		_, _ = slots[i].Proxy.String(), slots[i].State.String()
	}
	n += len(slots) + len(r.Frontiers(nil)) + len(r.Comms(nil)) + len(r.GPUs(nil)) + len(r.ClockPairs(nil)) + len(r.Lanes(nil))
	r.Poll(LevelCollectives, count)
	r.Snapshot(count)
	r.Drops()
	r.Heartbeat()
	_ = r.Witnesses().String()
	state, _ := r.CUPTI()
	_ = state.String()
	n += len(r.OpenScopes(nil))
	_, _, _ = r.Alive()
	return n
}

// mostUsed is what useAll may return at most: the image's entries, each record
// twice, every fixed table, and the scopes of the two lanes that have owners.
const mostUsed = 4 + 4 + 4 + 2 + clockPairs + 3 + 2 + 2*3*8

// FuzzOpen edits words of a valid ring, half of the edits before it is opened,
// half while it is read, and then truncates its file: whatever the words, an
// *Error or bounded work.
func FuzzOpen(f *testing.F) {
	m := fullImage()
	f.Add([]byte{}, uint32(0), uint32(0))
	f.Add([]byte{}, uint32(page), uint32(0))
	for kind := 1; kind <= sections; kind++ {
		for at := sectionAt(kind); at < sectionAt(kind)+sectionSize; at += 8 {
			f.Add(edit(at, ^uint64(0)), uint32(0), uint32(0))
			f.Add(edit(at, 0), uint32(0), uint32(0))
		}
	}
	head := m.offset[sLanes] + laneWords*8 + laneHead*8
	for _, v := range []uint64{0, 29, 31, 1 << 40, 1 << 63, ^uint64(0)} {
		f.Add(append(edit(head, 30), edit(head, v)...), uint32(0), uint32(0))
		f.Add(edit(m.word(0, 2, 0), writing|v), uint32(0), uint32(0))
		f.Add(edit(m.offset[sSlots], v), uint32(0), uint32(0))
		scope := m.offset[sLanes] + laneWords*8
		f.Add(append(edit(scope, v), edit(scope+laneScope*8, v)...), uint32(0), uint32(0))
		f.Add(append(edit(m.word(1, 29, 1), 8|v<<16), edit(atCUPTI, v)...), uint32(0), uint32(0))
	}
	f.Fuzz(func(t *testing.T, edits []byte, size, cut uint32) {
		m := fullImage()
		n := len(edits) / editSize
		for i := range n / 2 {
			applyEdit(m, edits[i*editSize:])
		}
		if size != 0 && uint64(size) < uint64(len(m.b)) {
			m.b = m.b[:size]
		}
		r, err := Open(saveFuzzed(t, m), Options{})
		if err != nil {
			var refused *Error
			require.ErrorAs(t, err, &refused)
			return
		}
		defer func() { assert.NoError(t, r.Close()) }()
		require.LessOrEqual(t, useAll(r), mostUsed)
		for i := n / 2; i < n; i++ {
			applyEdit(m, edits[i*editSize:])
		}
		require.LessOrEqual(t, useAll(r), mostUsed)
		require.NoError(t, r.Err())
		require.NoError(t, m.file.Truncate(int64(cut)%int64(len(m.b)+1)))
		require.LessOrEqual(t, useAll(r), mostUsed)
	})
}

func applyEdit(m *image, e []byte) {
	at := uint64(binary.LittleEndian.Uint32(e))
	if n := uint64(len(m.b)); n >= 8 {
		m.set(at%(n-7), binary.LittleEndian.Uint64(e[4:]))
	}
}

func saveFuzzed(t *testing.T, m *image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "1-2-00000003.ring")
	require.NoError(t, os.WriteFile(path, m.b, 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	m.file = file
	return path
}
