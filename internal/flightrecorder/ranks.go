// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Cache keeps the members of process groups that the dumps of one job have alike: in a
// job of 16,384 ranks, each dump lists them all, in 100 KB. It may be shared by decoders
// that run at the same time.
type Cache struct {
	seed   maphash.Seed
	mu     sync.Mutex
	groups *bounded.Map[uint64, members]
}

// members are the ranks of a group, and what was made of them.
type members struct {
	text   string
	ranks  []int64
	digest string
}

const (
	// cacheBytes bounds what a Cache holds: 4 Mi members with their texts, those of a job of
	// 131,072 ranks in 32 groups each.
	cacheBytes = 64 << 20
	// groupBytes is what a group takes beside its text and its members.
	groupBytes = 256
)

// NewCache returns an empty cache.
func NewCache() *Cache { return newCache(cacheBytes) }

func newCache(bytes int) *Cache {
	return &Cache{seed: maphash.MakeSeed(), groups: bounded.NewMap(bounded.MapConfig[uint64, members]{Bytes: bytes, Size: bytesOf})}
}

func bytesOf(_ uint64, m members) int {
	return groupBytes + len(m.text) + len(m.ranks)*int(unsafe.Sizeof(int64(0)))
}

// get returns what a text lists, where that is known.
func (c *Cache) get(text []byte) (members, bool) {
	if c == nil {
		return members{}, false
	}
	key := maphash.Bytes(c.seed, text)
	c.mu.Lock()
	m, ok := c.groups.Peek(key)
	c.mu.Unlock()
	return m, ok && m.text == string(text)
}

// put keeps what a text lists, as long as there is room.
func (c *Cache) put(text []byte, m members) {
	if c == nil {
		return
	}
	key := maphash.Bytes(c.seed, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups.Has(key) {
		return
	}
	if m.text = string(text); c.groups.Fits(key, m) {
		c.groups.Set(key, m)
	}
}

func readMembers(text []byte, limit int) (members, bool) {
	ranks, ok := parseRanks(text, limit)
	if !ok || len(ranks) == 0 {
		return members{}, ok
	}
	return members{ranks: ranks, digest: model.RanksDigest(ranks)}, true
}

// parseRanks reads "[0, 1, 2]" or "[0,1]"; nil where it is empty. Ranks must differ.
func parseRanks(b []byte, limit int) ([]int64, bool) {
	b = trim(b)
	if len(b) == 0 {
		return nil, true
	}
	if b[0] != '[' || b[len(b)-1] != ']' || len(b) < 2 {
		return nil, false
	}
	b = trim(b[1 : len(b)-1])
	if len(b) == 0 {
		return nil, true
	}
	var ranks []int64
	for {
		n, rest, ok := leadingRank(b)
		if !ok || len(ranks) >= limit {
			return nil, false
		}
		ranks = append(ranks, n)
		if rest = trim(rest); len(rest) == 0 {
			return ranks, distinct(ranks)
		}
		if rest[0] != ',' {
			return nil, false
		}
		b = trim(rest[1:])
	}
}

// leadingRank reads the rank at the start of b.
func leadingRank(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if n = 10*n + int64(b[i]-'0'); n >= maxRank {
			return 0, nil, false
		}
	}
	return n, b[i:], i > 0
}

// trim drops spaces at both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

func distinct(ranks []int64) bool {
	if slices.IsSorted(ranks) {
		return len(slices.Compact(slices.Clone(ranks))) == len(ranks)
	}
	return len(slices.Compact(slices.Sorted(slices.Values(ranks)))) == len(ranks)
}
