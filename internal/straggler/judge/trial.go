// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// trial is one judgement of the window.
type trial struct {
	cfg    *Config
	h      *history
	places *placeTable
	links  *linkHistory
	frames []*frame
	looks  int
	ranks  []standing
	noise  noise
	owns   []float64 // typical own time by rank, once somebody asked
	buf    []float64
	buf2   []float64

	suspects  []*suspect
	together  map[string]hostTest // hosts whose ranks stand out together
	abstained *Abstention
	out       []Conclusion
}

// standing is one rank over the window.
type standing struct {
	n              int32
	m              *member
	steps          int
	typical, sigma float64 // of the share, over steps
	named          bool
	divided        bool    // of the slower part of a divided cohort
	level          float64 // s, peers' own time
}

// suspect is a rank that passed all gates of its own.
type suspect struct {
	*standing
	test  test
	limit float64 // of chance, by which it was named
	class string
	among basis // who settled it, where half of the cohort stands out alike
	// intermittent: in some steps only.
	intermittent bool
	events       int // in how many
	pauses       *evidence.Pauses
	held         map[int64]float64 // s, in these steps
}

// Of repeated looks at one window, most steps are shared; so many independent ones
// they are worth (docs: repeated looks).
const maxLooks = 6

// leastSteps is the fewest steps by which a rank is judged.
const leastSteps = 3

// Judge draws the conclusions. It changes nothing: asked twice it says the same.
func (j *Judge) Judge() Judgement {
	t := &trial{cfg: &j.cfg, h: &j.history, places: &j.places, links: &j.links}
	t.h.each(func(f *frame) { t.frames = append(t.frames, f) })
	t.looks = max(1, min(int(t.h.count)-leastSteps+1, maxLooks))
	if len(t.frames) >= leastSteps {
		t.gather()
		t.noise.memories = t.memory()
		t.accuse()
		t.structure()
	}
	slices.SortStableFunc(t.out, func(a, b Conclusion) int {
		return cmp.Or(
			cmp.Compare(b.Share, a.Share), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Peer, b.Peer), compareGroups(group{a.Comm, a.Digest}, group{b.Comm, b.Digest}), slices.Compare(a.Ranks, b.Ranks),
		)
	})
	return Judgement{Conclusions: t.out, Abstained: t.abstained, Looks: t.looks, Memory: t.noise.measured}
}

// gather brings up each rank's typical excess.
func (t *trial) gather() {
	for n := range t.h.members {
		m := &t.h.members[n]
		if at, ok := t.h.index[m.seat.Rank]; !ok || at != int32(n) {
			continue
		}
		s := standing{n: int32(n), m: m}
		t.buf, t.buf2 = t.buf[:0], t.buf2[:0]
		t.over(s.n, 0, len(t.frames), func(e *entry) {
			t.buf = append(t.buf, e.share(e.net()))
			t.buf2 = append(t.buf2, float64(e.base))
		})
		if s.steps = len(t.buf); s.steps < leastSteps {
			continue
		}
		s.typical, s.sigma = stats.Spread(t.buf)
		s.level = stats.SelectMedian(t.buf2)
		t.ranks = append(t.ranks, s)
	}
}

// over calls f with the entries of a rank that were compared, in frames from to.
func (t *trial) over(rank int32, from, to int, f func(*entry)) {
	for _, fr := range t.frames[from:to] {
		if e := t.h.at(rank, fr); e != nil && e.flags&entryCompared != 0 {
			f(e)
		}
	}
}

// rounds is how often the noise is estimated anew without those that were named.
const rounds = 3

// accuse finds the ranks that stand out.
func (t *trial) accuse() {
	for range rounds {
		t.estimate()
		found := false
		for i := range t.ranks {
			s := &t.ranks[i]
			if s.named {
				continue
			}
			x := t.try(s)
			if t.gate(s, &x) == "" {
				s.named, found = true, true
				t.suspects = append(t.suspects, &suspect{standing: s, test: x, limit: rankAlarm * t.cfg.MaxFalseAlarm})
			}
		}
		if !found {
			break
		}
	}
	t.hosts()
	t.dropMajorities()
	t.divided()
	for i := range t.ranks {
		if s := &t.ranks[i]; !s.named {
			t.abstain(s)
		}
	}
	t.intermittent()
	for _, s := range t.suspects {
		t.classify(s)
	}
	t.nodes()
	for _, s := range t.suspects {
		t.conclude(s)
	}
}
