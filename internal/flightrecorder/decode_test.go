// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// small is a dump with one of each.
func small(version string) *frwrite.Dump {
	ms := 2.5
	return &frwrite.Dump{
		Version: version, LibVersion: "2.27.3",
		Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3}}, {Name: "7", Desc: "pp", Ranks: []int64{1, 3}}},
		Status: []frwrite.Status{{PGID: 0, Enqueued: 9, Started: -1, Completed: 8}, {PGID: 2, Enqueued: 4, Started: 3, Completed: 3}},
		Entries: []frwrite.Entry{
			{
				RecordID: 20, PGID: 0, Group: "0", Desc: "default_pg", ThreadName: "python3", ThreadID: "23456244340032",
				CollectiveSeq: 8, P2PSeq: 0, OpID: 8, Name: "nccl:all_reduce", Created: 1758580155793872443, Duration: &ms,
				In: [][]int64{{2048, 1, 5120}}, Out: [][]int64{{2048, 1, 5120}}, InTypes: []string{"BFloat16"}, OutTypes: []string{"BFloat16"},
				State: frwrite.Completed, Started: 1758580155793900000, Completed: 1758580155796400000, Retired: true, TimeoutMS: 180000,
				Frames: []frwrite.Frame{{Name: "forward", File: "/job/train.py", Line: 12}, {Name: "main", File: "/job/train.py", Line: 40}},
			},
			{
				RecordID: 21, PGID: 2, Group: "7", Desc: "pp", ThreadName: "pt_autograd_0", ThreadID: "23437663053504",
				CollectiveSeq: 1, P2PSeq: 70000, OpID: 70001, Name: "nccl:send 0->1", Created: 1758580155793914277,
				In: [][]int64{{4}, {}, {3, 2}}, Out: [][]int64{}, InTypes: []string{"Long", "Float", "Half"}, OutTypes: []string{},
				State: frwrite.Scheduled, TimeoutMS: 600000, P2P: true,
				Frames: []frwrite.Frame{{Name: "send", File: "/job/pipe.py", Line: 7}, {Name: "main", File: "/job/train.py", Line: 40}},
			},
		},
	}
}

// checkSmall compares with what small says, as far as the version records it.
func checkSmall(t *testing.T, d *Dump, minor int, jsonTwin bool) {
	t.Helper()
	assert.Equal(t, Version{2, minor}, d.Version)
	assert.Empty(t, d.Partial)
	assert.Empty(t, d.Problems)
	require.Len(t, d.Groups, 2)
	assert.Equal(t, Tag{"0", "default_pg"}, d.Groups[0].Tag)
	assert.Equal(t, []int64{0, 1, 2, 3}, d.Groups[0].Ranks)
	assert.Equal(t, []int64{1, 3}, d.Groups[1].Ranks)
	if minor >= 3 {
		assert.Equal(t, []Status{{0, 9, -1, 8}, {2, 4, 3, 3}}, d.Status)
	}
	if minor >= 6 {
		assert.Equal(t, "2.27.3", d.LibVersion)
	}
	require.Len(t, d.Entries, 2)
	e, f := &d.Entries[0], &d.Entries[1]
	assert.Equal(t, []int64{20, 0, 8, 0, 8, 1758580155793872443, 1758580155793900000, 1758580155796400000},
		[]int64{e.Record, e.PG, e.Coll, e.P2P, e.Op, e.Created, e.StartSeen, e.EndSeen})
	assert.InDelta(t, 2.5, e.Duration, 0)
	assert.Equal(t, "nccl:all_reduce", d.Name(e))
	assert.Equal(t, Tag{"0", "default_pg"}, d.Tag(e))
	assert.Equal(t, Completed, e.State)
	assert.True(t, e.Retired)
	assert.False(t, e.IsP2P)
	in, out := d.Sizes(e)
	assert.Equal(t, Shape{"[[2048, 1, 5120]]", 10485760}, in)
	assert.Equal(t, in, out)
	in, out = d.Sizes(f)
	assert.Equal(t, Shape{"[[4], [], [3, 2]]", 11}, in)
	assert.Equal(t, Shape{"[]", 0}, out)
	assert.Equal(t, []int64{21, 2, 1, 70000, 70001, 0, 0}, []int64{f.Record, f.PG, f.Coll, f.P2P, f.Op, f.StartSeen, f.EndSeen})
	assert.Negative(t, f.Duration)
	assert.Equal(t, Scheduled, f.State)
	assert.True(t, f.IsP2P)
	if minor >= 2 {
		a, b := d.Types(e)
		assert.Equal(t, []string{"BFloat16", "BFloat16"}, []string{a, b})
		a, b = d.Types(f)
		assert.Equal(t, []string{"Long, Float, Half", ""}, []string{a, b})
		assert.Equal(t, int64(180000), e.Timeout)
	}
	if minor >= 9 {
		name, id := d.Thread(e)
		assert.Equal(t, []string{"python3", "23456244340032"}, []string{name, id})
	}
	if !jsonTwin {
		assert.Equal(t, []Frame{{"forward", "/job/train.py", 12}, {"main", "/job/train.py", 40}}, d.Frames(e))
		assert.Equal(t, []Frame{{"send", "/job/pipe.py", 7}, {"main", "/job/train.py", 40}}, d.Frames(f))
	}
}

func TestEveryVersion(t *testing.T) {
	for minor, version := range []string{"2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11"} {
		t.Run(version, func(t *testing.T) {
			w := small(version)
			w.Stacks = true
			d, err := Decode(frwrite.Pickle(w), Options{Stacks: true})
			require.NoError(t, err)
			assert.Equal(t, Pickle, d.Format)
			checkSmall(t, d, minor, false)
			d, err = Decode(frwrite.JSON(w), Options{})
			require.NoError(t, err)
			assert.Equal(t, JSON, d.Format)
			checkSmall(t, d, minor, true)
		})
	}
}

// Stacks that nobody asked for leave no trace, and what follows them is right: frames are
// remembered, so that the numbers of the memo count them.
func TestStacksArePassedOver(t *testing.T) {
	w := small("2.10")
	w.Stacks = true
	d, err := Decode(frwrite.Pickle(w), Options{})
	require.NoError(t, err)
	checkSmall(t, d, 10, true)
	assert.Nil(t, d.Frames(&d.Entries[0]))
	assert.True(t, d.Stacks)
	assert.NotContains(t, strings.Join(d.texts, " "), "train.py")
}

func TestVersions(t *testing.T) {
	assert.True(t, Version{2, 10}.AtLeast(2, 9))
	assert.False(t, Version{2, 9}.AtLeast(2, 10))
	assert.True(t, Version{2, 0}.AtLeast(1, 4))
	for _, s := range []string{"3.0", "0.9", "", "2", "two", "2.10.1", "2.99999999999"} {
		_, err := Decode([]byte(`{"version": "`+s+`", "entries": []}`), Options{})
		require.ErrorContains(t, err, "want 1.x or 2.x", s)
	}
}

// The dumps of before 2.0, as the research on their history describes them.
func TestOldVersions(t *testing.T) {
	const entry = `{"record_id": 3, "seq_id": 12, "pg_id": 1, "profiling_name": "nccl:all_reduce", "time_created_ns": 5,
		"input_sizes": [[3]], "output_sizes": [[3]], "state": "scheduled", "retired": false}`
	for name, tt := range map[string]struct {
		text    string
		version Version
	}{
		"a list":  {"[" + entry + "]", Version{}},
		"1.1":     {`{"version": "1.1", "entries": [` + entry + `]}`, Version{1, 1}},
		"1.4":     {`{"version": "1.4", "pg_config": {"1": {"name": "1", "desc": "tp", "ranks": "[0, 1]"}}, "nccl_comm_state": {}, "entries": [` + entry + `]}`, Version{1, 4}},
		"no list": {`{"version": "1.4", "entries": [` + entry + `], "pg_config": {}}`, Version{1, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decode([]byte(tt.text), Options{})
			require.NoError(t, err)
			assert.Equal(t, tt.version, d.Version)
			require.Len(t, d.Entries, 1)
			assert.Equal(t, int64(12), d.Entries[0].Coll)
			assert.Equal(t, int64(-1), d.Entries[0].P2P)
			assert.Empty(t, d.Partial)
		})
	}
}

func TestExtrasAndUnknownKeys(t *testing.T) {
	w := small("2.10")
	w.CommState = []frwrite.CommState{{Comm: "0x1f", Values: [][2]string{{"CT_pastColls", "[1, 2]"}, {"rank", "3"}}}, {Comm: "0x2f"}}
	for _, data := range [][]byte{frwrite.Pickle(w), frwrite.JSON(w)} {
		d, err := Decode(data, Options{})
		require.NoError(t, err)
		assert.Equal(t, []Extra{{"nccl_comm_state", 2}}, d.Extras)
		checkSmall(t, d, 10, true)
	}
	d, err := Decode([]byte(`{"version": "2.12", "health_check_results": [1, 2, 3], "reset_epoch": 4, "entries": [
		{"record_id": 1, "collective_seq_id": 2, "process_group": ["0", "x"], "profiling_name": "nccl:barrier", "stream_id": 7, "state": "scheduled"}]}`), Options{})
	require.NoError(t, err)
	assert.Equal(t, []Extra{{"health_check_results", 3}, {"reset_epoch", 1}}, d.Extras)
	assert.Equal(t, int64(1), d.Stats.UnknownKeys)
	assert.Equal(t, []string{`pass over key "stream_id": not known`}, d.Problems)
	assert.Len(t, d.Entries, 1)
}

// Python's own pickles: protocols 2 to 5, written by json.loads and pickle.dumps of what
// checkSmall expects (testdata/python.py).
func TestPickledByPython(t *testing.T) {
	for _, name := range []string{"python2", "python3", "python4", "python5"} {
		t.Run(name, func(t *testing.T) {
			d, err := ReadFile(filepath.Join("testdata", name+".pickle"), Options{Stacks: true})
			require.NoError(t, err)
			checkSmall(t, d, 10, false)
		})
	}
}

func TestBadFieldsAndEntries(t *testing.T) {
	entry := func(extra string) string {
		return `{"record_id": 1, "collective_seq_id": 2, "process_group": ["0", "x"], "profiling_name": "nccl:barrier", "state": "scheduled"` + extra + `}`
	}
	for name, tt := range map[string]struct {
		entry        string
		bad, badness int64 // entries, fields
	}{
		"whole":                {entry(""), 0, 0},
		"no number":            {`{"record_id": 1, "profiling_name": "nccl:barrier", "state": "scheduled"}`, 1, 0},
		"a message's alone":    {`{"record_id": 1, "p2p_seq_id": 0, "profiling_name": "nccl:barrier", "state": "scheduled"}`, 1, 0},
		"a number below zero":  {entry(`, "collective_seq_id": -3`), 1, 0},
		"no name":              {`{"record_id": 1, "collective_seq_id": 2, "state": "scheduled"}`, 1, 0},
		"no object":            {`7`, 1, 0},
		"sizes are a number":   {entry(`, "input_sizes": 4`), 0, 1},
		"sizes of text":        {entry(`, "input_sizes": [["a"]]`), 0, 1},
		"sizes below zero":     {entry(`, "input_sizes": [[-1]]`), 0, 1},
		"sizes of fractions":   {entry(`, "input_sizes": [[1.5]]`), 0, 1},
		"a large number":       {entry(`, "op_id": 99999999999999999999`), 0, 1},
		"a time of text":       {entry(`, "time_created_ns": "soon"`), 0, 1},
		"another state":        {entry(`, "state": "lost"`), 0, 1},
		"a group of three":     {entry(`, "process_group": ["0", "x", "y"]`), 0, 1},
		"truth of text":        {entry(`, "retired": "yes"`), 0, 1},
		"duration below zero":  {entry(`, "duration_ms": -2`), 0, 1},
		"types are no list":    {entry(`, "input_dtypes": "Float"`), 0, 1},
		"types within a list":  {entry(`, "input_dtypes": [["Float"]]`), 0, 1},
		"an object for a name": {entry(`, "thread_name": {"a": [1, 2]}`), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decode([]byte(`{"version": "2.4", "entries": [`+tt.entry+`, `+entry("")+`]}`), Options{})
			require.NoError(t, err)
			assert.Equal(t, tt.bad, d.Stats.BadEntries)
			assert.Equal(t, tt.badness, d.Stats.BadFields)
			assert.Len(t, d.Entries, int(2-tt.bad))
			assert.Equal(t, tt.bad > 0, d.Partial != "", d.Partial)
			assert.Equal(t, tt.bad+tt.badness > 0, len(d.Problems) > 0)
		})
	}
}

func TestNoDumps(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"empty":             {"", "dump is empty"},
		"spaces":            {" \n", "dump is empty"},
		"text":              {"hello", "want a pickle to begin with it"},
		"other JSON":        {`{"traceEvents": []}`, "got an object without version and entries; want a dump"},
		"other pickle":      {"\x80\x02}(X\x01\x00\x00\x00aK\x01u.", "got a dict without version and entries; want a dump"},
		"a number":          {"\x80\x02K\x01.", "got an int; want a dict or a list of entries"},
		"an entry alone":    {"\x80\x02}(X\x09\x00\x00\x00record_idK\x01u.", "got a dict of another kind; want a dump"},
		"entries are text":  {"\x80\x02}(X\x07\x00\x00\x00entriesX\x01\x00\x00\x00au.", "read entries: got a string; want a list"},
		"a header alone":    {"\x80\x02", "dump is cut off before anything was whole"},
		"an opening":        {"{", "dump is cut off before anything was whole"},
		"behind the dump":   {`{"version": "2.4"} x`, "behind the dump; want none"},
		"a broken object":   {`{"version" "2.4"}`, `got '"'; want :`},
		"a trailing comma":  {`{"version": "2.4",}`, "want a string"},
		"a bad escape":      {`{"version": "\x"}`, "got a bad escape"},
		"a bad literal":     {`{"version": nil}`, "got 'n'; want a value"},
		"mutable code":      {"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "GLOBAL: got an opcode that is not data only"},
		"a list of numbers": {"[1, 2", "dump is cut off before anything was whole"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decode([]byte(tt.data), Options{})
			require.ErrorContains(t, err, tt.want)
			assert.Nil(t, d)
		})
	}
}

// A dump that is cut off anywhere gives a part of what it holds, or an error, and says so.
func TestCutAnywhere(t *testing.T) {
	w := small("2.10")
	w.Stacks = true
	for _, data := range [][]byte{frwrite.Pickle(w), frwrite.JSON(w)} {
		seen := map[int]bool{}
		for cut := range len(data) {
			d, err := Decode(data[:cut], Options{Stacks: true})
			if err != nil {
				require.Nil(t, d)
				continue
			}
			require.NotEmpty(t, d.Partial, cut)
			require.True(t, d.lacksNewest())
			seen[len(d.Entries)] = true
			for i := range d.Entries {
				require.Equal(t, int64(20+i), d.Entries[i].Record)
				require.Equal(t, int64(i*2), d.Entries[i].PG)
				in, _ := d.Sizes(&d.Entries[i])
				require.NotEmpty(t, in.Text)
			}
			if len(d.Groups) > 0 && d.Groups[0].Ranks != nil {
				require.Equal(t, []int64{0, 1, 2, 3}, d.Groups[0].Ranks)
			}
		}
		assert.True(t, seen[1] && seen[2])
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank_3")
	require.NoError(t, os.WriteFile(path, frwrite.Pickle(small("2.10")), 0o600))
	d, err := ReadFile(path, Options{})
	require.NoError(t, err)
	checkSmall(t, d, 10, true)
	o := Options{}
	o.Limits.Pickle.Bytes = 100
	_, err = ReadFile(path, o)
	require.ErrorContains(t, err, "want at most 100")
	huge := filepath.Join(t.TempDir(), "rank_4") // told by its size, before any of it is read
	require.NoError(t, os.WriteFile(huge, nil, 0o600))
	require.NoError(t, os.Truncate(huge, 1<<40))
	_, err = ReadFile(huge, Options{})
	require.ErrorContains(t, err, "got 1099511627776 bytes; want at most 268435456")

	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err = w.Write(frwrite.Pickle(small("2.10")))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, z.Bytes(), 0o600))
	d, err = ReadFile(path, Options{})
	require.NoError(t, err)
	checkSmall(t, d, 10, true)
	_, err = ReadFile(path, o)
	require.ErrorContains(t, err, "want at most 100")
	require.NoError(t, os.WriteFile(path, z.Bytes()[:z.Len()-30], 0o600))
	d, err = ReadFile(path, Options{})
	require.NoError(t, err)
	assert.NotEmpty(t, d.Partial)
	_, err = ReadFile(path+"0", Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLimits(t *testing.T) {
	o := Options{Stacks: true}
	w := small("2.10")
	w.Stacks = true
	data := frwrite.Pickle(w)
	t.Run("entries", func(t *testing.T) {
		o := o
		o.Limits.Entries = 1
		d, err := Decode(data, o)
		require.NoError(t, err)
		assert.Len(t, d.Entries, 1)
		assert.Equal(t, int64(1), d.Stats.EntriesDropped)
		assert.Contains(t, d.Partial, "1 of 2 operations")
		assert.True(t, d.lacksNewest())
	})
	t.Run("groups", func(t *testing.T) {
		o := o
		o.Limits.Groups = 1
		d, err := Decode(data, o)
		require.NoError(t, err)
		assert.Len(t, d.Groups, 1)
		assert.Len(t, d.Status, 1)
		assert.NotEmpty(t, d.Partial)
	})
	t.Run("members", func(t *testing.T) {
		o := o
		o.Limits.Members = 3
		d, err := Decode(data, o)
		require.NoError(t, err)
		assert.Nil(t, d.Groups[0].Ranks)
		assert.Equal(t, []int64{1, 3}, d.Groups[1].Ranks)
		assert.NotEmpty(t, d.Problems)
	})
	t.Run("distinct", func(t *testing.T) {
		o := o
		o.Limits.Distinct = 4
		d, err := Decode(data, o)
		require.NoError(t, err)
		assert.Positive(t, d.Stats.Overflow)
		assert.LessOrEqual(t, len(d.texts), 4)
	})
}

// The members of a group are the same, whether they come from the cache or not.
func TestCache(t *testing.T) {
	o := Options{Cache: newCache(3 * groupBytes)} // room for the two groups
	data := frwrite.Pickle(small("2.10"))
	plain, err := Decode(data, Options{})
	require.NoError(t, err)
	first, err := Decode(data, o)
	require.NoError(t, err)
	second, err := Decode(data, o)
	require.NoError(t, err)
	assert.Equal(t, plain.Groups, first.Groups)
	assert.Equal(t, plain.Groups, second.Groups)
	assert.Same(t, &first.Groups[0].Ranks[0], &second.Groups[0].Ranks[0])
	third, err := Decode(bytes.ReplaceAll(data, []byte("[0, 1, 2, 3]"), []byte("[0, 1, 2, 4]")), o)
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 1, 2, 4}, third.Groups[0].Ranks)
	assert.Equal(t, 2, o.Cache.groups.Len())
}

// The JSON that frwrite makes is what encoding/json reads of it.
func TestEscapes(t *testing.T) {
	w := small("2.10")
	w.Entries[0].Desc, w.Groups[0].Desc = "a \"b\" \\ ü \u2028\n", "a \"b\" \\ ü \u2028\n"
	data := frwrite.JSON(w)
	require.True(t, json.Valid(data))
	d, err := Decode(data, Options{})
	require.NoError(t, err)
	assert.Equal(t, w.Groups[0].Desc, d.Groups[0].Desc)
	assert.Equal(t, w.Groups[0].Desc, d.Tag(&d.Entries[0]).Desc)
}
