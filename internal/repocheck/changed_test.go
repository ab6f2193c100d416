// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// module makes a repository with the scripts about changes, and one commit of packages, by
// folder, whose only test has the given body.
func module(t *testing.T, bodies map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testdata.Program(t, path, text)
	}
	for _, script := range []string{"scripts/test-changed.sh", "scripts/fuzz.sh", "scripts/touched.sh", "scripts/changed-packages.sh"} {
		text, err := os.ReadFile(filepath.Join(testdata.Root(t), script))
		require.NoError(t, err)
		write(script, string(text))
	}
	write("go.mod", "module toy\n\ngo 1.26.0\n")
	for folder, body := range bodies {
		name := filepath.Base(folder)
		write(folder+"/a.go", "package "+name+"\n")
		write(folder+"/a_test.go", "package "+name+"\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nvar _ = time.Now\n\nfunc TestA(t *testing.T) { "+body+" }\n")
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Add"}} {
		out, err := in(dir, "git", args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return dir
}

func in(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}

// left runs the script and returns what the file of packages that are left has then.
func left(t *testing.T, dir, seconds, before, base string) (after []string, output string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "left")
	require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
	out, err := in(dir, "scripts/test-changed.sh", seconds, file, base).CombinedOutput()
	text, readErr := os.ReadFile(file)
	require.NoError(t, readErr)
	return strings.Fields(string(text)), string(out), err
}

func TestChanged_FailureOfALeftOutPackage_FailsAndIsKept(t *testing.T) {
	dir := module(t, map[string]string{"fine": "", "faulty": "t.Error()"})

	after, output, err := left(t, dir, "60", "toy/faulty\ntoy/gone\n", "HEAD")

	require.Error(t, err)
	assert.Equal(t, []string{"toy/faulty"}, after)
	assert.Contains(t, output, "FAIL\ttoy/faulty")
	assert.NotContains(t, output, "toy/fine", "which does not differ")
}

func TestChanged_NoTime_LeavesWhatDiffersFirst(t *testing.T) {
	dir := module(t, map[string]string{"fine": "", "faulty": "t.Error()"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fine", "b.go"), []byte("package fine\n"), 0o600))

	after, output, err := left(t, dir, "0", "toy/faulty\n", "HEAD")

	require.NoError(t, err)
	assert.Equal(t, []string{"toy/fine", "toy/faulty"}, after)
	assert.Contains(t, output, "left out after 0 s: toy/fine toy/faulty")

	after, output, err = left(t, dir, "60", "", "HEAD")

	require.NoError(t, err)
	assert.Empty(t, after)
	assert.Contains(t, output, "ok  \ttoy/fine")
}

// A package that fails before its time is up has failed, and one beside it that finds no
// time has not.
func TestChanged_TimeUp_TellsFailuresFromDelays(t *testing.T) {
	if !tier.Full(t) {
		t.Skip("takes its time; the full tier has it")
	}
	dir := module(t, map[string]string{
		"faulty": "t.Error() }\n\nfunc TestB(t *testing.T) { time.Sleep(time.Hour)",
		"long":   "time.Sleep(time.Hour)",
	})

	after, output, err := left(t, dir, "20", "", "")

	require.Error(t, err)
	assert.Equal(t, []string{"toy/faulty", "toy/long"}, after)
	assert.Contains(t, output, "failed: toy/faulty\n")
	assert.Contains(t, output, "left out after 20 s: toy/long\n")
}
