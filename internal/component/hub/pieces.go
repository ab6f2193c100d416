// SPDX-License-Identifier: Apache-2.0

package hub

// maxPiece is how many entries are sent in one call. Findings of 4 KiB stay below what a gRPC server takes in
// one message, 4 MiB.
const maxPiece = 512

const (
	// probeEvery is how often, of calls that are refused in turn for a reason that may pass, one is smaller.
	probeEvery = 4
	// growAfter is how many smaller calls are taken until a larger one is tried again.
	growAfter = 16
)

// pieces decides how many entries a call has. One that is refused for good is divided: an entry or the size may be
// the reason. So may they be where a call is refused again and again, since a call larger than a sending queue is
// no permanent error; but mostly the next component has no room, and takes large calls when it has. So only some
// of these calls are smaller, and what one of them shows holds until the next refusal.
type pieces struct {
	size     int  // of the next call
	refusals int  // that may pass, in turn
	refused  int  // the size of the last call that was
	probe    bool // the call under way is smaller
	limit    int  // a size that is refused while smaller ones are taken; 0: unknown
	calls    int  // that were taken since limit is known
	alone    int  // of the last calls: entries refused alone in turn, for a reason that may pass
}

func newPieces() pieces { return pieces{size: maxPiece} }

// next returns the most entries of the next call.
func (p *pieces) next() int {
	turn := p.refusals + 1
	if p.probe = turn%probeEvery == 0; p.probe {
		return max(1, p.refused>>(turn/probeEvery))
	}
	return p.size
}

// took notes that a call of n entries was taken.
func (p *pieces) took(n int) {
	if p.probe && n < p.refused {
		p.limit, p.calls, p.size = p.refused, 0, n
	}
	if p.calls++; p.calls > growAfter {
		p.limit = 0
	}
	if larger := min(2*p.size, maxPiece); p.limit == 0 || larger < p.limit {
		p.size = larger
	}
	p.refusals, p.probe, p.alone = 0, false, 0
}

// wait notes that a call of n entries was refused for a reason that may pass.
func (p *pieces) wait(n int) {
	p.refused = n
	p.refusals++
	p.size, p.limit, p.probe = maxPiece, 0, false
}

// divide notes that a call of n entries was refused, and that smaller ones take its place.
func (p *pieces) divide(n int) { *p = pieces{size: max(1, n/2), alone: p.alone} }

// end begins the last calls.
func (p *pieces) end() { *p = newPieces() }

// maxAlone is how many entries may be refused alone until the next component takes nothing for now.
const maxAlone = 3

// last notes that one of the last calls was refused, and reports whether smaller ones take its place. To divide all
// would take the time of the end where the next component takes nothing for now.
func (p *pieces) last(n int, permanent bool) bool {
	if n > 1 && (permanent || p.alone < maxAlone) {
		p.divide(n)
		return true
	}
	if !permanent {
		p.alone++
		p.size = maxPiece
	}
	return false
}
