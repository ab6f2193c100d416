// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"slices"
)

// step is one step of all workers, their events by start.
type step struct {
	cfg     *Config
	workers []Worker
	from    int64 // the first start
	late    map[node]outlier
	meets   map[uint64]meet
	paths   []*path // by worker, made when first needed
}

// meet is who came last to a collective, and who sent a message.
type meet struct {
	last  node
	start int64
}

// path serves to find what ran before an event of a worker.
type path struct {
	byEnd []int32 // of what the device ran, by end
	host  []int32 // by start
}

func (s *step) role(w *Worker) uint64 {
	if s.cfg.Cohorts {
		return w.Role
	}
	return 0
}

// join finds the last arrivals.
func (s *step) join() {
	s.meets = map[uint64]meet{}
	for w := range s.workers {
		for e := range s.workers[w].Events {
			ev := &s.workers[w].Events[e]
			if ev.Meet == 0 || ev.Kind == Receive {
				continue
			}
			if m, ok := s.meets[ev.Meet]; !ok || ev.Start > m.start {
				s.meets[ev.Meet] = meet{node{int32(w), int32(e)}, ev.Start}
			}
		}
	}
}

func (s *step) event(n node) *Event { return &s.workers[n.worker].Events[n.event] }

// maxHops bounds a walk.
const maxHops = 4096

// root follows an outlier backward: to the predecessor among the outliers that ended
// last, as long as there is one. The host is asked only where what ran or met before
// was in time.
func (s *step) root(n node) node {
	seen := map[node]bool{n: true}
	for range maxHops {
		next, found := s.latest(s.ran(n), seen)
		if !found {
			next, found = s.latest(s.hosted(n), seen)
		}
		if !found {
			return n
		}
		n = next
		seen[n] = true
	}
	return n
}

// latest returns the outlier that ended last.
func (s *step) latest(among []node, seen map[node]bool) (next node, found bool) {
	for _, p := range among {
		if _, late := s.late[p]; late && !seen[p] && (!found || s.event(p).End > s.event(next).End) {
			next, found = p, true
		}
	}
	return next, found
}

// ran returns what the event's start depended on outside of the host.
func (s *step) ran(n node) (out []node) {
	ev := s.event(n)
	if ev.Kind == Host {
		return nil
	}
	if m, ok := s.meets[ev.Meet]; ok && m.last.worker != n.worker && (ev.Kind == Receive || m.start > ev.Start) {
		out = append(out, m.last)
	}
	return append(out, s.ranBefore(n, s.path(n.worker))...)
}

// hosted returns the host's part in the event: what launched it, or was before it.
func (s *step) hosted(n node) []node {
	ev := s.event(n)
	if ev.Kind != Host {
		if scope, ok := s.launcher(n); ok {
			return []node{{n.worker, scope}}
		}
		return nil
	}
	events, host := s.workers[n.worker].Events, s.path(n.worker).host
	i, _ := slices.BinarySearch(host, n.event)
	last, found := int32(0), false
	for k := i - 1; k >= max(0, i-maxLook); k-- {
		if e := host[k]; events[e].End <= ev.Start && (!found || events[e].End > events[last].End) {
			last, found = e, true
		}
	}
	if !found {
		return nil
	}
	return []node{{n.worker, last}}
}

// maxLook is how many events back the one before on the same stream is looked for.
const maxLook = 256

// ranBefore returns what the device had ended last when the event began, on any stream
// and on its own.
func (s *step) ranBefore(n node, p *path) (out []node) {
	events := s.workers[n.worker].Events
	ev := &events[n.event]
	i, _ := slices.BinarySearchFunc(p.byEnd, ev.Start+1, func(e int32, at int64) int { return cmp.Compare(events[e].End, at) })
	for k := i - 1; k >= max(0, i-maxLook); k-- {
		e := p.byEnd[k]
		if e == n.event {
			continue
		}
		if len(out) == 0 {
			out = append(out, node{n.worker, e})
		}
		if events[e].Lane == ev.Lane {
			return append(out, node{n.worker, e})
		}
	}
	return out
}

// launcher returns the operation or scope in which the host was when it launched the
// event: of several, the one that began last.
func (s *step) launcher(n node) (int32, bool) {
	events := s.workers[n.worker].Events
	ev := &events[n.event]
	if ev.Launch == 0 || ev.Kind == Host {
		return 0, false
	}
	host := s.path(n.worker).host
	i, _ := slices.BinarySearchFunc(host, ev.Launch+1, func(e int32, at int64) int { return cmp.Compare(events[e].Start, at) })
	for k := i - 1; k >= max(0, i-maxLook); k-- {
		if events[host[k]].End >= ev.Launch {
			return host[k], true
		}
	}
	return 0, false
}

func (s *step) path(worker int32) *path {
	if s.paths[worker] != nil {
		return s.paths[worker]
	}
	p := &path{}
	events := s.workers[worker].Events
	for e := range events {
		if events[e].Kind == Host {
			p.host = append(p.host, int32(e))
		} else {
			p.byEnd = append(p.byEnd, int32(e))
		}
	}
	slices.SortStableFunc(p.byEnd, func(a, b int32) int { return cmp.Compare(events[a].End, events[b].End) })
	s.paths[worker] = p
	return p
}
