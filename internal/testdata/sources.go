package testdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Sources makes a test's cached result depend on files that the Go tool does not
// know of, such as C sources that the test compiles: it looks at each file that one
// of the globs names, which the tool then looks at, too.
func Sources(t testing.TB, globs ...string) {
	t.Helper()
	for _, glob := range globs {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("list sources: got none for %s (error %v); want at least one", glob, err)
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				t.Fatalf("look at source: %v", err)
			}
		}
	}
}
