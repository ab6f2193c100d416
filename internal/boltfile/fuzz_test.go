// SPDX-License-Identifier: Apache-2.0

package boltfile

import (
	"errors"
	"testing"
)

// Whatever a file has, Check returns, with damage or without.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{})
	f.Add(database(f, 3, 10))
	f.Add(database(f, 10, 5000)[:20_000])
	f.Fuzz(func(t *testing.T, file []byte) {
		if err := checkBytes(file); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}
