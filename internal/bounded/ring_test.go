// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

func TestRing_TooManyKeys_FirstAddedIsForgotten(t *testing.T) {
	r := NewRing[int](3)
	for _, k := range []int{1, 2, 3} {
		assert.True(t, r.Add(k))
	}
	assert.False(t, r.Add(1))
	assert.True(t, r.Add(4))
	assert.False(t, r.Seen(1), "it kept its place when it came again")
	assert.True(t, r.Seen(2))
	assert.Equal(t, 3, r.Len())
	assert.Equal(t, int64(1), r.Evicted())
	assert.True(t, NewRing[int](0).Add(1))
}

func TestRing_TooManyBytes_FirstAddedAreForgotten(t *testing.T) {
	r := NewTextRing[string](100, 6)
	r.Add("aa")
	r.Add("bbb")
	assert.True(t, r.Add("cccc"))
	assert.False(t, r.Seen("aa"))
	assert.False(t, r.Seen("bbb"))
	assert.Equal(t, 4, r.Bytes())
	assert.True(t, r.Add("too long"))
	assert.False(t, r.Seen("too long"))
	assert.True(t, r.Seen("cccc"), "what does not fit pushes nothing out")
	assert.Equal(t, int64(3), r.Evicted())
}

func TestRing_RandomKeys_AsNaiveList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range tier.N(t, 50, 2000) {
		keys, maxBytes := 1+rng.IntN(30), rng.IntN(60)
		r := NewTextRing[string](keys, maxBytes)
		var all []string
		bytes := func() int { return len(strings.Join(all, "")) }
		for range 200 {
			k := strings.Repeat(string(rune('a'+rng.IntN(20))), 1+rng.IntN(4))
			require.Equal(t, slices.Contains(all, k), r.Seen(k))
			require.Equal(t, !slices.Contains(all, k), r.Add(k))
			if !slices.Contains(all, k) && (maxBytes == 0 || len(k) <= maxBytes) {
				all = append(all, k)
			}
			for len(all) > keys || maxBytes > 0 && bytes() > maxBytes {
				all = all[1:]
			}
			require.Equal(t, len(all), r.Len())
			require.Equal(t, bytes(), r.Bytes())
		}
	}
}

func BenchmarkRing_Add(b *testing.B) {
	r := NewRing[int64](4096)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		r.Add(i)
	}
}
