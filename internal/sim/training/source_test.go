// SPDX-License-Identifier: Apache-2.0

package training

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestSourceHash(t *testing.T) {
	files := fstest.MapFS{"a.go": {Data: []byte("a")}, "b.go": {Data: []byte("b")}}
	was := hashSources(files)
	files["b_test.go"] = &fstest.MapFile{Data: []byte("test")}
	assert.Equal(t, was, hashSources(files), "tests simulate nothing")
	files["b.go"] = &fstest.MapFile{Data: []byte("B")}
	assert.NotEqual(t, was, hashSources(files))
	assert.Len(t, SourceHash(), 64)
	assert.NotEqual(t, hashSources(fstest.MapFS{}), SourceHash())
}
