// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash"
	"sync"
)

const (
	minKey = 16 // bytes; no weaker than the truncated digest
	maxKey = 4096
	macLen = 16 // HMAC-SHA-256, truncated (RFC 8762, 4.4)
)

// Key authenticates packets with HMAC-SHA-256. It is safe for concurrent use.
type Key struct{ pool sync.Pool }

// NewKey returns a key of 16 to 4,096 bytes; it keeps none of secret.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) < minKey || len(secret) > maxKey {
		return nil, fmt.Errorf("make key: got %d bytes; want %d to %d", len(secret), minKey, maxKey)
	}
	own := append([]byte(nil), secret...)
	k := &Key{}
	k.pool.New = func() any { return &digest{h: hmac.New(sha256.New, own)} }
	return k, nil
}

type digest struct {
	h   hash.Hash
	sum [sha256.Size]byte
}

// sign writes the digest of head and tail into to, which is macLen bytes and may
// lie behind either.
func (k *Key) sign(to, head, tail []byte) {
	d := k.pool.Get().(*digest)
	copy(to[:macLen], d.of(head, tail))
	k.pool.Put(d)
}

func (k *Key) verify(mac, head, tail []byte) bool {
	d := k.pool.Get().(*digest)
	ok := subtle.ConstantTimeCompare(mac, d.of(head, tail)) == 1
	k.pool.Put(d)
	return ok
}

func (d *digest) of(head, tail []byte) []byte {
	d.h.Reset()
	d.h.Write(head)
	d.h.Write(tail)
	return d.h.Sum(d.sum[:0])[:macLen]
}
