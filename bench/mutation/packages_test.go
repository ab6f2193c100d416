// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// Tests of these take numbers from the tier and test other packages than their own.
var elsewhere = []string{"./bench", "./cmd", "./e2e", "./inject", "./internal/capability", "./internal/cbuild", "./internal/repocheck", "./internal/tier"}

// What the quick tier misses is measured where tests were cut: in every such package.
func TestPackages_TestsThatTakeNumbersFromTheTier_AreListed(t *testing.T) {
	text, err := os.ReadFile("packages.txt")
	require.NoError(t, err)
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			listed[fields[0]] = true
		}
	}
	root, found := testdata.Root(t), 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := "./" + filepath.ToSlash(folder)
		for _, prefix := range elsewhere {
			if strings.HasPrefix(name, prefix) {
				return nil
			}
		}
		if strings.Contains(string(source), "lockstep/internal/tier\"") {
			found++
			assert.True(t, listed[name], "%s is missing from packages.txt", name)
		}
		return nil
	}))
	assert.NotZero(t, found)
}
