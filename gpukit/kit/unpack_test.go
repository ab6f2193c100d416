// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644))
}

func packed(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// made returns a kit in folders of the test.
func made(t *testing.T) *Kit {
	t.Helper()
	return New(t.TempDir(), t.TempDir(), t.TempDir())
}

const script = "#!/bin/sh\necho \"$1 of the unpacked\"\n"

func TestUnpack_PackedCommand_RunsAndIsRemoved(t *testing.T) {
	k := made(t)
	write(t, k.Lockstep()+".gz", packed(t, script))
	remove, err := k.Unpack(context.Background(), filepath.Join(k.Dir, "none"), k.Work)
	require.NoError(t, err)
	part, err := k.With("part")
	require.NoError(t, err)
	r, err := part.Run(context.Background(), Command{Path: part.Lockstep(), Args: []string{"word"}})
	require.NoError(t, err)
	assert.Equal(t, "word of the unpacked\n", r.Stdout)
	remove()
	assert.NoFileExists(t, k.Lockstep())
}

func TestUnpack_CommandInTheKit_Stays(t *testing.T) {
	k := made(t)
	path := k.Lockstep()
	write(t, path, []byte(script))
	remove, err := k.Unpack(context.Background())
	require.NoError(t, err)
	remove()
	assert.Equal(t, path, k.Lockstep())
	assert.FileExists(t, path)
}

func TestUnpack_NoFolderCan_NamesEachReason(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"cut off":        {packed(t, script)[:20], "lockstep.gz: unexpected EOF"},
		"not packed":     {[]byte("no archive at all"), "lockstep.gz: gzip: invalid header"},
		"other machine":  {packed(t, "\x7fELF no program"), "exec format error"},
		"it breaks down": {packed(t, "#!/bin/sh\necho why >&2\nexit 3\n"), "exit status 3: why"},
	} {
		t.Run(name, func(t *testing.T) {
			k := made(t)
			write(t, k.Lockstep()+".gz", c.content)
			remove, err := k.Unpack(context.Background(), k.Work, filepath.Join(k.Dir, "none"))
			remove()
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "none: no such file or directory", "the second folder's reason")
			left, err := os.ReadDir(k.Work)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func sum(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

func TestVerify_BrokenFiles_AreNamed(t *testing.T) {
	k := made(t)
	write(t, filepath.Join(k.Dir, "lib", "good.so"), []byte("good"))
	write(t, filepath.Join(k.Dir, "lib", "bad one.so"), []byte("bad"))
	write(t, filepath.Join(k.Dir, "MANIFEST"), []byte("# version 1\n"+
		sum("good")+"  lib/good.so\n"+sum("other")+"  lib/bad one.so\n"+sum("gone")+"  lib/gone.so\n"))
	broken, err := k.Verify()
	require.NoError(t, err)
	assert.Equal(t, []string{"lib/bad one.so is not as it was built", "lib/gone.so is missing"}, broken)
}

func TestVerify_ManifestOfAnotherFormat_IsAnError(t *testing.T) {
	for _, line := range []string{"nonsense", sum("x") + "  ../../etc/passwd"} {
		k := made(t)
		write(t, filepath.Join(k.Dir, "MANIFEST"), []byte(line+"\n"))
		_, err := k.Verify()
		assert.ErrorContains(t, err, "read manifest: got ")
	}
}

func TestVerify_NoManifest_IsNoError(t *testing.T) {
	broken, err := made(t).Verify()
	assert.NoError(t, err)
	assert.Empty(t, broken)
}
