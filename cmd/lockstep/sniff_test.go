package main

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
		want    format
		err     string
	}{
		"PyTorch":                {"\n{\n \"schemaVersion\": 1,", formatTorch, ""},
		"PyTorch, events last":   {`{"x": {"y": [1, "]"]}, ` + long + `"traceEvents": [`, formatTorch, ""},
		"Chrome's bare array":    {`[{"ph": "X", "name": "a"}, `, formatUnknown, ""},
		"OTLP":                   {`{"resourceSpans":[`, formatOTLP, ""},
		"OTLP with a mark":       {"\xef\xbb\xbf" + `{"resourceSpans":[`, formatOTLP, ""},
		"OTLP of logs":           {`{"resourceLogs":[]}`, formatUnknown, ""},
		"another object":         {`{"slow_rank": 5}`, formatUnknown, ""},
		"another array":          {`[{"slow_rank": 5}]`, formatUnknown, ""},
		"a number":               {`5`, formatUnknown, ""},
		"key too far behind":     {`{"x": "` + strings.Repeat("x", sniffLimit) + `", "traceEvents": []}`, formatUnknown, ""},
		"cut before a known key": {`{"x": [1, 2`, formatUnknown, "unexpected EOF"},
		"empty":                  {``, formatUnknown, "EOF"},
		"text":                   {`hello`, formatUnknown, "invalid character"},
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

func checkSniff(t *testing.T, path string, want format, why string) {
	t.Helper()
	got, err := sniff(path)
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
	_, err := sniff(path)
	require.ErrorContains(t, err, "open gzip: unexpected EOF")
}

func FuzzSniff(f *testing.F) {
	f.Add([]byte(`{"schemaVersion": 1}`))
	f.Add([]byte(`[{"ph": "X"}]`))
	f.Add([]byte(`{"a": {"b": [1, {"c": null}]}, "resourceSpans": [`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := sniffJSON(bytes.NewReader(in))
		if err != nil && got != formatUnknown {
			t.Errorf("format %d with error %v", got, err)
		}
	})
}

func TestDiscoverTakesEachFileOnce(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o700))
	a, b := filepath.Join(dir, "a.json"), filepath.Join(sub, "b")
	for _, path := range []string{a, b} {
		require.NoError(t, os.WriteFile(path, []byte(`{"traceEvents": []}`), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "damaged.json"), []byte("{"), 0o600))

	var p problems
	in := discover([]string{a, dir, dir + "/*.json", sub + "/../a.json"}, &p)
	require.Len(t, in.files, 2)
	assert.Equal(t, []string{a, b}, []string{in.files[0].path, in.files[1].path})
	assert.EqualValues(t, 2*len(`{"traceEvents": []}`), in.size())
	assert.Equal(t, 1, in.skipped)
	require.Len(t, p.list, 1, "damaged.json once")
	assert.Equal(t, filepath.Join(dir, "damaged.json"), p.list[0].File)
}

func TestDiscoverRefusesWhatIsNoFile(t *testing.T) {
	var p problems
	discover([]string{os.DevNull}, &p)
	require.Len(t, p.list, 1)
	assert.Contains(t, p.list[0].What, "want a regular file")
}

func TestProblemsAreBounded(t *testing.T) {
	var p problems
	for range maxProblems + 7 {
		p.add("f", -1, os.ErrInvalid)
	}
	assert.Len(t, p.list, maxProblems)
	assert.EqualValues(t, 7, p.omitted)
}
