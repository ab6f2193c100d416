package testdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRootAbove_NestedModule_ReturnsOutermost(t *testing.T) {
	root := t.TempDir()
	nested := filepath.Join(root, "e2e", "deep")
	require.NoError(t, os.MkdirAll(nested, 0o755))
	write := func(path, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	write("go.mod", "module github.com/lockstep-otel/lockstep\n\ngo 1.26.0\n")
	write("e2e/go.mod", "module github.com/lockstep-otel/lockstep/e2e\n\ngo 1.26.0\n")

	got, err := rootAbove(nested)

	require.NoError(t, err)
	require.Equal(t, root, got)
}

func TestRootAbove_NoCheckout_NamesFolder(t *testing.T) {
	dir := t.TempDir()

	_, err := rootAbove(dir)

	require.ErrorContains(t, err, dir)
}
