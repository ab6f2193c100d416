// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

func TestMap_TooManyEntriesByInsertion_FirstAddedLeaves(t *testing.T) {
	var left []string
	m := NewMap(MapConfig[string, int]{Entries: 2, Evicted: func(k string, v int, r Reason) {
		left = append(left, fmt.Sprint(k, v, r == LimitEntries))
	}})
	for i, k := range []string{"a", "b", "a", "c"} {
		assert.True(t, m.Set(k, i))
	}
	assert.Equal(t, []string{"a2 true"}, left, "a was set again and is still the oldest")
	assert.Equal(t, []string{"b", "c"}, slices.Collect(m.Keys()))
	assert.Equal(t, int64(1), m.Evicted())
	m.Get("b")
	m.Set("d", 4)
	assert.Equal(t, []string{"c", "d"}, slices.Collect(m.Keys()))
}

func TestMap_TooManyEntriesByUse_LeastRecentlyUsedLeaves(t *testing.T) {
	m := NewMap(MapConfig[string, int]{Entries: 3, Order: ByUse})
	for i, k := range []string{"a", "b", "c"} {
		m.Set(k, i)
	}
	m.Get("a")
	m.Peek("b")
	assert.True(t, m.Has("b"))
	assert.True(t, m.Update("c", func(v *int) { *v += 10 }))
	assert.False(t, m.Update("x", func(*int) {}))
	m.Set("d", 4)
	assert.Equal(t, []string{"a", "c", "d"}, slices.Collect(m.Keys()))
	assert.True(t, m.Touch("a"))
	assert.False(t, m.Touch("b"))
	assert.Equal(t, []string{"c", "d", "a"}, slices.Collect(m.Keys()))
	k, v, ok := m.Oldest()
	assert.True(t, ok)
	assert.Equal(t, "c", k)
	assert.Equal(t, 12, v)
}

func TestMap_Compare_LeastLeavesAndOfEqualOnesTheFirstAdded(t *testing.T) {
	m := NewMap(MapConfig[string, *int]{Entries: 3, Compare: func(a, b *Pair[string, *int]) int { return cmp.Compare(*a.Value, *b.Value) }})
	two, three, one := 2, 2, 2
	m.Set("two", &two)
	m.Set("three", &three)
	m.Set("one", &one)
	assert.Equal(t, []string{"two", "three", "one"}, slices.Collect(m.Keys()))
	one, three = 1, 3
	m.Touch("one")
	m.Touch("three")
	assert.Equal(t, []string{"one", "two", "three"}, slices.Collect(m.Keys()))
	zero := 0
	m.Set("zero", &zero)
	assert.Equal(t, []string{"zero", "two", "three"}, slices.Collect(m.Keys()), "the entry that is added does not leave for itself")
}

func TestMap_TooManyBytes_OldestLeaveUntilItFits(t *testing.T) {
	var reasons []Reason
	m := NewMap(MapConfig[string, []byte]{
		Bytes: 10, Size: func(k string, v []byte) int { return len(k) + len(v) },
		Evicted: func(_ string, _ []byte, r Reason) { reasons = append(reasons, r) },
	})
	m.Set("a", make([]byte, 3))
	m.Set("b", make([]byte, 2))
	m.Set("c", make([]byte, 2))
	assert.Equal(t, 10, m.Bytes())
	assert.True(t, m.Update("a", func(v *[]byte) { *v = make([]byte, 4) }))
	assert.Equal(t, []string{"a", "c"}, slices.Collect(m.Keys()), "the entry that grows does not leave for itself")
	assert.Equal(t, 8, m.Bytes())
	assert.True(t, m.Set("d", make([]byte, 5)))
	assert.Equal(t, []string{"c", "d"}, slices.Collect(m.Keys()))
	assert.Equal(t, []Reason{LimitBytes, LimitBytes}, reasons)
}

func TestMap_EntryLargerThanAllBytes_LeavesAlone(t *testing.T) {
	m := NewMap(MapConfig[string, []byte]{Bytes: 10, Size: func(_ string, v []byte) int { return len(v) }})
	m.Set("a", make([]byte, 4))
	m.Set("b", make([]byte, 4))
	assert.False(t, m.Set("c", make([]byte, 11)))
	assert.Equal(t, []string{"a", "b"}, slices.Collect(m.Keys()))
	assert.False(t, m.Set("a", make([]byte, 11)))
	assert.Equal(t, []string{"b"}, slices.Collect(m.Keys()))
	assert.Equal(t, 4, m.Bytes())
	assert.Equal(t, int64(2), m.Evicted())
}

func TestMap_EntriesThatTheOwnerDrops_DoNotCountAsEvicted(t *testing.T) {
	m := NewMap(MapConfig[int, int]{Entries: 9, Evicted: func(int, int, Reason) { t.Error("was not evicted") }})
	for i := range 9 {
		m.Set(i, i)
	}
	v, ok := m.Delete(4)
	assert.True(t, ok)
	assert.Equal(t, 4, v)
	_, ok = m.Delete(4)
	assert.False(t, ok)
	assert.Equal(t, 2, m.DropOldest(func(_, v int) bool { return v < 2 }))
	assert.Equal(t, 3, m.DeleteFunc(func(_, v int) bool { return v%2 == 0 }))
	assert.Equal(t, []int{3, 5, 7}, slices.Collect(m.Keys()))
	k, _, ok := m.OldestWhere(func(_, v int) bool { return v > 3 })
	assert.True(t, ok)
	assert.Equal(t, 5, k)
	_, _, ok = m.OldestWhere(func(_, v int) bool { return v > 7 })
	assert.False(t, ok)
	m.Clear()
	assert.Zero(t, m.Len())
	_, _, ok = m.Oldest()
	assert.False(t, ok)
	assert.Zero(t, m.Evicted())
	m.Set(1, 1)
	assert.Equal(t, []int{1}, slices.Collect(m.Keys()))
}

// naive is a Map of a slice, which is searched from its front.
type naive struct {
	cfg     MapConfig[byte, int]
	all     []Pair[byte, int]
	evicted []string
}

func (n *naive) at(k byte) int {
	return slices.IndexFunc(n.all, func(p Pair[byte, int]) bool { return p.Key == k })
}

func (n *naive) bytes() (sum int) {
	for _, p := range n.all {
		sum += n.cfg.Size(p.Key, p.Value)
	}
	return sum
}

// order returns the places of the entries as they leave.
func (n *naive) order() []int {
	places := make([]int, len(n.all))
	for i := range places {
		places[i] = i
	}
	if n.cfg.Compare != nil {
		slices.SortStableFunc(places, func(a, b int) int { return n.cfg.Compare(&n.all[a], &n.all[b]) })
	}
	return places
}

func (n *naive) evict(i int, r Reason) {
	n.evicted = append(n.evicted, fmt.Sprint(n.all[i], r))
	n.all = slices.Delete(n.all, i, i+1)
}

func (n *naive) use(k byte) {
	if i := n.at(k); i >= 0 && n.cfg.Order == ByUse && n.cfg.Compare == nil {
		p := n.all[i]
		n.all = append(slices.Delete(n.all, i, i+1), p)
	}
}

func (n *naive) set(k byte, v int) {
	i := n.at(k)
	if n.cfg.Size(k, v) > n.cfg.Bytes {
		if i < 0 {
			i = len(n.all)
			n.all = append(n.all, Pair[byte, int]{})
		}
		n.all[i] = Pair[byte, int]{k, v}
		n.evict(i, LimitBytes)
		return
	}
	if i < 0 {
		n.all = append(n.all, Pair[byte, int]{k, v})
	} else {
		n.all[i].Value = v
		n.use(k)
	}
	for reason, over := range []func() bool{
		LimitEntries: func() bool { return len(n.all) > n.cfg.Entries },
		LimitBytes:   func() bool { return n.bytes() > n.cfg.Bytes },
	} {
		for over() {
			first := slices.DeleteFunc(n.order(), func(i int) bool { return n.all[i].Key == k })[0]
			n.evict(first, Reason(reason))
		}
	}
}

func (n *naive) keep(stays func(Pair[byte, int]) bool) {
	n.all = slices.DeleteFunc(n.all, func(p Pair[byte, int]) bool { return !stays(p) })
}

func (n *naive) dropOldest(below int) {
	order, gone := n.order(), map[byte]bool{}
	for _, i := range order {
		if n.all[i].Value >= below {
			break
		}
		gone[n.all[i].Key] = true
	}
	n.keep(func(p Pair[byte, int]) bool { return !gone[p.Key] })
}

// compareMaps has a Map and the naive one do the same, three bytes each.
func compareMaps(t *testing.T, cfg MapConfig[byte, int], steps []byte) {
	t.Helper()
	n := &naive{cfg: cfg}
	var left []string
	cfg.Evicted = func(k byte, v int, r Reason) { left = append(left, fmt.Sprint(Pair[byte, int]{k, v}, r)) }
	m := NewMap(cfg)
	for ; len(steps) >= 3; steps = steps[3:] {
		k, v := steps[1]%24, int(steps[2])
		i := n.at(k)
		switch steps[0] % 16 {
		case 0:
			_, ok := m.Delete(k)
			require.Equal(t, i >= 0, ok)
			n.keep(func(p Pair[byte, int]) bool { return p.Key != k })
		case 1, 2:
			got, ok := m.Get(k)
			require.Equal(t, i >= 0, ok)
			if ok {
				require.Equal(t, n.all[i].Value, got)
			}
			n.use(k)
		case 3:
			m.Update(k, func(was *int) { *was = v })
			if i >= 0 {
				n.set(k, v)
			}
		case 4:
			leaves := func(k byte, v int) bool { return (int(k)+v)%7 == 0 }
			m.DeleteFunc(leaves)
			n.keep(func(p Pair[byte, int]) bool { return !leaves(p.Key, p.Value) })
		case 5:
			m.DropOldest(func(_ byte, had int) bool { return had < v })
			n.dropOldest(v)
		case 6:
			if v < 32 {
				m.Clear()
				n.all = nil
			}
		default:
			fits, before := m.Fits(k, v), len(left)
			m.Set(k, v)
			n.set(k, v)
			require.Equal(t, len(left) == before, fits)
		}
		requireEqual(t, n, m)
		require.Equal(t, n.evicted, left)
	}
	require.Len(t, left, int(m.Evicted()))
}

func requireEqual(t *testing.T, n *naive, m *Map[byte, int]) {
	t.Helper()
	var want, got []Pair[byte, int]
	for _, i := range n.order() {
		want = append(want, n.all[i])
	}
	for k, v := range m.All() {
		got = append(got, Pair[byte, int]{k, v})
	}
	require.Equal(t, want, got)
	require.Equal(t, len(want), m.Len())
	require.Equal(t, n.bytes(), m.Bytes())
	even := func(k byte, _ int) bool { return k%2 == 0 }
	k, v, ok := m.OldestWhere(even)
	i := slices.IndexFunc(want, func(p Pair[byte, int]) bool { return even(p.Key, 0) })
	require.Equal(t, i >= 0, ok)
	if ok {
		got := Pair[byte, int]{k, v}
		require.Equal(t, want[i], got)
	}
}

var orders = map[string]MapConfig[byte, int]{
	"insertion":  {Order: ByInsertion},
	"use":        {Order: ByUse},
	"comparison": {Compare: func(a, b *Pair[byte, int]) int { return cmp.Compare(a.Value/16, b.Value/16) }},
}

func orderOf(name string) MapConfig[byte, int] {
	cfg := orders[name]
	cfg.Entries, cfg.Bytes, cfg.Size = 9, 500, func(k byte, v int) int { return int(k) + 2*v }
	return cfg
}

func TestMap_RandomOperations_AsNaiveMap(t *testing.T) {
	for name := range orders {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for range tier.N(t, 40, 2000) {
				steps := make([]byte, 300)
				for i := range steps {
					steps[i] = byte(rng.Uint32())
				}
				compareMaps(t, orderOf(name), steps)
			}
		})
	}
}

func FuzzMap(f *testing.F) {
	names := slices.Sorted(maps.Keys(orders))
	f.Add(uint8(0), []byte{8, 1, 2, 9, 2, 200, 5, 0, 9, 3, 2, 255})
	f.Add(uint8(1), []byte{8, 1, 2, 9, 2, 200, 1, 1, 0, 10, 7, 220})
	f.Add(uint8(2), []byte{8, 1, 2, 9, 2, 20, 10, 3, 0, 3, 1, 255})
	f.Fuzz(func(t *testing.T, order uint8, steps []byte) {
		if len(steps) > 3000 {
			return
		}
		compareMaps(t, orderOf(names[int(order)%len(names)]), steps)
	})
}

func TestMap_FullMap_NeedsNoNewMemory(t *testing.T) {
	for name := range orders {
		cfg := orders[name]
		cfg.Entries = 100
		m := NewMap(cfg)
		next := 0
		set := func() { m.Set(byte(next), next%1000); next++ }
		for range 1000 {
			set()
		}
		assert.Zero(t, testing.AllocsPerRun(1000, set), name)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { m.Get(byte(next - 5)) }), name)
	}
}

func BenchmarkMap(b *testing.B) {
	const entries = 4096
	b.Run("get/plain", func(b *testing.B) {
		m := map[int64]*int{}
		for i := range int64(entries) {
			m[i] = new(int)
		}
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			*m[i%entries]++
		}
	})
	for name, cfg := range map[string]MapConfig[int64, *int]{
		"insertion": {Entries: entries}, "use": {Entries: entries, Order: ByUse},
	} {
		b.Run("get/"+name, func(b *testing.B) {
			m := NewMap(cfg)
			for i := range int64(entries) {
				m.Set(i, new(int))
			}
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				v, _ := m.Get(i % entries)
				*v++
			}
		})
	}
	b.Run("replace/plain and slice", func(b *testing.B) {
		m, order := map[int64]int64{}, make([]int64, entries)
		b.ReportAllocs()
		for i := int64(0); b.Loop(); i++ {
			delete(m, order[i%entries])
			m[i], order[i%entries] = i, i
		}
	})
	for name, cfg := range map[string]MapConfig[int64, int64]{
		"insertion":  {Entries: entries},
		"use":        {Entries: entries, Order: ByUse},
		"comparison": {Entries: entries, Compare: func(a, b *Pair[int64, int64]) int { return cmp.Compare(a.Value, b.Value) }},
	} {
		b.Run("replace/"+name, func(b *testing.B) {
			m := NewMap(cfg)
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				m.Set(i, i)
			}
		})
	}
}
