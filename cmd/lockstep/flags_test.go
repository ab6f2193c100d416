// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a flag is given that it does not take is said in the words of the command, with what it takes.
func TestFlags_OfAnotherType(t *testing.T) {
	const number = "want a whole number"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"preflight", "--epoch", "abc", "."}, `lockstep: read --epoch: got "abc"; ` + number + "; see `lockstep preflight --help`"},
		{[]string{"preflight", "--epoch", "1.5", "."}, `read --epoch: got "1.5"; ` + number},
		{[]string{"preflight", "--epoch=", "."}, `read --epoch: got ""; ` + number},
		{[]string{"preflight", "--world-size", "99999999999999999999", "."}, `read --world-size: got "99999999999999999999"; ` + number + " of at most 64 bits"},
		{[]string{"preflight", "--timeout", "5", "."}, `read --timeout: got "5"; want a time with its unit, such as 30s or 5m`},
		{[]string{"preflight", "--timeout", "soon", "."}, `read --timeout: got "soon"; want a time with its unit`},
		{[]string{"preflight", "--verify=maybe", "."}, `read --verify: got "maybe"; want true or false`},
		{[]string{"preflight", "--epoch"}, "read --epoch: got nothing; " + number},
		{[]string{"preflight", "--timeout"}, "read --timeout: got nothing; want a time with its unit"},
		{[]string{"preflight"}, "got no path; want one or more: preflight DIR..."},
		{[]string{"analyze", "--max-ops", "x", "."}, `read --max-ops: got "x"; ` + number},
		{[]string{"analyze", "--min-cost-share", "x", "."}, `read --min-cost-share: got "x"; want a number`},
		{[]string{"analyze", "--json=2", "."}, `read --json: got "2"; want true or false`},
		{[]string{"analyze", "--rank-pattern", "(", "."}, "--rank-pattern: got \"(\"; want a regular expression: a ( is not closed"},
		{[]string{"analyze", "--step-pattern", "*", "."}, "--step-pattern: got \"*\"; want a regular expression: nothing in front of a *, + or ? that it repeats"},
		{[]string{"analyze", "--job"}, "read --job: got nothing; want a text"},
		{[]string{"analyze"}, "got no path; want one or more: analyze PATH..."},
		{[]string{"preflight", "--bogus", "."}, "unknown flag: --bogus"},
	} {
		var out, err bytes.Buffer
		require.Equal(t, exitUnusable, Main(tc.args, &out, &err), tc.args)
		require.Empty(t, out.String())
		require.Contains(t, err.String(), tc.want)
		for _, own := range []string{"strconv", "time:", "parsing", "arg(s)"} {
			require.NotContains(t, err.String(), own)
		}
	}
}

// A folder that can not be read is an answer of --json, too.
func TestPreflightJSON_OfNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	good := megatronSave(t)
	for path, want := range map[string]string{
		filepath.Join(good, "nothing"): "got no such file or directory",
		file:                           "got a file; want the folder that holds it",
		good:                           "it is given twice; want different folders",
	} {
		status, out, stderr := runPreflight("--json", good, path)
		require.Equal(t, exitUnusable, status)
		require.Contains(t, stderr, want)
		var got struct {
			Verdict, Why string
			Safe         bool
			Epoch        *int64
			Saves        []any
			Resumes      []any
			Problems     []struct{ Place, Check, Severity, What string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &got), out)
		require.Equal(t, "unknown", got.Verdict)
		require.False(t, got.Safe)
		require.Nil(t, got.Epoch)
		require.NotNil(t, got.Saves)
		require.NotNil(t, got.Resumes)
		require.Contains(t, got.Why, want)
		require.Len(t, got.Problems, 1)
		require.Equal(t, []string{path, "input", "unreadable"}, []string{got.Problems[0].Place, got.Problems[0].Check, got.Problems[0].Severity})
		require.Contains(t, got.Problems[0].What, want)
	}
}
