// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unbounded is what makes an HTTP server whose clients may take for ever.
var unbounded = regexp.MustCompile(`http\.Server\{|\.ToServer\(|confighttp\.NewDefaultServerConfig\(|[^.\w]http\.(ListenAndServe|Serve)\(`)

// TestServersAreBounded: all HTTP servers of ours are internal/component/web's.
func TestServersAreBounded(t *testing.T) {
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skippedDirs[d.Name()]:
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || regexp.MustCompile(`_test\.go$`).MatchString(path):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !unbounded.Match(text) {
			return err
		}
		found++
		assert.Equal(t, filepath.Join(root, "internal", "component", "web", "server.go"), path)
		return nil
	}))
	assert.Equal(t, 1, found)
}
