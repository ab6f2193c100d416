// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// fromBest are the kinds of stamps that packets have.
var fromBest = []string{model.StampHardware, model.StampKernel, model.StampUser}

// kinds says which kind of stamps a series names. Sums and histograms are
// cumulative, so that a series whose attribute went to and fro with each window
// would be several that stand still in turn. What rests on stamps names the worst
// kind that its path has had, which changes twice at most; what only counts
// packets names the kind by which this node stamps its own, which does not change.
type kinds struct {
	own   string // empty until something was stamped
	paths *bounded.Map[track, *pathKind]
}

// track is a direction of a path, or the round trips of it.
type track struct {
	src, dst string
	prober   string // the one of both that measures it: the other may measure its own
	path     int
	trip     bool
}

type pathKind struct {
	rank int // in fromBest
	seen time.Time
}

func newKinds(paths int) kinds {
	return kinds{paths: bounded.NewMap(bounded.MapConfig[track, *pathKind]{Entries: paths, Order: bounded.ByUse})}
}

// learn takes the kind of most of the node's own packets from its counters.
func (k *kinds) learn(counters map[string]int64) {
	if k.own != "" {
		return
	}
	most := int64(0)
	for _, kind := range fromBest {
		if n := counters["socket.sent_stamps."+kind]; n > most {
			k.own, most = kind, n
		}
	}
}

// worst is the worst kind of a track, to which the usual kind of a window is
// added. Empty: none is known yet.
func (k *kinds) worst(now time.Time, t track, usual string) string {
	rank := slices.Index(fromBest, usual)
	p, known := k.paths.Get(t)
	if !known {
		if rank < 0 || !k.paths.Fits(t, nil) { // then its series is the overflow's
			return usual
		}
		p = &pathKind{rank: rank}
		k.paths.Set(t, p)
	}
	p.rank, p.seen = max(p.rank, rank), now
	return fromBest[p.rank]
}

func (k *kinds) expire(before time.Time) {
	k.paths.DropOldest(func(_ track, p *pathKind) bool { return p.seen.Before(before) })
}
