// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// told is a file of a job and what is to be said of it.
type told struct {
	name, header string
	at           time.Duration // of the recording, after its start
	size         int64         // that is taken; 0 unknown
	want         string        // "" nothing
}

// recording returns a trace of two kernels in a step that begins at a time.
func recording(header string, at time.Duration) string {
	return fmt.Sprintf(`{"baseTimeNanoseconds": %d, %s`, 1_700_000_000_000_000_000+int64(at), content(header, 1)[1:])
}

func checkTold(t *testing.T, o kineto.Options, expect bool, files []told) {
	t.Helper()
	in, dir := New(o, 100), filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var paths []string
	for _, f := range files {
		paths = append(paths, write(t, dir, f.name, recording(f.header, f.at)))
	}
	if expect {
		in.Expect(paths)
	}
	for i, f := range files {
		trace, _, err := in.Read(t.Context(), paths[i], nil)
		require.NoError(t, err)
		var got string
		for _, p := range trace.Problems() {
			assert.Equal(t, paths[i], p.File)
			got += p.What
		}
		assert.Equal(t, f.want, got, f.name)
		rank, _, err := in.Identify(paths[i], trace)
		require.NoError(t, err)
		assert.Equal(t, model.Optional[int64]{V: f.size, OK: f.size > 0}, rank.WorldSize, f.name)
	}
}

func info(rank, size int) string {
	return fmt.Sprintf(`"distributedInfo": {"rank": %d, "world_size": %d}, `, rank, size)
}

func TestWorldSizesThatContradict(t *testing.T) {
	t.Setenv(kineto.EnvJobID, "")
	const tail = "; want one size that fits all files of the job; "
	for name, tc := range map[string]struct {
		watch bool
		fixed int64
		files []told
	}{
		"agree": {files: []told{{name: "rank0.json", header: info(0, 2), size: 2}, {name: "rank1.json", header: info(1, 2), size: 2}}},
		"smaller than the names": {files: []told{
			{name: "rank0.json", header: info(0, 3), size: 8, want: "compare distributedInfo.world_size: got 3, but rank7.json names rank 7" + tail + "8 is taken"},
			{name: "rank1.json", header: info(1, 3), size: 8}, // told once
			{name: "rank7.json", header: info(7, 3), size: 8},
			{name: "trace.json", header: info(2, 8), size: 8, want: "compare distributedInfo.world_size: got 8, but rank0.json states 3" + tail + "8 is taken"},
		}},
		"rank beyond": {watch: true, files: []told{
			{name: "a.json", header: info(9, 4), size: 10, want: "compare distributedInfo.world_size: got 4, but its own rank is 9" + tail + "10 is taken"},
		}},
		"first smaller": {files: []told{
			{name: "rank0.json", header: info(0, 2), size: 2},
			{name: "rank1.json", header: info(1, 4), size: 4, want: "compare distributedInfo.world_size: got 4, but rank0.json states 2" + tail + "4 is taken"},
		}},
		"first larger": {watch: true, files: []told{
			{name: "rank0.json", header: info(0, 4), size: 4},
			{name: "rank1.json", header: info(1, 2), size: 4, want: "compare distributedInfo.world_size: got 2, but rank0.json states 4" + tail + "4 is taken"},
		}},
		"configured": {fixed: 2, files: []told{
			{name: "rank0.json", header: info(0, 9), size: 2},
			{name: "rank7.json", header: info(1, 9), size: 2},
			{name: "rank2.json", header: info(2, 9), size: 3, want: "compare the configured world size: got 2, but its own rank is 2" + tail + "3 is taken"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := kineto.DefaultOptions()
			o.WorldSize = tc.fixed
			checkTold(t, o, !tc.watch, tc.files)
		})
	}
}

func TestRecordingsThatLieApart(t *testing.T) {
	t.Setenv(kineto.EnvJobID, "")
	const tail = "; want at most 1h0m0s between files of one job (one of the two may be of another run, or its clock is set wrong)"
	named := func(rank int) string { return fmt.Sprintf("rank%d.json", rank) }
	for name, files := range map[string][]told{
		"together": {{name: named(0), at: 0}, {name: named(1), at: 59 * time.Minute}, {name: named(2), at: 118 * time.Minute}},
		"one later": {
			{name: named(0)},
			{name: named(1), at: 48 * time.Hour, want: "compare times: got a recording 48h0m0s after that of rank0.json" + tail},
			{name: named(2)},
		},
		"the first earlier": {
			{name: named(0)},
			{name: named(1), at: 2 * time.Hour, want: "compare times: got a recording 2h0m0s after that of rank0.json" + tail},
			{name: named(2), at: 2 * time.Hour},
		},
		"one earlier": {
			{name: named(0), at: 48 * time.Hour},
			{name: named(1), want: "compare times: got a recording 48h0m0s before that of rank0.json" + tail},
		},
	} {
		t.Run(name, func(t *testing.T) { checkTold(t, kineto.DefaultOptions(), false, files) })
	}
}

// A profiler with a schedule records the same ranks again hours later.
func TestFurtherWindowsAreNotApart(t *testing.T) {
	b := newJobs(kineto.DefaultOptions(), 10).of("j")
	hour := int64(time.Hour)
	assert.Empty(t, b.place(span{0, 1, "rank0.a"}, false))
	assert.Empty(t, b.place(span{5 * hour, 6 * hour, "rank0.b"}, true))
	assert.Empty(t, b.place(span{0, 1, "rank1.a"}, false))
	assert.Empty(t, b.place(span{5 * hour, 6 * hour, "rank1.b"}, true))
	assert.Len(t, b.spans, 2)
	for i := range int64(2 * maxSpans) {
		b.place(span{10 * i * hour, 10*i*hour + 1, "x"}, true)
	}
	assert.Len(t, b.spans, maxSpans)
}

func TestJobsAreBounded(t *testing.T) {
	j := newJobs(kineto.DefaultOptions(), 2)
	assert.NotNil(t, j.of("a"))
	assert.NotNil(t, j.of("b"))
	assert.Nil(t, j.of("c"))
	assert.False(t, j.seen(j.of("a"), 0))
	assert.True(t, j.seen(j.of("a"), 0))
	assert.False(t, j.seen(j.of("a"), 1))
	assert.True(t, j.seen(j.of("b"), 2), "beyond the limit nothing is compared")
	assert.Equal(t, 2, j.ranks)
}
