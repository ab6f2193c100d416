// SPDX-License-Identifier: Apache-2.0

package sequence

import "time"

// stream is what is known of one stream.
type stream struct {
	name string
	// seen are numbers that arrived, or of which it was decided that they do not.
	seen  Ranges
	parts map[Step]*part
	used  time.Time
	kept  bool // the store has its key
	// elsewhere: it was decided that the spans before the first one are at another gateway.
	elsewhere bool
	// late are gaps as of since.
	late  Ranges
	since time.Time
	// job is that of the step that came last, to name whose spans a gap had.
	job jobKey
	// spread is how many ranges the open steps had after the last arrival.
	spread int
}

// Sizes of the parts of a ledger without their texts, bytes.
const (
	streamSize = 256
	partSize   = 256
	jobSize    = 256
	rangeSize  = 16
	lostSize   = 48
)

func (s *stream) size() int {
	n := streamSize + len(s.name) + rangeSize*(len(s.seen)+len(s.late))
	for step, p := range s.parts {
		n += partSize + len(step.Job) + len(step.Incarnation) + rangeSize*p.ranges()
	}
	return n
}

func (s *stream) openRanges() (n int) {
	for _, p := range s.parts {
		n += p.ranges()
	}
	return n
}

// part is what a stream has of an open step.
type part struct {
	// live arrived in this life of the gateway, doubt in one before.
	live, doubt Ranges
}

// all returns the numbers that arrived.
func (p *part) all() Ranges { return p.live.Union(p.doubt) }

// count returns how many numbers arrived: no number is in both sets.
func (p *part) count() int64 { return p.live.Count() + p.doubt.Count() }

func (p *part) ranges() int { return len(p.live) + len(p.doubt) }

// openStep is a step that has spans and is not concluded.
type openStep struct {
	streams map[string]bool
	last    time.Time
	// moved: a stream began here in the middle, with this step.
	moved bool
}
