// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// One bit of a zip directory can rename a record, so that torch.load does not find the storage that the
// pickle names. No checksum is of the directory.
func TestRenamedStorages(t *testing.T) {
	for _, job := range []string{"megatron, legacy", "deepspeed, ZeRO 1", "lightning, last.ckpt", "dcp, overwrite in place"} {
		dir := saves(t, job, 100)
		require.True(t, gate(t, os.DirFS(dir), true).OK(), job)
		n := 0
		err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data := contents(t, file)
			at := bytes.LastIndex(data, []byte("/data/0"))
			if at < 0 {
				return nil
			}
			n++
			always := bytes.Count(data[at:], []byte("PK\x05\x06")) == 1 // of a file of items, the last is looked at always
			lost := bytes.Clone(data)
			lost[at+len("/data/")] ^= 0x40
			overwrite(t, file, lost)
			require.False(t, gate(t, os.DirFS(dir), true).OK(), "%s: %s", job, file)
			if always {
				r := gate(t, os.DirFS(dir), false)
				require.False(t, r.OK(), "%s: %s", job, file)
				require.Contains(t, told(r), "got none; want the storage that the pickle names")
			}
			overwrite(t, file, data)
			return nil
		})
		require.NoError(t, err)
		require.Positive(t, n, job)
	}
}
