// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// A folder that fails, that does not compile or that nothing is heard of fails the script; the others run.
func TestFuzz_AFolderDoesNotPass_FailsAndNamesIt(t *testing.T) {
	const target = "}\n\nfunc FuzzOne(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) { %s }) "
	dir := module(t, map[string]string{
		"fine":   fmt.Sprintf(target, ""),
		"faulty": fmt.Sprintf(target, "t.Error(n)"),
		"broken": fmt.Sprintf(target, "undefined()"),
		"killed": "syscall.Kill(os.Getppid(), syscall.SIGKILL)",
	})
	killed := "package killed\n\nimport (\n\t\"os\"\n\t\"syscall\"\n\t\"testing\"\n)\n\n" +
		"func FuzzOne(f *testing.F) { _ = syscall.Kill(os.Getppid(), syscall.SIGKILL) }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "killed", "a_test.go"), []byte(killed), 0o600))
	out, err := in(dir, "scripts/fuzz.sh", "10x").CombinedOutput()
	require.Error(t, err, string(out))
	last := strings.TrimSpace(string(out))
	last = last[strings.LastIndex(last, "\n")+1:]
	assert.Equal(t, "failed: ./broken ./faulty ./killed", last, string(out))
	assert.Contains(t, string(out), "fuzz ./fine FuzzOne (10x)")
}

func TestFuzz_AllPass_Passes(t *testing.T) {
	dir := module(t, map[string]string{"fine": "}\n\nfunc FuzzOne(f *testing.F) { f.Fuzz(func(t *testing.T, n int) {}) "})
	out, err := in(dir, "scripts/fuzz.sh", "10x").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "fuzz targets run: 1, left out: 0")
	out, err = in(dir, "scripts/fuzz.sh", "often").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "want a time such as 10s")
}
