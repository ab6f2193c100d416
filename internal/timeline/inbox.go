// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// inbox holds the edges that come while a solution is made.
type inbox struct {
	mu    sync.Mutex
	edges []model.ClockEdge
	bytes int
}

// edgesOfClock bounds the inbox: a solution takes less than the window that each
// clock has some ten edges in. bytesOfEdge is what one takes with two names of 40 bytes.
const (
	edgesOfClock = 16
	bytesOfEdge  = 256
)

// put reports false where there are edges enough, or of enough bytes: names are kept as they come.
func (i *inbox) put(e model.ClockEdge, most int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	bytes := int(unsafe.Sizeof(e)) + len(e.Src) + len(e.Dst)
	if len(i.edges) >= most || i.bytes+bytes > most*bytesOfEdge {
		return false
	}
	i.edges, i.bytes = append(i.edges, e), i.bytes+bytes
	return true
}

func (i *inbox) take() []model.ClockEdge {
	i.mu.Lock()
	defer i.mu.Unlock()
	edges := i.edges
	i.edges, i.bytes = nil, 0
	return edges
}

// AddEdge takes what a window of observations says of two clocks. It counts with
// the next Advance, and does not wait for one that is under way; what was read of both
// clocks of a host together counts at once. An error says why an
// edge was refused; it is counted too.
func (t *Timeline) AddEdge(e model.ClockEdge) error {
	if err := checkNames(&e); err != nil {
		t.stats.Refused.Add(1)
		return err
	}
	t.takePair(&e)
	if t.shared != nil {
		if err := t.addShared(&e); err != nil || !e.Prompt {
			return t.refusedShared(err)
		}
	}
	if e.Prompt {
		return t.checkPrompt(&e)
	}
	if t.solving.TryLock() {
		defer t.solving.Unlock()
		t.drain()
		return t.add(&e)
	}
	// What is refused is put by too: the solver counts why, and learns of bounds that
	// cross.
	if !t.inbox.put(e, edgesOfClock*t.opt.MaxClocks) {
		t.stats.InboxOverflowed.Add(1)
		return fmt.Errorf("add clock edge %s to %s: got more edges during a solution; want at most %d, of %d bytes each on average", e.Src, e.Dst,
			edgesOfClock*t.opt.MaxClocks, bytesOfEdge)
	}
	return graph.Check(&e)
}

// checkNames refuses names that nobody could be shown. Of missing ones the solver says
// what is wrong, and counts them.
func checkNames(e *model.ClockEdge) error {
	for _, name := range []string{e.Src, e.Dst} {
		if name == "" {
			continue
		}
		if err := model.CheckClockName(name); err != nil {
			return fmt.Errorf("add clock edge %.80q to %.80q: %w", e.Src, e.Dst, err)
		}
	}
	return nil
}

// drain gives the solver what came meanwhile. The caller holds solving.
func (t *Timeline) drain() {
	for _, e := range t.inbox.take() {
		// Who added it was told, unless a limit of the solver was met since: that is
		// counted.
		_ = t.add(&e)
	}
}

func (t *Timeline) add(e *model.ClockEdge) error {
	if err := t.solver.Add(*e); err != nil {
		t.stats.Refused.Add(1)
		// Bounds that cross are evidence too: the next solution should see it.
		t.fresh = t.fresh || e.Lower > e.Upper
		return err
	}
	t.pair(e)
	t.compare(e)
	t.fresh = true
	return nil
}

// counted returns what the solver counted: without waiting for it, what it had when
// a solution that is under way began.
func (t *Timeline) counted() graph.Counters {
	if t.shared != nil {
		return t.shared.counted()
	}
	if t.solving.TryLock() {
		defer t.solving.Unlock()
		t.drain()
		t.count()
	}
	if c := t.edges.Load(); c != nil {
		return *c
	}
	return graph.Counters{}
}

// count keeps a copy for those who do not wait. The caller holds solving.
func (t *Timeline) count() {
	c := t.solver.Counters()
	t.edges.Store(&c)
}
