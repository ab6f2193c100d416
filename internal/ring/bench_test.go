// SPDX-License-Identifier: Apache-2.0

package ring

import "testing"

// benchRing is a ring of full lanes of the default capacity.
func benchRing(b *testing.B, lanes int) (*Ring, uint64) {
	b.Helper()
	const capacity = 16384
	m := newImage(lanes, capacity)
	for lane := range lanes {
		m.emit(lane, 0, capacity, LevelCollectives)
	}
	return m.open(b), uint64(lanes) * capacity
}

func rate(b *testing.B, records uint64) {
	b.Helper()
	b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
}

// BenchmarkPoll reads all lanes in each round, on one core. One lane, 2 MiB,
// stays in its caches; the 64 MiB that a producer makes by default do not.
func BenchmarkPoll(b *testing.B) {
	b.Run("one lane", func(b *testing.B) { benchPoll(b, 1, LevelAll) })
	b.Run("32 lanes", func(b *testing.B) { benchPoll(b, 32, LevelAll) })
	b.Run("32 lanes, skipped", func(b *testing.B) { benchPoll(b, 32, LevelSummary) })
}

func benchPoll(b *testing.B, lanes int, level Level) {
	b.Helper()
	r, each := benchRing(b, lanes)
	b.ReportAllocs()
	b.ResetTimer()
	var bytes, total uint64
	for range b.N {
		for i := range r.lanes {
			r.lanes[i].cursor = 0
		}
		c := r.Poll(level, func(_ int, rec *Record) { bytes += rec.Bytes() })
		total += c.Read + c.Skipped
	}
	if total != uint64(b.N)*each || bytes != 0 {
		b.Fatalf("got %d records; want %d", total, uint64(b.N)*each)
	}
	rate(b, total)
}

// BenchmarkInFlight copies a table of the default size, one slot in 64 open.
func BenchmarkInFlight(b *testing.B) {
	m := newImageOf(2, 64, func(counts *[sections + 1]uint64) { counts[sSlots] = 4096 })
	for i := uint64(0); i < 4096; i += 64 {
		m.set(m.offset[sSlots]+i*slotWords*8, 1<<8|uint64(SlotStarted))
	}
	r := m.open(b)
	slots := make([]Slot, 0, 64)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		slots = r.InFlight(slots[:0])
	}
	if len(slots) != 64 {
		b.Fatalf("got %d slots; want 64", len(slots))
	}
}
