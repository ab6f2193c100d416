// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// MaxVoid is the most ranges of void numbers that one batch of a stream names.
const MaxVoid = 64

// Numberer numbers spans. A stream is all spans of one job; its name is unique, so that numbers of another process,
// or of a stream that was forgotten, are never taken for its own. It is not safe for concurrent use.
type Numberer struct {
	prefix string
	begun  int64
	jobs   *bounded.Map[string, *numbered]
	names  map[string]*numbered // by the name of the stream
	count  NumbererStats
}

// NumbererStats count what a [Numberer] has done.
type NumbererStats struct {
	// Numbered are spans that got a number, Void those of them that were refused.
	Numbered, Void int64
	// Forgotten are streams that gave their place to others.
	Forgotten int64
}

type numbered struct {
	name string
	next int64
	void Ranges
}

// NewNumberer returns a numberer for so many jobs at once. The prefix of the names of its streams must be that of no
// other one, such as a random text.
func NewNumberer(prefix string, maxJobs int) *Numberer {
	n := &Numberer{prefix: prefix, names: map[string]*numbered{}}
	n.jobs = bounded.NewMap(bounded.MapConfig[string, *numbered]{
		Entries: maxJobs, Order: bounded.ByUse,
		Evicted: func(_ string, s *numbered, _ bounded.Reason) {
			delete(n.names, s.name)
			n.count.Forgotten++
		},
	})
	return n
}

// Numbers are what some spans of one stream get.
type Numbers struct {
	// Source is the name of the stream.
	Source string
	// First is the number of the first span; the others follow.
	First, Count int64
	// Void are numbers that no span has that was accepted: the next component refused the spans which had them,
	// and their sender knows.
	Void Ranges
}

// Take returns numbers for the next spans of a job.
func (n *Numberer) Take(job string, spans int) Numbers {
	s, ok := n.jobs.Get(job)
	if !ok {
		s = &numbered{name: n.prefix + "-" + strconv.FormatInt(n.begun, 36)}
		n.begun++
		n.jobs.Set(job, s)
		n.names[s.name] = s
	}
	out := Numbers{Source: s.name, First: s.next, Count: int64(spans), Void: slices.Clone(s.void[:min(len(s.void), MaxVoid)])}
	s.void = s.void[len(out.Void):]
	s.next += int64(spans)
	n.count.Numbered += int64(spans)
	return out
}

// Refuse makes numbers void whose spans the next component refused, and has those that were void before named again.
func (n *Numberer) Refuse(of Numbers) {
	n.count.Void += of.Count
	if s := n.names[of.Source]; s != nil {
		s.void = s.void.Union(of.Void).Union(Ranges{{of.First, of.First + of.Count - 1}})
	}
}

// Stats returns the counts.
func (n *Numberer) Stats() NumbererStats { return n.count }
