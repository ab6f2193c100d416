// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fuzzed returns which targets the script would run, and for how long, in a module with one
// commit and a file that was changed since.
func fuzzed(t *testing.T, change string, args ...string) string {
	t.Helper()
	dir := module(t, map[string]string{
		"fine":           "}\n\nfunc FuzzFine(f *testing.F) {",
		"faulty":         "}\n\nfunc FuzzFaulty(f *testing.F) {",
		"internal/whole": "}\n\nfunc FuzzPipelineData(f *testing.F) {",
	})
	if change != "" {
		file := filepath.Join(dir, change)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("package "+filepath.Base(filepath.Dir(file))+"\n"), 0o600))
	}
	out, err := in(dir, "scripts/fuzz.sh", append([]string{"-n"}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

func TestFuzz_ChangedPackage_RunsAlone(t *testing.T) {
	assert.Empty(t, fuzzed(t, "", "400x", "80x", "HEAD"))
	assert.Equal(t, "./fine FuzzFine 400x\n", fuzzed(t, "fine/b.go", "400x", "80x", "HEAD"))
	assert.Equal(t, "./internal/whole FuzzPipelineData 10x\n", fuzzed(t, "internal/whole/b.go", "400x", "80x", "HEAD"))
}

func TestFuzz_InputsOfAllChanged_RunTheOthersShortly(t *testing.T) {
	assert.Equal(t, "./faulty FuzzFaulty 80x\n./fine FuzzFine 80x\n./internal/whole FuzzPipelineData 2x\n",
		fuzzed(t, "testdata/a.json", "400x", "80x", "HEAD"))
}

func TestFuzz_NoCommit_RunsAll(t *testing.T) {
	const all = "./faulty FuzzFaulty 400x\n./fine FuzzFine 400x\n./internal/whole FuzzPipelineData 10x\n"
	assert.Equal(t, all, fuzzed(t, "", "400x", "80x", ""))
	assert.Equal(t, all, fuzzed(t, "", "400x", "80x", "none"), "a commit that is not there")
	t.Setenv("FUZZTIME", "400x")
	assert.Equal(t, all, fuzzed(t, ""))
	t.Setenv("FUZZTIME_WHOLE", "7x")
	assert.Contains(t, fuzzed(t, ""), "FuzzPipelineData 7x\n")
	t.Setenv("FUZZTIME", "3s")
	assert.Contains(t, fuzzed(t, ""), "FuzzPipelineData 3s\n")
}
