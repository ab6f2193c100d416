// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Cache keeps the members of process groups that the dumps of one job have alike: in a
// job of 16,384 ranks, each dump lists them all, in 100 KB. It may be shared by decoders
// that run at the same time.
type Cache struct {
	seed   maphash.Seed
	mu     sync.Mutex
	groups map[uint64]members
	room   int
}

// members are the ranks of a group, and what was made of them.
type members struct {
	text   string
	ranks  []int64
	digest string
}

// cacheMembers bounds the members that a Cache holds: 4 Mi are 64 MiB with their texts,
// those of a job of 131,072 ranks in 32 groups each.
const cacheMembers = 4 << 20

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{seed: maphash.MakeSeed(), groups: map[uint64]members{}, room: cacheMembers}
}

// get returns what a text lists, where that is known.
func (c *Cache) get(text []byte) (members, bool) {
	if c == nil {
		return members{}, false
	}
	key := maphash.Bytes(c.seed, text)
	c.mu.Lock()
	m, ok := c.groups[key]
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
	if _, taken := c.groups[key]; !taken && c.room >= len(m.ranks) {
		m.text = string(text)
		c.groups[key] = m
		c.room -= len(m.ranks)
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
