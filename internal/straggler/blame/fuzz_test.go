// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzGraph builds graphs of any operations and meetings: the walk ends, segments do
// not overlap, and a replay with nothing mended is the recording.
func FuzzGraph(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef0123456789abcdef"), uint8(3), uint8(4))
	f.Add([]byte{}, uint8(0), uint8(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0x80}, uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, ranks, meetings uint8) {
		s := randomStep(data, int(ranks%9), int(meetings%17))
		alike := Options{Alike: func(p Place) Place { return p % 3 }}
		g := Build(s, alike)
		w := g.Walk()
		assert.LessOrEqual(t, len(w.Path), 4*(len(g.nodes)+1))
		for i := range w.Path {
			assert.Less(t, w.Path[i].From, w.Path[i].To)
			if i > 0 {
				assert.LessOrEqual(t, w.Path[i].To, w.Path[i-1].From, "the path goes back")
			}
		}
		if len(g.nodes) == 0 {
			return
		}
		r := g.run(nil)
		for i := range g.nodes {
			if g.nodes[i].start != r.starts[i] || g.nodes[i].end != r.ends[i] {
				t.Fatalf("node %d: got %d to %d, want %d to %d", i, r.starts[i], r.ends[i], g.nodes[i].start, g.nodes[i].end)
			}
		}
		for i := range w.Causes {
			g.Saved(w.Causes[i].Mend())
		}
		again := Build(s, alike).Walk()
		assert.Equal(t, w, again, "the same step, the same walk")
		assert.Equal(t, again, g.Rebuild(s, alike).Walk(), "in the room of the graph before")
	})
}

// randomStep takes every choice from data.
func randomStep(data []byte, ranks, meetings int) *Step {
	next := func() int64 {
		if len(data) == 0 {
			return 0
		}
		b := make([]byte, 8)
		n := copy(b, data[:min(len(data), 1+int(data[0]%8))])
		data = data[n:]
		return int64(binary.LittleEndian.Uint64(b))
	}
	s := &Step{}
	for r := range ranks {
		rank := Rank{Rank: int64(r), Role: uint64(next() & 1), Stage: int32(next()&3) - 1, Start: next(), End: next(), Dark: next()&7 == 0}
		for range next() & 15 {
			start := next()
			rank.Ops = append(rank.Ops, Op{
				Start: start, End: start + next(), Launch: next(), Lane: next() & 3, Place: Place(next() & 3), Seq: uint32(next() & 3),
				Micro: int32(next()&3) - 1, Kind: Kind(next() & 3),
			})
		}
		rank.Syncs = []int64{next()}
		s.Ranks = append(s.Ranks, rank)
	}
	for range meetings {
		m := Meeting{Rule: Rule(next() & 7), Root: int32(next()&7) - 1, Class: uint64(next() & 1), Vague: next()}
		for range next() & 7 {
			m.Parties = append(m.Parties, Party{int32(next()&15) - 1, int32(next()&15) - 1})
		}
		s.Meetings = append(s.Meetings, m)
	}
	return s
}
