// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each file of the parquet exporter is an object of a store, byte by byte.
func TestParquet_StoreOfObjects_HasEachFile(t *testing.T) {
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("bucket"))
	store := httptest.NewServer(gofakes3.New(backend).Server())
	defer store.Close()
	// Operations of four steps make files of two ranges before the end.
	dir := exported(t, map[string]string{"STORE": strings.TrimPrefix(store.URL, "http://")}, `flush_interval: 1s, s3: {endpoint: '${env:STORE}', bucket: bucket,
		prefix: ops, region: us-east-1, node: n1, access_key: key, secret_key: secret, insecure: true}`, func(dir string, c *process) {
		eventually(t, readyLimit, func() error {
			files := parquetFiles(t, dir)
			if len(files) < 2 {
				return fmt.Errorf("got %d files; want some", len(files))
			}
			for _, file := range files {
				if _, err := backend.HeadObject("bucket", keyOf(t, dir, file)); err != nil {
					return err
				}
			}
			return nil
		}, c)
	})
	for _, file := range parquetFiles(t, dir) {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		object, err := backend.GetObject("bucket", keyOf(t, dir, file), nil)
		if err != nil {
			continue // written at the end: the next run uploads it
		}
		got, err := io.ReadAll(object.Contents)
		require.NoError(t, err)
		assert.Equal(t, want, got, file)
	}
}

func parquetFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.parquet"))
	require.NoError(t, err)
	return files
}

// keyOf returns the name of a file's object: the node is in front of the last part.
func keyOf(t *testing.T, dir, file string) string {
	t.Helper()
	rel, err := filepath.Rel(dir, file)
	require.NoError(t, err)
	return "ops/" + filepath.ToSlash(filepath.Join(filepath.Dir(rel), "n1", filepath.Base(rel)))
}
