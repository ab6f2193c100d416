// SPDX-License-Identifier: Apache-2.0

package sniff

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSniff(t *testing.T) {
	long := `"properties": [` + strings.Repeat(`{"a": "}{"}, `, 1000) + `1], `
	for name, tc := range map[string]struct {
		content string
		want    Format
		err     string
	}{
		"PyTorch":                {"\n{\n \"schemaVersion\": 1,", Torch, ""},
		"PyTorch, events last":   {`{"x": {"y": [1, "]"]}, ` + long + `"traceEvents": [`, Torch, ""},
		"Chrome's bare array":    {`[{"ph": "X", "name": "a"}, `, Unknown, ""},
		"OTLP":                   {`{"resourceSpans":[`, OTLP, ""},
		"OTLP with a mark":       {"\xef\xbb\xbf" + `{"resourceSpans":[`, OTLP, ""},
		"OTLP of logs":           {`{"resourceLogs":[]}`, Unknown, ""},
		"a dump":                 {"\x80\x02}q\x00(X\x07\x00\x00\x00versionX\x04\x00\x00\x002.10X\x09\x00\x00\x00pg_config}", FlightRecorder, ""},
		"a dump of Python":       {"\x80\x05\x95\x10\x00\x00\x00\x00\x00\x00\x00}(\x8c\x07entries](}(\x8c\x09record_id", FlightRecorder, ""},
		"another pickle":         {"\x80\x02}q\x00(X\x05\x00\x00\x00modelK\x01u.", Unknown, "got content that begins with the bytes 80 02 7d"},
		"a dump of JSON":         {`{"comm_lib_version": "2.27.3", "entries": [`, FlightRecorder, ""},
		"a dump, entries first":  {`{"entries":[{"collective_seq_id":1,"profiling_name":"x"},` + strings.Repeat(`{"a":[1]},`, sniffLimit/8), FlightRecorder, ""},
		"a dump of groups alone": {`{"version": "2.4", "pg_config": {}}`, FlightRecorder, ""},
		"a wrapped dump":         {`{"rank": 0, "host": "n0", "dump": {"version": "2.10", "pg_config": {}}}`, FlightRecorder, ""},
		"dumps by rank":          {`{"0": {"version": "2.10", "entries": [{"record_id": 1}]}, "1": {`, FlightRecorder, ""},
		"a list of wrappers":     {`[{"rank": 0, "dump": {"pg_config": {}}}]`, FlightRecorder, ""},
		"a dump within a string": {`"{\"version\": \"2.10\", \"pg_config\": {}}"`, FlightRecorder, ""},
		"pickles in base64":      {`{"0": "gAJ9cQAoWAcAAAB2ZXJzaW9u", "1": "gAJ9"}`, FlightRecorder, ""},
		"a log":                  {"[rank3]:[E x.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n", RankLog, ""},
		"a log, far behind":      {strings.Repeat("step\n", sniffLimit/4) + "Root Cause (first observed failure):\n", RankLog, ""},
		"words about time-outs":  {"see Watchdog caught collective operation timeout\n", Unknown, "watchdog"},
		"a dump of before 1.1":   {`[{"record_id": 1, "seq_id": 4`, FlightRecorder, ""},
		"RAS in text":            {"NCCL version 2.26.2 compiled with CUDA 12.6\nCUDA runtime", RAS, ""},
		"RAS behind a prompt":    {"$ ncclras -v\nNCCL version 2.26.2 compiled with CUDA 12.6\n", RAS, ""},
		"RAS in JSON":            {"{\n  \"nccl_version\": \"2.28.9\",\n  \"communicators_count\": 1,", RAS, ""},
		"RAS in JSON, a list":    {"[\n {\"nccl_version\": \"2.28.9\", \"communicators_count\": 1,", RAS, ""},
		"RAS in JSON, a line":    {"{\"nccl_version\": \"2.28.9\", \"communicators\": []}\n{\"nccl_version\"", RAS, ""},
		"JSON behind a prompt":   {"$ ncclras -f json\n{\n  \"nccl_version\": \"2.28.9\",\n  \"communicators_count\": 1,", RAS, ""},
		"JSON behind a command":  {"$ cat x\n{\n  \"nccl_version\": \"2.28.9\"}", Unknown, `got text that begins with "$ cat x"`},
		"a log that names it":    {"rank0: NCCL version 2.26.2+cuda12.6\n", Unknown, `got text that begins with "rank0: NCCL`},
		"tar":                    {"a/rank_0" + strings.Repeat("\x00", 249) + "ustar\x0000", Unknown, "got a tar archive; unpack it"},
		"zip":                    {"PK\x03\x04\x14\x00", Unknown, "got a zip archive; unpack it"},
		"an empty zip":           {"PK\x05\x06\x00", Unknown, "got a zip archive; unpack it"},
		"text about ustar":       {"PK ustar", Unknown, `got text that begins with "PK ustar"`},
		"another object":         {`{"slow_rank": 5}`, Unknown, ""},
		"another array":          {`[{"slow_rank": 5}]`, Unknown, ""},
		"a number":               {`5`, Unknown, ""},
		"key too far behind":     {`{"x": "` + strings.Repeat("x", sniffLimit) + `", "traceEvents": []}`, Unknown, ""},
		"cut before a known key": {`{"x": [1, 2`, Unknown, "got JSON that is cut off"},
		"empty":                  {``, Unknown, "got an empty file"},
		"text":                   {"hello\nworld", Unknown, `got text that begins with "hello"; want PyTorch traces`},
		"blank lines":            {"\n \n", Unknown, "got a file of blanks"},
		"damaged JSON":           {`{"x": [1, }`, Unknown, "got JSON that is damaged at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			checkSniff(t, path, tc.want, tc.err)

			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			_, err := w.Write([]byte(tc.content))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, os.WriteFile(path, z.Bytes(), 0o600))
			checkSniff(t, path, tc.want, tc.err)
		})
	}
}

// Messages of ncclras and parts of answers are named as what they are.
func TestFile_NoAnswerOfRAS_SaysWhatToDo(t *testing.T) {
	const refused = "Connecting to 127.0.0.1:28028: Connection refused\n"
	for name, tc := range map[string]struct{ content, found, want string }{
		"refused":            {refused + "Failed to connect to the NCCL RAS service!\nPlease make sure\n", `"Connecting to 127.0.0.1:28028: Connection refused"`, "while the job runs"},
		"refused alone":      {refused, `"Connecting to 127.0.0.1:28028: Connection refused"`, "NCCL_RAS_ADDR"},
		"refused, lowercase": {"connect to localhost:28028: Connection refused\n", `"connect to localhost:28028: Connection refused"`, "while the job runs"},
		"behind a prompt":    {"$ ncclras -v\nFailed to connect to the NCCL RAS service!\n", `"Failed to connect to the NCCL RAS service!"`, "while the job runs"},
		"closed":             {"NCCL unexpectedly closed the connection\n", "NCCL unexpectedly closed", "while the job runs"},
		"a warning":          {"#0-0 (fa93daea854b060b) MISMATCH\n  Communicator ranks have different AllGather operation counts\n", `"#0-0 (fa93daea854b060b) MISMATCH"`, `from "NCCL version" on`},
		"counts":             {"  Communicator ranks have different AllGather operation counts\n  7 ranks have launched", "Communicator ranks have different", `from "NCCL version" on`},
		"a table":            {"Job summary\n===========\n\n  Nodes  Processes\n", `"Job summary"`, `from "NCCL version" on`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			got, err := File(path)
			assert.Equal(t, Unknown, got)
			require.ErrorIs(t, err, ErrNoAnswer)
			require.ErrorContains(t, err, tc.found)
			require.ErrorContains(t, err, tc.want)
		})
	}
	for name, content := range map[string]string{
		"another port":     "Connecting to 10.0.0.1:29500: Connection refused\n",
		"a text about it":  "we saw Job summary and MISMATCH\n",
		"a log of a rank":  "[rank3]:[E x.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n" + refused,
		"a long log of it": strings.Repeat("step\n", 2000) + refused,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			_, err := File(path)
			assert.NotErrorIs(t, err, ErrNoAnswer)
		})
	}
}

func checkSniff(t *testing.T, path string, want Format, why string) {
	t.Helper()
	got, err := File(path)
	assert.Equal(t, want, got)
	if why == "" {
		require.NoError(t, err)
	} else {
		require.ErrorContains(t, err, why)
	}
}

func TestSniffDamagedGzip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.json.gz")
	require.NoError(t, os.WriteFile(path, []byte{0x1f, 0x8b, 8, 0}, 0o600))
	_, err := File(path)
	require.ErrorContains(t, err, "open gzip: unexpected EOF")
}

func FuzzSniff(f *testing.F) {
	f.Add([]byte(`{"schemaVersion": 1}`))
	f.Add([]byte(`[{"ph": "X"}]`))
	f.Add([]byte(`{"a": {"b": [1, {"c": null}]}, "resourceSpans": [`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := sniffJSON(bytes.NewReader(in))
		if err != nil && got != Unknown {
			t.Errorf("format %d with error %v", got, err)
		}
	})
}
