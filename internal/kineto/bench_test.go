// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// BenchmarkParse reads the largest real trace that is here, else a recording.
// Bytes are those of the plain JSON.
func BenchmarkParse(b *testing.B) {
	path, packed := largestTrace(b)
	b.Run("gzip", func(b *testing.B) { benchmarkParse(b, path, packed) })
	plain, _, err := uncompressed(bytes.NewReader(packed))
	require.NoError(b, err)
	var buf bytes.Buffer
	_, err = buf.ReadFrom(plain)
	require.NoError(b, err)
	b.Run("plain", func(b *testing.B) { benchmarkParse(b, path, buf.Bytes()) })
	b.Run("inflate only", func(b *testing.B) {
		b.SetBytes(int64(buf.Len()))
		for b.Loop() {
			z, err := gzip.NewReader(bytes.NewReader(packed))
			require.NoError(b, err)
			buf.Reset()
			_, err = buf.ReadFrom(z)
			require.NoError(b, err)
		}
	})
}

func benchmarkParse(b *testing.B, path string, content []byte) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		tr, err := Parse(b.Context(), bytes.NewReader(content), path, DefaultOptions())
		require.NoError(b, err)
		b.SetBytes(tr.Stats().Bytes)
		for range tr.Ops() {
		}
	}
}

func largestTrace(tb testing.TB) (path string, content []byte) {
	tb.Helper()
	base := os.Getenv(testdata.EnvData)
	if base == "" {
		base = filepath.Join(testdata.Root(tb), "..", "shared", "data")
	}
	dir := filepath.Join(base, "kineto-single")
	if _, err := os.Stat(dir); err != nil {
		dir = testdata.Recording(tb, "slow")
	}
	files, problems := Discover([]string{dir}, DefaultOptions())
	require.Empty(tb, problems)
	best := files[0]
	for _, f := range files {
		if f.Size > best.Size {
			best = f
		}
	}
	content, err := os.ReadFile(best.Path)
	require.NoError(tb, err)
	return best.Path, content
}
