// SPDX-License-Identifier: Apache-2.0

package frwrite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// retell makes a Dump of a real one, by Python's own pickle: what it is written as must
// then be the real file, byte for byte.
const retell = `
import json, pickle, sys
d = pickle.load(open(sys.argv[1], "rb"))
out = {"Version": d["version"], "LibVersion": d.get("nccl_version", ""), "Groups": [], "Status": [], "Entries": []}
for g in d["pg_config"].values():
    out["Groups"].append({"Name": g["name"], "Desc": g["desc"], "Ranks": json.loads(g["ranks"])})
for k, s in d["pg_status"].items():
    out["Status"].append({"PGID": int(k), "Enqueued": s["last_enqueued_collective"],
        "Started": s["last_started_collective"], "Completed": s["last_completed_collective"]})
for e in d["entries"]:
    out["Entries"].append({"RecordID": e["record_id"], "PGID": e["pg_id"], "Group": e["process_group"][0],
        "Desc": e["process_group"][1], "ThreadName": e["thread_name"], "ThreadID": e["thread_id"],
        "CollectiveSeq": e["collective_seq_id"], "P2PSeq": e["p2p_seq_id"], "OpID": e["op_id"],
        "Name": e["profiling_name"], "Created": e["time_created_ns"], "In": e["input_sizes"],
        "Out": e["output_sizes"], "InTypes": e["input_dtypes"], "OutTypes": e["output_dtypes"],
        "State": e["state"], "Started": e["time_discovered_started_ns"] or 0,
        "Completed": e["time_discovered_completed_ns"] or 0, "Retired": e["retired"],
        "TimeoutMS": e["timeout_ms"], "P2P": e["is_p2p"]})
json.dump(out, sys.stdout)
`

func python(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"-c", script}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

// A real dump, read by Python and written again, is the same file.
func TestPickleIsThatOfPyTorch(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Shared(t, "flight-recorder"), "*", "_dump_*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		var d Dump
		require.NoError(t, json.Unmarshal(python(t, retell, file), &d))
		assert.True(t, bytes.Equal(want, Pickle(&d)), "%s: got other bytes; want PyTorch's", file)
	}
}

func sample() *Dump {
	half := 0.5
	return &Dump{
		LibVersion: "2.27.3", Stacks: true,
		Groups: []Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2}}},
		Status: []Status{{PGID: 0, Enqueued: 70000, Started: -1, Completed: 7}},
		Entries: []Entry{{
			RecordID: 5, Group: "0", Desc: "default_pg", ThreadName: "python3", ThreadID: "23456244340032",
			CollectiveSeq: 7, OpID: 300, Name: "nccl:all_reduce", Created: 1758580155793845199, Duration: &half,
			In: [][]int64{{2048, 1}, {}}, InTypes: []string{"Float", "Half"}, Out: [][]int64{{4294967296}},
			OutTypes: []string{"Float"}, State: Completed, Completed: 1758580155793845200, Retired: true,
			TimeoutMS: 600000, Frames: []Frame{{"train", "train.py", 12}, {"main", "train.py", 80}},
		}, {
			RecordID: 6, Group: "0", Desc: "default_pg", CollectiveSeq: 7, P2PSeq: 1, OpID: 301, P2P: true,
			Name: "nccl:send 0->1", State: Scheduled, Frames: []Frame{{"train", "train.py", 12}},
		}},
		CommState: []CommState{{"0x1", [][2]string{{"rank", "0"}}}},
	}
}

// Python's own reader agrees on what the real dumps do not have: floats, long memo ids,
// shared frames, and the keys of each version.
func TestPythonReadsIt(t *testing.T) {
	const show = `import json, pickle, sys
print(json.dumps([pickle.load(open(f, "rb")) for f in sys.argv[1:]]))`
	dir := t.TempDir()
	write := func(name string, d *Dump) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, Pickle(d), 0o600))
		return path
	}
	many := sample()
	for i := range 300 {
		e := many.Entries[0]
		e.ThreadID = strconv.Itoa(i) // a string of its own, so that memo ids pass 255
		many.Entries = append(many.Entries, e)
	}
	files := []string{write("sample", sample()), write("many", many)}
	for minor := range 11 {
		d := sample()
		d.Version = fmt.Sprintf("2.%d", minor)
		files = append(files, write(d.Version, d))
	}
	var got []map[string]any
	require.NoError(t, json.Unmarshal(python(t, show, files...), &got))

	first := got[0]["entries"].([]any)[0].(map[string]any)
	assert.InDelta(t, 0.5, first["duration_ms"], 0)
	assert.Equal(t, []any{[]any{2048.0, 1.0}, []any{}}, first["input_sizes"])
	assert.Equal(t, []any{[]any{4294967296.0}}, first["output_sizes"])
	second := got[0]["entries"].([]any)[1].(map[string]any)
	assert.Equal(t, first["frames"].([]any)[0], second["frames"].([]any)[0])
	assert.Nil(t, second["time_discovered_completed_ns"])
	status := map[string]any{"last_enqueued_collective": 70000.0, "last_started_collective": -1.0, "last_completed_collective": 7.0}
	assert.Equal(t, status, got[0]["pg_status"].(map[string]any)["0"])
	assert.Equal(t, map[string]any{"0x1": map[string]any{"rank": "0"}}, got[0]["nccl_comm_state"])
	last := got[1]["entries"].([]any)[301].(map[string]any)
	assert.Equal(t, "299", last["thread_id"])
	assert.Equal(t, "Float", last["input_dtypes"].([]any)[0])

	has := func(minor int, key string) bool { _, ok := got[2+minor][key]; return ok }
	entryHas := func(minor int, key string) bool {
		_, ok := got[2+minor]["entries"].([]any)[0].(map[string]any)[key]
		return ok
	}
	for minor := range 11 {
		assert.Equal(t, fmt.Sprintf("2.%d", minor), got[2+minor]["version"])
		assert.Equal(t, minor >= 2, entryHas(minor, "input_dtypes"), minor)
		assert.Equal(t, minor >= 2, entryHas(minor, "timeout_ms"), minor)
		assert.Equal(t, minor >= 3, has(minor, "pg_status"), minor)
		assert.Equal(t, minor >= 6 && minor <= 9, has(minor, "nccl_version"), minor)
		assert.Equal(t, minor >= 9, entryHas(minor, "thread_id"), minor)
		assert.Equal(t, minor >= 10, has(minor, "comm_lib_version"), minor)
	}
}

func TestJSONTwin(t *testing.T) {
	var got map[string]any
	require.NoError(t, json.Unmarshal(JSON(sample()), &got))
	entry := got["entries"].([]any)[1].(map[string]any)
	assert.InDelta(t, 0, entry["time_discovered_completed_ns"], 0)
	assert.NotContains(t, entry, "frames")
	assert.Equal(t, []any{"0", "default_pg"}, entry["process_group"])
	assert.Equal(t, "-1", got["pg_status"].(map[string]any)["0"].(map[string]any)["last_started_collective"])
	got = nil
	require.NoError(t, json.Unmarshal(JSON(&Dump{}), &got))
	assert.NotContains(t, got, "entries")
}

func TestActiveKeepsWhatNoEventCompletes(t *testing.T) {
	d := sample()
	a := d.Active()
	require.Len(t, a.Entries, 1)
	assert.Equal(t, int64(6), a.Entries[0].RecordID)
	assert.Len(t, d.Entries, 2)
}

func TestTorn(t *testing.T) {
	assert.Equal(t, []byte("ab"), Torn([]byte("abcd"), 0.5))
	assert.Equal(t, []byte("abcd"), Torn([]byte("abcd"), 1))
}
