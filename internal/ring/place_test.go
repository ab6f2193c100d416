// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResume_ReadsAgainFromAPlaceAndCountsOnce(t *testing.T) {
	m := newImage(3, 8)
	m.emit(1, 0, 7, LevelSummary)
	m.emit(2, 0, 3, LevelSummary)
	r := m.open(t)
	require.NoError(t, r.Resume([]Place{{}, {From: 2, Known: 4}, {From: 2, Known: 2}}))
	read, c := numbers(r, LevelAll)
	assert.Equal(t, [][]uint64{nil, {2, 3}, nil}, read, "what was known")
	assert.Equal(t, Counts{Reread: 2}, c)
	read, c = numbers(r, LevelAll)
	assert.Equal(t, [][]uint64{nil, {4, 5, 6}, {2}}, read)
	assert.Equal(t, Counts{Read: 4}, c)
	assert.Equal(t, []uint64{0, 7, 3}, r.Cursors(nil))
	assert.Zero(t, r.MissingUntil())
}

// What was overwritten is gone where it had been counted, and lost where it had not; none of it
// was overwritten before a reader came.
func TestResume_OverwrittenRecords_AreCountedOnce(t *testing.T) {
	m := newImage(2, 8)
	m.emit(1, 0, 24, LevelSummary)
	m.set(m.word(1, 16, 6), 700) // the oldest that is left
	r := m.open(t)
	require.NoError(t, r.Resume([]Place{{}, {From: 2, Known: 5}}))
	read, c := numbers(r, LevelAll)
	assert.Nil(t, read[1])
	assert.Equal(t, Counts{Gone: 3, Lost: 11}, c)
	assert.Equal(t, uint64(math.MaxUint64), r.MissingUntil(), "nothing follows yet")
	read, c = numbers(r, LevelAll)
	assert.Equal(t, []uint64{16, 17, 18, 19, 20, 21, 22, 23}, read[1])
	assert.Equal(t, Counts{Read: 8}, c)
	assert.Equal(t, uint64(700), r.MissingUntil())
	assert.Equal(t, uint64(5)+r.Stats().Lost+r.Stats().Read, r.Lanes(nil)[1].Head)
}

func TestPoll_TellsUpToWhenRecordsMayBeMissing(t *testing.T) {
	m := newImage(2, 8)
	r := m.open(t)
	m.emit(1, 0, 20, LevelSummary)
	m.set(m.word(1, 12, 6), 500) // the first that is left: an operation enqueued then
	m.set(m.word(1, 13, 6), 900)
	_, c := numbers(r, LevelAll)
	assert.Equal(t, uint64(12), c.Lost)
	assert.Equal(t, uint64(500), r.MissingUntil())
	_, _ = numbers(r, LevelAll)
	assert.Zero(t, r.MissingUntil())
}

// A lane may go on with records that the reader does not ask for, and with nothing else.
func TestPoll_RecordBehindALossIsSkipped_TellsItsTime(t *testing.T) {
	m := newImage(3, 8)
	r := m.open(t)
	m.emit(1, 0, 20, LevelAll)
	m.set(m.word(1, 12, 6), 500)
	m.set(m.word(1, 13, 6), 900)
	read, c := numbers(r, LevelSummary)
	assert.Nil(t, read[1])
	assert.Equal(t, Counts{Lost: 12, Skipped: 8}, c)
	assert.Equal(t, uint64(500), r.MissingUntil())
	m.emit(1, 20, 22, LevelAll)
	m.emit(2, 0, 2, LevelSummary)
	read, _ = numbers(r, LevelSummary)
	assert.Equal(t, []uint64{0, 1}, read[2])
	assert.Zero(t, r.MissingUntil())
}

func TestResume_PlacesOfAnotherRing_AreRefused(t *testing.T) {
	m := newImage(2, 8)
	m.emit(1, 0, 3, LevelSummary)
	r := m.open(t)
	for name, places := range map[string][]Place{
		"lanes":       {{}},
		"head":        {{}, {From: 4, Known: 4}},
		"known":       {{}, {From: 2, Known: 1}},
		"of no lane":  {{From: 0, Known: 1}, {}},
		"beyond head": {{}, {From: 0, Known: math.MaxUint64}},
	} {
		assert.ErrorContains(t, r.Resume(places), "resume ring", name)
	}
	read, c := numbers(r, LevelAll)
	assert.Equal(t, []uint64{0, 1, 2}, read[1])
	assert.Equal(t, Counts{Read: 3}, c)
}
