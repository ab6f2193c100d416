// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRankOfName(t *testing.T) {
	tests := []struct {
		name string
		want int64
		ok   bool
	}{
		{"worker7_step_12.1694128201553.pt.trace.json.gz", 7, true},
		{"rank7.json", 7, true},
		{"rank_7.json", 7, true},
		{"rank-07.json.gz", 7, true},
		{"Rank12.json", 12, true},
		{"workers_rank3.json", 3, true},
		{"rank1/host.json", 0, false}, // the folder is not the file
		{"trace.json", 0, false},
		{"worker2_rank5.json", 5, true},
		{"rank1048575.json", 1048575, true},
		{"rank1048576.json", 0, false},
		{"rank99999999999999999999.json", 0, false},
	}
	for _, tt := range tests {
		got, ok := RankOfName(DefaultOptions(), tt.name)
		assert.Equal(t, tt.ok, ok, tt.name)
		assert.Equal(t, tt.want, got, tt.name)
	}
	own := Options{RankPattern: regexp.MustCompile(`^(?:a(\d+)|b(.*))$`)}
	got, ok := RankOfName(own, "b7")
	assert.True(t, ok)
	assert.Equal(t, int64(7), got, "the group that matched")
	_, ok = RankOfName(own, "b-3")
	assert.False(t, ok)
}

func TestIdentity(t *testing.T) {
	t.Setenv(EnvJobID, "")
	tr := parseText(t, "runs/job-9/rank2.json", trace(""))
	r := tr.Rank()
	assert.Equal(t, "job-9", r.JobID)
	assert.Equal(t, "job-9", r.JobName)
	assert.Equal(t, "trace:job-9/2", r.ClockID)
	assert.Equal(t, model.Incarnation(model.World{Launcher: []string{"job-9"}}), r.Incarnation)
	assert.False(t, r.WorldSize.OK)

	t.Setenv(EnvJobID, "from-env")
	assert.Equal(t, "from-env", parseText(t, "runs/job-9/rank2.json", trace("")).rank.JobID)

	o := DefaultOptions()
	o.JobID, o.JobName, o.WorldSize = "id", "name", 64
	o.RankPattern = regexp.MustCompile(`host(\d+)`)
	tr, err := Parse(t.Context(), strings.NewReader(trace("", kernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 1, 10, ""))), "host5.json", o)
	require.NoError(t, err)
	r = tr.Rank()
	assert.Equal(t, "id", r.JobID)
	assert.Equal(t, "name", r.JobName)
	assert.Equal(t, int64(5), r.Rank)
	assert.Equal(t, model.Some(int64(64)), r.WorldSize)

	r.Rank, r.WorldSize, r.ClockID = 6, model.Some(int64(8)), ""
	tr.SetRank(r)
	comm := ofKind(tr, model.KindCollective)[0].Comm
	assert.Equal(t, model.Some(int64(6)), comm.Rank, "operations follow the rank")
	assert.Equal(t, model.Some(int64(8)), comm.Size)
	assert.Equal(t, "trace:id/6", tr.Rank().ClockID)
}

func TestHeaderBehindEvents(t *testing.T) {
	tr := parseText(t, "x.json", `{"traceEvents":[`+kernel("k", 1, 120.5, "")+`],"traceName":"n","baseTimeNanoseconds":5000000000,"distributedInfo":{"rank":4,"world_size":9}}`)
	assert.Equal(t, int64(4), tr.Rank().Rank)
	assert.Equal(t, model.Some(int64(9)), tr.Rank().WorldSize)
	assert.Equal(t, int64(5000120500), ofKind(tr, model.KindCompute)[0].Start)
}

func TestImpossibleRank(t *testing.T) {
	for info, want := range map[string]string{
		`"rank":-1`:                        "read distributedInfo.rank: got -1; want an integer from 0 to 1048575",
		`"rank":1048576`:                   "read distributedInfo.rank: got 1048576; want an integer from 0 to 1048575",
		`"rank":99999999999999999999`:      "read distributedInfo.rank: got 99999999999999999999; want an integer from 0 to 1048575",
		`"world_size":0,"rank":2`:          "read distributedInfo.world_size: got 0; want an integer from 1 to 1048576",
		`"world_size":1048577,"rank":2`:    "read distributedInfo.world_size: got 1048577; want an integer from 1 to 1048576",
		`"world_size":2147483647,"rank":2`: "read distributedInfo.world_size: got 2147483647; want an integer from 1 to 1048576",
	} {
		tr := parseText(t, "rank2.json", `{"distributedInfo":{`+info+`},"traceEvents":[`+kernel("k", 1, 120, "")+`]}`)
		assert.Equal(t, int64(2), tr.Rank().Rank, info)
		assert.False(t, tr.Rank().WorldSize.OK, info)
		require.Len(t, tr.Problems(), 1, info)
		assert.Equal(t, want, tr.Problems()[0].What)
	}
	largest := parseText(t, "x.json", trace(`"distributedInfo":{"rank":1048575,"world_size":1048576}`))
	assert.Empty(t, largest.Problems())
	assert.Equal(t, int64(1048575), largest.Rank().Rank)
}

func TestDiscover(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"b.json", "a.json.gz", "README.md", "sub/c.json"} {
		path := filepath.Join(dir, f)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 5), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	in := func(names ...string) (out []File) {
		for _, n := range names {
			out = append(out, File{filepath.Join(dir, n), 5})
		}
		return out
	}
	tests := []struct {
		path    string
		want    []File
		problem string
	}{
		{"", in("a.json.gz", "b.json"), ""},
		{"b.json", in("b.json"), ""},
		{"README.md", in("README.md"), ""},
		{"*.json", in("b.json"), ""},
		{"*/*.json", in("sub/c.json"), ""},
		{"empty", nil, "no *.json"},
		{"absent", nil, "no such file"},
		{"absent*", nil, "no such file"},
		{"[", nil, "syntax error in pattern"},
	}
	for _, tt := range tests {
		files, problems := Discover([]string{filepath.Join(dir, tt.path)}, DefaultOptions())
		assert.Equal(t, tt.want, files, tt.path)
		if tt.problem == "" {
			assert.Empty(t, problems, tt.path)
			continue
		}
		require.Len(t, problems, 1, tt.path)
		assert.Equal(t, filepath.Join(dir, tt.path), problems[0].File)
		assert.Contains(t, problems[0].What, tt.problem)
	}
	files, problems := Discover([]string{filepath.Join(dir, "*.json"), dir}, DefaultOptions())
	assert.Equal(t, in("a.json.gz", "b.json"), files, "each once")
	assert.Empty(t, problems)
}

func TestProgress(t *testing.T) {
	content := packed(t, trace("", kernel("k", 1, 9, "")))
	var last int64
	o := DefaultOptions()
	o.Progress = func(n int64) {
		assert.Greater(t, n, last)
		last = n
	}
	_, err := Parse(t.Context(), bytes.NewReader(content), "x", o)
	require.NoError(t, err)
	assert.Equal(t, int64(len(content)), last)
}
