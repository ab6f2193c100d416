// SPDX-License-Identifier: Apache-2.0

package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// options are those with which file_storage opens its files.
func options() *bbolt.Options {
	return &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, PageSize: 4096}
}

// database returns a file of bbolt with so many requests, of which every third was deleted, and with a bucket in it.
func database(tb testing.TB, requests, size int) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	db, err := bbolt.Open(path, 0o600, options())
	require.NoError(tb, err)
	for i := range requests {
		require.NoError(tb, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("default"))
			if err != nil {
				return err
			}
			if _, err := b.CreateBucketIfNotExists([]byte("inner")); err != nil {
				return err
			}
			if i%3 == 2 {
				if err := b.Delete(fmt.Append(nil, i-1)); err != nil {
					return err
				}
			}
			return b.Put(fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, size+i))
		}))
	}
	require.NoError(tb, db.Close())
	content, err := os.ReadFile(path)
	require.NoError(tb, err)
	return content
}

func checkBytes(b []byte) error { return Check(bytes.NewReader(b), int64(len(b))) }

func TestCheck_Whole_IsNoDamage(t *testing.T) {
	require.NoError(t, checkBytes(nil), "bbolt initialises an empty file")
	for _, size := range []int{1, 100, 5000, 100_000} {
		for _, requests := range []int{0, 1, 10, 300} {
			require.NoError(t, checkBytes(database(t, requests, size)), "%d requests of %d bytes", requests, size)
		}
	}
}

// What bbolt itself writes is never damaged, after any puts and deletes.
func TestCheck_AnyTransactions_IsNoDamage(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range tier.N(t, 5, 200) {
		path := filepath.Join(t.TempDir(), "file")
		db, err := bbolt.Open(path, 0o600, options())
		require.NoError(t, err)
		keys, size := 1+random.IntN(3000), 1+random.IntN(8000)
		for range random.IntN(150) {
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return change(tx, random, keys, size) }))
			if random.IntN(10) == 0 {
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, checkBytes(content), "seed %d", seed)
			}
		}
		require.NoError(t, db.Close())
	}
}

// change makes some puts and deletes.
func change(tx *bbolt.Tx, random *rand.Rand, keys, size int) error {
	b, err := tx.CreateBucketIfNotExists([]byte("default"))
	if err != nil {
		return err
	}
	for range random.IntN(40) {
		key := fmt.Append(nil, random.IntN(keys))
		if random.IntN(2) == 0 {
			err = b.Delete(key)
		} else {
			err = b.Put(key, make([]byte, random.IntN(size)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestCheck_Damage_IsNamed(t *testing.T) {
	whole := database(t, 300, 5000)
	for want, spoil := range map[string]func(b []byte) []byte{
		"no valid meta page": func(b []byte) []byte { clear(b[:8192]); return b },
		"bytes; want the page at": func(b []byte) []byte { // its root is behind the end
			m, err := newestMeta(bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err)
			return b[:m.root*m.pageSize]
		},
		"the number 0 in it": func(b []byte) []byte { clear(b[8192:]); return b },
		"flags 0xff": func(b []byte) []byte {
			for at := 8192; at+4096 <= len(b); at += 4096 {
				if binary.LittleEndian.Uint64(b[at:]) == uint64(at/4096) {
					b[at+8] = 0xff
				}
			}
			return b
		},
	} {
		err := checkBytes(spoil(bytes.Clone(whole)))
		require.ErrorIs(t, err, ErrDamaged, want)
		require.ErrorContains(t, err, want)
	}
	first := bytes.Clone(whole)
	clear(first[:4096])
	require.NoError(t, checkBytes(first), "the other meta page, of the transaction before or after, is enough")
}

// A file in which anything is changed is opened and read by bbolt without a fault wherever Check finds nothing. bbolt
// ends the process where it does: it runs in another one.
func TestCheck_AnyChange_FoundWhereBboltFails(t *testing.T) {
	if path := os.Getenv("BOLTFILE_OPEN"); path != "" {
		walk(t, path)
		return
	}
	whole := database(t, 60, 3000)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for i := range tier.N(t, 30, 1000) {
		b := changed(random, whole)
		err := checkBytes(b)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			found++
			continue
		}
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, b, 0o600))
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "BOLTFILE_OPEN="+path)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "seed %d, change %d: %s", seed, i, out)
	}
	assert.Positive(t, found)
}

// changed returns a copy in which bytes of a page's structure were changed, or whose end is missing.
func changed(random *rand.Rand, whole []byte) []byte {
	b := bytes.Clone(whole)
	if random.IntN(8) == 0 {
		return b[:random.IntN(len(b))]
	}
	for range 1 + random.IntN(3) {
		page := random.IntN(len(b)/4096) * 4096
		b[page+random.IntN(64)] ^= 1 << random.IntN(8)
	}
	return b
}

// walk opens a file, reads and writes all of it.
func walk(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, options())
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("default"))
		if err != nil {
			return err
		}
		sum := fnv.New64a()
		var keys [][]byte
		if err := b.ForEach(func(k, v []byte) error {
			_, _ = sum.Write(v)
			if v != nil {
				keys = append(keys, bytes.Clone(k))
			}
			return nil
		}); err != nil {
			return err
		}
		for _, k := range keys {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		return b.Put([]byte("0"), make([]byte, 10_000))
	}))
}
