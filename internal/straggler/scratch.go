// SPDX-License-Identifier: Apache-2.0

package straggler

// scratch says when the room that steps are analysed in is let go: it is used again for the
// next step, and one unusual step must not hold memory for good.
type scratch struct {
	peak int // operations of the largest step since it was let go last
	mark int // of a usual step: the largest of late, which is forgotten by and by
}

const (
	// markDecay is by which part the mark falls with a step that is smaller.
	markDecay = 16
	// leastScratch is for how many operations room is kept in any case: a megabyte or two.
	leastScratch = 1 << 12
)

// tooLarge notes a step of so many operations, and reports whether the room is too large.
func (s *scratch) tooLarge(ops int) bool {
	s.peak, s.mark = max(s.peak, ops), max(ops, s.mark-(s.mark+markDecay-1)/markDecay)
	if s.peak <= max(leastScratch, roomy*s.mark) {
		return false
	}
	s.peak = 0
	return true
}

// letGo lets the room go, but for what tells of steps before.
func (j *job) letGo() {
	j.matcher, j.placer, j.peering, j.anchors, j.sweeper = matcher{}, placer{}, peering{}, anchors{}, sweeper{}
	j.sheet = sheetDrawer{places: j.sheet.places}
	j.seatsAt, j.segments, j.messages, j.unused = nil, nil, nil, nil
	j.walks.stale = true
}
