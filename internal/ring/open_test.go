// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sectionAt(kind int) uint64 { return uint64(atSections + (kind-1)*sectionSize) }

func TestOpenRefusesContent(t *testing.T) {
	const capacity = 8
	cases := map[string]struct {
		change func(m *image)
		field  string
		want   string // in the message
	}{
		"no ring":             {func(m *image) { m.set(atMagic, 1) }, "magic", "0x474e495254534b4c"},
		"later version":       {func(m *image) { m.set32(atVersion, 2) }, "version", "got 2; want 1, the only version"},
		"version 0":           {func(m *image) { m.set32(atVersion, 0) }, "version", "got 0"},
		"header size":         {func(m *image) { m.set32(atHeaderSize, 512) }, "header_size", "want 4096"},
		"size in header":      {func(m *image) { m.set(atFileSize, 1<<40) }, "file_size", "1099511627776 bytes in the header"},
		"pid 0":               {func(m *image) { m.set(atPID, 0) }, "pid", "got 0; want 1 to 4294967295"},
		"pid of 33 bits":      {func(m *image) { m.set(atPID, 1<<32) }, "pid", "got 4294967296; want 1 to"},
		"no header":           {func(m *image) { m.b = m.b[:100] }, "file", "100 bytes"},
		"empty":               {func(m *image) { m.b = nil }, "file", "0 bytes"},
		"kind 0":              {func(m *image) { m.set32(sectionAt(sComms), 0) }, "sections[2].kind", "1 to 8"},
		"kind 9":              {func(m *image) { m.set32(sectionAt(sComms), 9) }, "sections[2].kind", "got 9"},
		"kind twice":          {func(m *image) { m.set32(sectionAt(sComms), sStrings) }, "sections[2].kind", "each kind once"},
		"entry size":          {func(m *image) { m.set32(sectionAt(sSlots)+4, 128) }, "slots.entry_size", "want 256"},
		"in the header":       {func(m *image) { m.set(sectionAt(sSlots)+8, 0) }, "slots.offset", "after the header"},
		"misaligned":          {func(m *image) { m.set(sectionAt(sLanes)+8, m.offset[sLanes]+4) }, "lanes.offset", "multiple of 64"},
		"control misaligned":  {func(m *image) { m.set(sectionAt(sControl)+8, page+64) }, "control.offset", "multiple of 4096"},
		"two controls":        {func(m *image) { m.set(sectionAt(sControl)+16, 2) }, "control.count", "1 to 1"},
		"overlap":             {func(m *image) { m.set(sectionAt(sComms)+8, m.offset[sStrings]) }, "comms.offset", "no overlap with strings"},
		"offset outside":      {func(m *image) { m.set(sectionAt(sGPUs)+8, 1<<20) }, "gpus.count", "an end within"},
		"offset overflows":    {func(m *image) { m.set(sectionAt(sGPUs)+8, ^uint64(0)&^4095) }, "gpus.count", "an end within"},
		"no strings":          {func(m *image) { m.set(sectionAt(sStrings)+16, 0) }, "strings.count", "1 to 65536"},
		"strings beyond u16":  {func(m *image) { m.set(sectionAt(sStrings)+16, 1<<16+1) }, "strings.count", "got 65537"},
		"slots beyond handle": {func(m *image) { m.set(sectionAt(sSlots)+16, 1<<16) }, "slots.count", "1 to 65535"},
		"no lanes":            {func(m *image) { m.set(sectionAt(sLanes)+16, 0) }, "lanes.count", "got 0"},
		"huge lanes":          {func(m *image) { m.set(sectionAt(sLanes)+16, 1<<60) }, "lanes.count", "1 to 4096"},
		"no records":          {func(m *image) { m.set(sectionAt(sRecords)+16, 0) }, "records.count", "got 0"},
		"records overflow":    {func(m *image) { m.set(sectionAt(sRecords)+16, 1<<57) }, "records.count", "1 to"},
		"capacity beyond file": {
			func(m *image) { m.set(sectionAt(sRecords)+16, 2*capacity*1024) }, "records.count", "an end within",
		},
		"lanes into records": {
			func(m *image) { m.set(sectionAt(sLanes)+16, 64) }, "records.offset", "no overlap with lanes",
		},
		"capacity 7":        {func(m *image) { m.set(sectionAt(sRecords)+16, 14) }, "capacity", "got 7; want a power of two"},
		"not a whole lane":  {func(m *image) { m.set(sectionAt(sRecords)+16, 15) }, "records.count", "a multiple of the 2 lanes"},
		"fewer than lanes":  {func(m *image) { m.set(sectionAt(sRecords)+16, 1) }, "records.count", "a multiple"},
		"header of garbage": {func(m *image) { fill(m.b[atSections:atDrops], 0xa5) }, "sections[0].kind", "got"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newImage(2, capacity)
			c.change(m)
			path := m.save(t)
			_, err := Open(path, Options{})
			var refused *Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, path, refused.Path)
			assert.Equal(t, c.field, refused.Field)
			assert.Contains(t, err.Error(), c.want)
			assert.Contains(t, err.Error(), path)
		})
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func TestOpenRefusesTruncatedAtEverySection(t *testing.T) {
	m := newImage(2, 8)
	for kind := 1; kind <= sections; kind++ {
		for _, size := range []uint64{m.offset[kind], m.offset[kind] + 8} {
			short := newImage(2, 8)
			short.b = short.b[:size]
			_, err := Open(short.save(t), Options{})
			var refused *Error
			require.ErrorAs(t, err, &refused, "cut at %d", size)
			assert.Equal(t, "file_size", refused.Field)

			// A header that says so too still does not reach beyond the file.
			liar := newImage(2, 8)
			liar.set(atFileSize, size)
			liar.b = liar.b[:size]
			_, err = Open(liar.save(t), Options{})
			require.ErrorAs(t, err, &refused, "cut at %d", size)
			assert.Contains(t, err.Error(), "an end within the file's")
		}
	}
}

func TestOpenRefusesFiles(t *testing.T) {
	dir := t.TempDir()
	good := newImage(1, 8).save(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Symlink(good, at("link.ring")))
	require.NoError(t, syscall.Mkfifo(at("fifo.ring"), 0o600))
	require.NoError(t, os.Mkdir(at("directory.ring"), 0o700))
	cases := map[string]struct {
		path    string
		options Options
		want    string
	}{
		"symbolic link": {at("link.ring"), Options{}, "got a symbolic link; want a regular file"},
		"fifo":          {at("fifo.ring"), Options{}, "got a FIFO"},
		"directory":     {at("directory.ring"), Options{}, "got a directory"},
		"device":        {"/dev/null", Options{}, "got a device"},
		"missing":       {at("missing.ring"), Options{}, "no such file"},
		"foreign owner": {good, Options{Owner: func(uint32, uint32) bool { return false }}, "owner: got user"},
		"too large":     {good, Options{MaxFileBytes: page}, "want at most 4096"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.path, c.options)
			var refused *Error
			require.ErrorAs(t, err, &refused)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

func TestOpenWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	path := newImage(1, 8).save(t)
	require.NoError(t, os.Chmod(path, 0))
	_, err := Open(path, Options{})
	require.ErrorIs(t, err, os.ErrPermission)
	assert.Contains(t, err.Error(), path)
}

func TestTrusted(t *testing.T) {
	const stranger = 1<<31 - 7
	own, group := uint32(os.Geteuid()), uint32(os.Getegid())
	assert.True(t, trusted(own, stranger))
	assert.True(t, trusted(0, stranger), "root")
	assert.True(t, trusted(stranger, group))
	assert.False(t, trusted(stranger, stranger))
}

func TestOpenRefusesAForeignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	path := newImage(1, 8).save(t)
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o1777))
	require.NoError(t, os.Chown(path, 12345, 12345))
	_, err := Open(path, Options{})
	require.ErrorContains(t, err, "owner: got user 12345, group 12345; want our own user, root, a group that we belong to")
	require.NoError(t, os.Chown(path, 12345, os.Getegid()))
	openRing(t, path)
}

func TestOpenTrustsTheDirectorysOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const job, group, other = 12345, 12346, 12347
	for name, c := range map[string]struct {
		owner, gid int
		mode       os.FileMode
		file       int // group of the file
		ok         bool
	}{
		"as it should be":     {0, group, os.ModeSetgid | 0o770, group, true},
		"of another group":    {0, group, os.ModeSetgid | 0o770, other, true},
		"not setgid":          {0, group, 0o770, group, true},
		"everybody may write": {0, group, os.ModeSetgid | 0o777, group, false},
		"with a sticky bit":   {0, group, os.ModeSticky | 0o777, group, false},
		"a job's own":         {job, group, 0o700, group, true},
		"a stranger's, in it": {other, group, 0o770, group, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := newImage(1, 8).save(t)
			dir := filepath.Dir(path)
			require.NoError(t, os.Chown(path, job, c.file))
			require.NoError(t, os.Chown(dir, c.owner, c.gid))
			require.NoError(t, os.Chmod(dir, c.mode))
			r, err := Open(path, Options{})
			assert.Equal(t, c.ok, err == nil, "%v", err)
			if err == nil {
				assert.NoError(t, r.Close())
			}
		})
	}
}

// The owner is judged on the open file too: the name may have changed hands.
func TestOwnerIsJudgedTwice(t *testing.T) {
	asked := 0
	_, err := Open(newImage(1, 8).save(t), Options{Owner: func(uid, _ uint32) bool {
		asked++
		return int(uid) == os.Geteuid() && asked == 1
	}})
	require.Error(t, err)
	assert.Equal(t, 2, asked)
}

// A job's claims that cannot be are taken for unknown, and its ring is read.
func TestImpossibleIdentityIsUnknown(t *testing.T) {
	for _, tc := range []struct{ claims, want [4]int32 }{ // rank, local rank, world size, restart
		{[4]int32{3, 1, 4, 0}, [4]int32{3, 1, 4, 0}},
		{[4]int32{-2, 1, 4, 0}, [4]int32{None, 1, 4, 0}},
		{[4]int32{3, math.MinInt32, 4, -7}, [4]int32{3, None, 4, None}},
		{[4]int32{3, 1, -2, 0}, [4]int32{3, 1, None, 0}},
		{[4]int32{0, 0, 0, 0}, [4]int32{0, 0, None, 0}},
		{[4]int32{4, 1, 4, 0}, [4]int32{None, 1, None, 0}},
		{[4]int32{None, None, 4, None}, [4]int32{None, None, 4, None}},
		{[4]int32{math.MaxInt32, 1, None, 0}, [4]int32{math.MaxInt32, 1, None, 0}},
	} {
		m := newImage(1, 8)
		for i, n := range tc.claims {
			m.set32(uint64(atRank+4*i), uint32(n))
		}
		h := m.open(t).Header()
		assert.Equal(t, tc.want, [4]int32{h.Rank, h.LocalRank, h.WorldSize, h.Restart}, "%v", tc.claims)
	}
}

func TestHeader(t *testing.T) {
	m := newImage(3, 16)
	m.write(atBootID, []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 7})
	m.set(atPID, 41)
	m.set(atStart, 42)
	m.set(atCreated, 43)
	for i, rank := range []int32{5, 1, 8, None} {
		m.set32(uint64(atRank+4*i), uint32(rank))
	}
	m.set32(atRetain, 60)
	m.write(atJobID, []byte("job\x00rest"))
	m.write(atJobName, []byte("\x1b[2J\xff"))
	m.write(atProducer, []byte("0123456789012345678901234567890123456789012345678901234567890123tail"))
	m.section(1, uint64(1)|page<<32, m.offset[1], 1) // what the tail above wrote is no section's
	h := m.open(t).Header()
	assert.Equal(t, "01234567-89ab-cdef-0001-020304050607", h.BootID)
	assert.Equal(t, []uint64{41, 42, 43}, []uint64{h.PID, h.StartTime, h.Created})
	assert.Equal(t, []int32{5, 1, 8, -1}, []int32{h.Rank, h.LocalRank, h.WorldSize, h.Restart})
	assert.Equal(t, uint32(60), h.RetainSeconds)
	assert.Equal(t, "job", h.JobID)
	assert.Equal(t, "\ufffd[2J\ufffd", h.JobName, "nothing steers a terminal")
	assert.Len(t, h.Producer, 64, "a field without an end ends with its field")
	assert.Equal(t, 3, h.Lanes)
	assert.Equal(t, uint64(16), h.Capacity)
}
