// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// linkKey is one link, or one group, in one of its programs.
type linkKey struct {
	src, dst int64
	group    group
	op       string
	class    uint64
}

// group is a communicator. Groups without a common member may bear one name.
type group struct{ comm, digest string }

func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.digest, b.digest))
}

// linkInfo is what is kept of a link beside its window.
type linkInfo struct {
	linkKey
	members []int64
	given   bool
	last    uint32
}

// linkEntry is one step of a link, s.
type linkEntry struct {
	seen   uint32 // 1 + the frame's number
	excess float32
	base   float32 // what its peers took
}

// linkHistory is what links showed over the window.
type linkHistory struct {
	window, limit int
	index         map[linkKey]int32
	infos         []linkInfo
	entries       []linkEntry
	free          []int32
	refused       uint64

	byClass map[linkClass][]int32
	classes []linkClass // of the step, by their first links
	v       []float64
}

// linkClass is of links that are compared: waits on the wire apart from transfers, and
// groups apart from pairs.
type linkClass struct {
	class        uint64
	given, group bool
}

// mostMembers bounds the ranks that are kept of a group.
const mostMembers = 1 << 15

func (l *linkHistory) init(cfg Config) {
	l.window, l.limit = cfg.Window, cfg.MaxLinks
	l.index, l.byClass = map[linkKey]int32{}, map[linkClass][]int32{}
}

func saneLink(k *Link) bool {
	return sane(float64(k.Own)) && k.Bytes >= 0 && !math.IsInf(k.Bytes, 1) && sane(math.Abs(float64(k.Excess))) && len(k.Members) <= mostMembers
}

// add takes a step's links and returns the typical exposed transfer of a link.
func (l *linkHistory) add(s *Sheet, frame uint32) float64 {
	for k, v := range l.byClass {
		if len(v) == 0 {
			delete(l.byClass, k)
			continue
		}
		l.byClass[k] = v[:0]
	}
	l.classes = l.classes[:0]
	l.v = l.v[:0]
	for i := range s.Links {
		k := &s.Links[i]
		if !saneLink(k) {
			l.refused++
			continue
		}
		if !k.Given {
			l.v = append(l.v, float64(k.Own))
		}
		c := linkClass{k.Class, k.Given, k.Src < 0}
		if len(l.byClass[c]) == 0 {
			l.classes = append(l.classes, c)
		}
		l.byClass[c] = append(l.byClass[c], int32(i))
	}
	typical := stats.SelectMedian(l.v)
	for _, c := range l.classes { // in order, so that it does not change from run to run which links find room
		l.class(s, c, l.byClass[c], frame)
	}
	if frame%uint32(l.window) == uint32(l.window)-1 {
		l.forget(frame)
	}
	return typical
}

// class compares the links of a class in one step.
func (l *linkHistory) class(s *Sheet, c linkClass, of []int32, frame uint32) {
	if c.given {
		for _, i := range of {
			k := &s.Links[i]
			l.keep(k, frame, float64(k.Excess), max(0, float64(k.Own)-float64(k.Excess)))
		}
		return
	}
	if len(of) < minCohort {
		return
	}
	one := l.middle(s, of, func(k *Link) float64 { return float64(max(1, k.N)) })
	sized := !slices.ContainsFunc(of, func(i int32) bool { return s.Links[i].Bytes <= 0 })
	var byByte stats.Middle
	if sized {
		byByte = l.middle(s, of, func(k *Link) float64 { return k.Bytes })
	}
	for _, i := range of {
		k := &s.Links[i]
		n := float64(max(1, k.N))
		base := one.Without(float64(k.Own)/n) * n
		if sized {
			// A transfer takes some time for itself and some for its bytes: a small one
			// no more than those of the class, a large one no more than its bytes' part.
			base = max(base, byByte.Without(float64(k.Own)/k.Bytes)*k.Bytes)
		}
		base = min(base, mostSeconds) // whatever amounts are claimed
		l.keep(k, frame, float64(k.Own)-base, base)
	}
}

// middle returns the middle of what the links took for so much.
func (l *linkHistory) middle(s *Sheet, of []int32, amount func(*Link) float64) stats.Middle {
	l.v = l.v[:0]
	for _, i := range of {
		k := &s.Links[i]
		l.v = append(l.v, float64(k.Own)/amount(k))
	}
	return stats.SelectMiddle(l.v)
}

func (l *linkHistory) keep(k *Link, frame uint32, excess, base float64) {
	key := linkKey{k.Src, k.Dst, group{k.Comm, k.Digest}, k.Op, k.Class}
	n, ok := l.index[key]
	if !ok {
		if len(l.index) >= l.limit {
			l.refused++
			return
		}
		n = l.number(key, k)
	}
	l.infos[n].last, l.infos[n].given = frame, k.Given
	e := &l.entries[int(n)*l.window+int(frame)%l.window]
	if e.seen == frame+1 { // twice in one step
		e.excess += float32(excess)
		e.base += float32(base)
		return
	}
	*e = linkEntry{seen: frame + 1, excess: float32(excess), base: float32(base)}
}

func (l *linkHistory) number(key linkKey, k *Link) int32 {
	info := linkInfo{linkKey: key, members: slices.Clone(k.Members)}
	var n int32
	if f := len(l.free); f > 0 {
		n = l.free[f-1]
		l.free = l.free[:f-1]
		clear(l.entries[int(n)*l.window : (int(n)+1)*l.window])
		l.infos[n] = info
	} else {
		n = int32(len(l.infos))
		l.infos = append(l.infos, info)
		l.entries = append(l.entries, make([]linkEntry, l.window)...)
	}
	l.index[key] = n
	return n
}

// forget frees the numbers of links that the window knows no more.
func (l *linkHistory) forget(frame uint32) {
	for key, n := range l.index {
		if frame-l.infos[n].last >= uint32(l.window) {
			delete(l.index, key)
			l.infos[n] = linkInfo{}
			l.free = append(l.free, n)
		}
	}
	slices.Sort(l.free)
}

// at returns a link's entry in a frame, nil where it was not used.
func (l *linkHistory) at(n int32, frame uint32) *linkEntry {
	e := &l.entries[int(n)*l.window+int(frame)%l.window]
	if e.seen != frame+1 {
		return nil
	}
	return e
}
