// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// files are a module with an example of each thing that is counted, and of near misses that must not
// count.
var files = map[string]string{
	"go.mod": "module example.com/toy\n\ngo 1.25\n",
	"internal/model/model.go": `package model

type Finding struct {
	Revision int64
	Status   string
	Evidence string
}

const Open, Closed = "open", "closed"

type Observation struct{ Revision int64 }
`,
	"internal/finding/life.go": `package finding

import "example.com/toy/internal/model"

func Next(f *model.Finding) { f.Revision++ }
`,
	"internal/engine/lives.go": `package engine

import "example.com/toy/internal/model"

type Watch struct{ open map[string]*model.Finding }

func (w *Watch) Close(f *model.Finding) {
	f.Revision++
	f.Status = model.Closed
}

func Begin() model.Finding { return model.Finding{Revision: 1, Status: model.Open} }

func Copy(to, from *model.Finding) { to.Revision, to.Status = from.Revision, from.Status }

func Look(o *model.Observation) { o.Revision++ }

type Episode struct{ Began, Revision int64 }

func (w *Watch) Grow(e *Episode) { e.Revision = e.Revision + 1 }

type embedding struct{ Episode }

func (w *Watch) End(e *embedding) { e.Began, e.Revision = 0, e.Revision+1 }
`,
	"internal/engine/parses.go": `package engine

import (
	"encoding/json"

	"example.com/toy/internal/model"
)

type shadow struct{ Cost float64 }

func cost(f *model.Finding) float64 {
	var s shadow
	if json.Unmarshal([]byte(f.Evidence), &s) != nil {
		return 0
	}
	return s.Cost
}

func other(text []byte) (s shadow, err error) { return s, json.Unmarshal(text, &s) }
`,
	"internal/stats/stats.go": `package stats

func SelectMedian(v []float64) float64 { return v[0] }

type Histogram struct{ Buckets []int64 }

func (h *Histogram) Add(i int32) { h.Buckets[i]++ }
`,
	"internal/engine/quantiles.go": `package engine

import (
	"slices"

	"example.com/toy/internal/stats"
)

type Histogram struct{ buckets []int64 }

func (h *Histogram) Add(i int32) { h.buckets[i]++ }

type buckets [8]int64

func count(b *buckets, i int) { b[i] += 1 }

type histogramPath struct{ name string }

type histogramDocument struct{ Buckets []int64 }

func (d *histogramDocument) read(h *stats.Histogram) {
	for i, n := range d.Buckets {
		h.Buckets[i] += n
	}
}

func medianOf(v []float64) float64 { return v[0] }

func typical(v []int64) int64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func percentile(v []float64) float64 {
	slices.Sort(v)
	return stats.SelectMedian(v)
}

func medianBySwaps(v []float64) float64 {
	if v[1] < v[0] {
		v[0], v[1] = v[1], v[0]
	}
	return stats.SelectMedian(v)
}

func medianLength(v [][]float64) float64 {
	var lengths []float64
	for _, x := range v {
		lengths = append(lengths, float64(len(x)))
	}
	return medianOr(lengths, 0)
}

func medianOr(v []float64, or float64) float64 {
	if len(v) == 0 {
		return or
	}
	return stats.SelectMedian(v)
}

func middle(from, until int64) int64 { return from + (until-from)/2 }

func largest(v []int64) int64 {
	slices.Sort(v)
	return v[len(v)-1]
}

func writeMedian(v []float64) {}
`,
	"internal/engine/maps.go": `package engine

import (
	"maps"
	"sync"
)

type table struct {
	plain    map[string]int
	nested   map[string]map[int64]bool
	copied   map[string]int
	byAlias  map[string]int
	shared   sync.Map
	limited  map[string]int
	excused  map[string]int
	readOnly map[string]int
	small    map[uint8]int
	list     []string
}

func (t *table) add(key string, more map[string]int) {
	t.plain[key]++
	t.nested[key][7] = true
	maps.Copy(t.copied, more)
	m := t.byAlias
	m[key] = 1
	t.shared.Store(key, 1)
	if len(t.limited) < 100 {
		t.limited[key] = 1
	}
	t.excused[key] = 1
	t.small[0] = t.readOnly[key]
	t.list[0] = key
	local := map[string]int{}
	local[key] = 1
}
`,
	"internal/engine/evictions.go": `package engine

import (
	"maps"
	"slices"
)

var registry = struct{ byName map[string]int }{byName: map[string]int{}}

var visits struct{ byName map[string]int }

func enter(name string) {
	registry.byName[name] = 1
	visits.byName[name]++
}

func leave(number int) {
	for name, n := range registry.byName {
		if n == number {
			delete(registry.byName, name)
		}
	}
}

type kept struct {
	ages  map[string]int
	sizes map[string][]byte
	left  map[string]bool
}

func (k *kept) old(than int) { maps.DeleteFunc(k.ages, func(_ string, n int) bool { return n < than }) }

func (k *kept) each(than int) {
	ages := k.ages
	for name, n := range ages {
		if n < than {
			delete(k.ages, name)
		}
	}
}

func (k *kept) fit(most int) {
	for len(k.sizes) > most {
		largest := ""
		for name := range maps.Keys(k.sizes) {
			if largest == "" || len(k.sizes[name]) > len(k.sizes[largest]) {
				largest = name
			}
		}
		k.drop(largest)
	}
}

func (k *kept) drop(name string) { delete(k.sizes, name) }

func (k *kept) names() []string { return slices.Sorted(maps.Keys(k.ages)) }

func (k *kept) listed() {
	for _, name := range k.names() {
		delete(k.ages, name)
		delete(k.left, name)
	}
	for name := range k.sizes {
		k.drop(name)
	}
}

func (k *kept) count() (n int) {
	for _, text := range k.sizes {
		n += len(text)
	}
	return n + len(k.names())
}

func (k *kept) limit(most int) {
	for k.count() > most {
		k.drop(k.longest())
	}
}

func (k *kept) longest() (longest string) {
	for name := range k.sizes {
		if len(name) > len(longest) {
			longest = name
		}
	}
	return longest
}

func (k *kept) shrink(than int) {
	if k.count() > 0 {
		k.old(than)
	}
	for range k.sizes {
		k.old(than)
	}
}

func (k *kept) evictLeft(names []string) {
	for name := range k.ages {
		delete(k.left, name)
	}
	for _, name := range names {
		delete(k.left, name)
	}
	k.each(1)
	seen := map[string]int{}
	for name := range seen {
		delete(seen, name)
	}
}
`,
	"internal/engine/lengths.go": `package engine

import "example.com/toy/internal/bounded"

type lengths struct {
	byHand, empty *bounded.Map[string]
	room          *bounded.Room
}

type names[K comparable] struct{ byHand *bounded.Map[K] }

func (n *names[K]) full(most int) bool { return n.byHand.Len() >= most }

func full(l *names[int], d *bounded.Data) bool { return l.byHand.Len() > 8 || d.Files.Len() > 8 }

func (l *lengths) full(most int) bool {
	return l.byHand.Len() >= most && l.empty.Len() > 0 && l.room.Len() < most
}
`,
	"internal/bounded/map.go": `package bounded

type Map[K comparable] struct{ at map[K]int }

func (m *Map[K]) Len() int { return len(m.at) }

type Data struct{ Files *Map[string] }

type Room struct{ shares int }

func (r *Room) Len() int { return r.shares }

func (m *Map[K]) evict() {
	for name := range m.at {
		delete(m.at, name)
	}
}
`,
	"internal/engine/generated.go": `// Code generated by a tool. DO NOT EDIT.

package engine

func medianGenerated(v []float64) float64 { return v[0] }
`,
	"internal/report/report.go": `package report

import _ "example.com/toy/internal/engine"
`,
	"internal/component/kit/kit.go": `package kit

type Interval struct{ every int }
`,
	"connector/toyconnector/hub.go": `package toyconnector

import "example.com/toy/internal/component/kit"

type shared struct{ interval *kit.Interval }

type config struct{ Interval int }

type face struct{ shared *shared }
`,
	"receiver/toyreceiver/receiver.go": `package toyreceiver

import (
	_ "example.com/toy/internal/engine"
	_ "example.com/toy/internal/model"
)
`,
	"receiver/toyreceiver/retries.go": `package toyreceiver

import "time"

type sender struct {
	consume func(int) error
	delays  interface{ NextBackOff() time.Duration }
	next    interface{ ConsumeLogs(int) error }
}

func (s *sender) send() {
	for s.consume(1) != nil {
		wait := s.delays.NextBackOff()
		<-time.After(wait)
	}
}

func untilTaken(s *sender) {
	for range 3 {
		if s.next.ConsumeLogs(1) == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

func poll(read func() bool) {
	for read() {
		time.Sleep(time.Second)
	}
}

func each(s *sender, all []int) {
	for _, n := range all {
		_ = s.next.ConsumeLogs(n)
	}
}
`,
	"internal/engine/deep/deep.go": `package deep

import _ "example.com/toy/receiver/toyreceiver"
`,
}

func toy(t *testing.T) *tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	loaded, err := load(t.Context(), dir, "./...")
	require.NoError(t, err)
	return loaded
}
