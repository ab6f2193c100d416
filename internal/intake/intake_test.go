// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// content returns a trace of one kernel of 5 µs, which is the step of a number
// and starts at as many µs.
func content(header string, step int) string {
	return fmt.Sprintf(`{%[1]s"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%[2]d", "pid": 9, "tid": 9, "ts": %[2]d, "dur": 5},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": %[2]d, "dur": 5, "args": {"stream": 7, "correlation": 1}}
]}`, header, step)
}

const rank3of8 = `"distributedInfo": {"rank": 3, "world_size": 8}, `

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// take reads and identifies a file.
func take(t *testing.T, in *Intake, path string) (model.Rank, Reason, error) {
	t.Helper()
	trace, reason, err := in.Read(t.Context(), path, nil)
	if err != nil {
		return model.Rank{}, reason, err
	}
	rank, reason, err := in.Identify(path, trace)
	if err == nil {
		assert.Equal(t, rank, trace.Rank(), "operations follow the rank")
	}
	return rank, reason, err
}

func TestIdentify(t *testing.T) {
	t.Setenv(kineto.EnvJobID, "")
	none := model.Optional[int64]{}
	for name, tc := range map[string]struct {
		file, text string
		others     []string // expected beside it
		watch      bool     // nothing is expected
		reason     Reason
		rank       int64
		world      model.Optional[int64]
	}{
		"header":               {file: "rank5.json", text: content(rank3of8, 1), rank: 3, world: model.Some[int64](8)},
		"name":                 {file: "rank5.json", text: content("", 1), rank: 5, world: model.Some[int64](6)},
		"alone":                {file: "trace.json", text: content("", 1), rank: 0, world: model.Some[int64](1)},
		"one of two":           {file: "trace.json", text: content("", 1), others: []string{"another.json"}, reason: NoRank},
		"watched name":         {file: "rank5.json", text: content("", 1), watch: true, rank: 5, world: none},
		"watched header":       {file: "trace.json", text: content(rank3of8, 1), watch: true, rank: 3, world: model.Some[int64](8)},
		"watched without rank": {file: "trace.json", text: content("", 1), watch: true, reason: NoRank},
		"no operation":         {file: "rank5.json", text: `{"traceEvents": []}`, reason: Empty},
	} {
		t.Run(name, func(t *testing.T) {
			in, dir := New(kineto.DefaultOptions(), 10), filepath.Join(t.TempDir(), "job")
			require.NoError(t, os.Mkdir(dir, 0o700))
			path := write(t, dir, tc.file, tc.text)
			if !tc.watch {
				paths := []string{path}
				for _, other := range tc.others {
					paths = append(paths, filepath.Join(dir, other))
				}
				in.Expect(paths)
			}
			rank, reason, err := take(t, in, path)
			assert.Equal(t, tc.reason, reason)
			if tc.reason != "" {
				assert.ErrorContains(t, err, "; want ")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.rank, rank.Rank)
			assert.Equal(t, tc.world, rank.WorldSize)
			assert.Equal(t, "trace:job/"+strconv.FormatInt(tc.rank, 10), rank.ClockID)
		})
	}
}

func TestTwoFilesOfOneRank(t *testing.T) {
	in, dir := New(kineto.DefaultOptions(), 10), t.TempDir()
	first := write(t, dir, "a.json", content(rank3of8, 100))
	same := write(t, dir, "b.json", content(rank3of8, 104))
	later := write(t, dir, "c.json", content(rank3of8, 109))
	for _, tc := range []struct {
		path   string
		reason Reason
	}{{first, ""}, {same, RankTaken}, {later, ""}, {first, ""}} {
		_, reason, err := take(t, in, tc.path)
		assert.Equal(t, tc.reason, reason, tc.path)
		if tc.reason != "" {
			assert.ErrorContains(t, err, first, "the log names the holder")
		}
	}
	in.Forget(first)
	_, reason, err := take(t, in, same)
	assert.Empty(t, reason, "its holder is gone")
	assert.NoError(t, err)
}

func TestReadLeavesOutWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join(testdata.Recording(t, "slow"), "rank3.json.gz"))
	require.NoError(t, err)
	kernel := content(rank3of8, 1)
	for name, tc := range map[string]struct {
		text   string
		reason Reason
		offset int64 // -1: any
	}{
		"gzip cut off":     {string(whole[:len(whole)/2]), Damaged, -1},
		"cut behind event": {kernel[:len(kernel)-2], Damaged, int64(len(kernel) - 2)},
		"broken":           {kernel[:len(kernel)-1] + "?", Damaged, int64(len(kernel) - 1)},
		"header alone":     {kernel[:20], Unreadable, 20},
		"nothing":          {"", Unreadable, 0},
		"no JSON":          {"hello", Unreadable, 0},
		"other JSON":       {`{"a": 1}`, Unreadable, 8},
		"no gzip":          {"\x1f\x8bno gzip", Unreadable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, dir, name, tc.text)
			_, reason, err := New(kineto.DefaultOptions(), 10).Read(t.Context(), path, nil)
			assert.Equal(t, tc.reason, reason)
			var pe *kineto.ParseError
			require.ErrorAs(t, err, &pe)
			assert.Equal(t, path, pe.File)
			if tc.offset >= 0 {
				assert.Equal(t, tc.offset, pe.Offset)
			} else {
				assert.Positive(t, pe.Offset)
			}
		})
	}
}

func TestReadAbsentFile(t *testing.T) {
	trace, reason, err := New(kineto.DefaultOptions(), 10).Read(t.Context(), filepath.Join(t.TempDir(), "rank0.json"), nil)
	assert.Nil(t, trace)
	assert.Equal(t, Unreadable, reason)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadTellsProgress(t *testing.T) {
	path := write(t, t.TempDir(), "rank3.json", content(rank3of8, 1))
	var read int64
	_, _, err := New(kineto.DefaultOptions(), 10).Read(t.Context(), path, func(n int64) { read = n })
	require.NoError(t, err)
	assert.Equal(t, int64(len(content(rank3of8, 1))), read)
}

func TestRead_MoreBytesThanAllowed_IsTooLarge(t *testing.T) {
	o := kineto.DefaultOptions()
	o.MaxBytes = 64
	_, reason, err := take(t, New(o, 10), write(t, t.TempDir(), "rank5.json", content("", 1)))
	require.ErrorIs(t, err, kineto.ErrTooLarge)
	assert.Equal(t, TooLarge, reason)
}
