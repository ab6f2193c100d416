// SPDX-License-Identifier: Apache-2.0

package training

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"
)

//go:embed *.go
var sources embed.FS

// SourceHash returns a hash of this package's own sources, tests left out: what a
// scenario means follows from them as much as from its file.
func SourceHash() string { return hashSources(sources) }

func hashSources(files fs.FS) string {
	h := sha256.New()
	names, err := fs.Glob(files, "*.go")
	if err != nil {
		panic(err) // the pattern is well-formed
	}
	for _, name := range names { // sorted
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err) // it was listed
		}
		_, _ = h.Write([]byte(name + "\x00"))
		_, _ = h.Write(append(text, 0))
	}
	return hex.EncodeToString(h.Sum(nil))
}
