// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math/rand/v2"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/netstamp"
)

// schedule says whose turn it is. Each round, everybody is probed once, in a fresh
// random order: with one that stays, nodes whose rounds happen to coincide
// would meet in the same queues again and again.
type schedule struct {
	mu      sync.Mutex
	targets []*target
	next    int
}

// set replaces the targets; a new round begins.
func (s *schedule) set(targets []*target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets, s.next = append([]*target(nil), targets...), 0
	s.shuffle()
}

// due returns whose turn it is; nil where there is nobody.
func (s *schedule) due() *target {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.targets) == 0 {
		return nil
	}
	if s.next == len(s.targets) {
		s.next = 0
		s.shuffle()
	}
	t := s.targets[s.next]
	s.next++
	return t
}

func (s *schedule) shuffle() {
	rand.Shuffle(len(s.targets), func(i, j int) { s.targets[i], s.targets[j] = s.targets[j], s.targets[i] })
}

// pacer calls a function at a rate, from one thread for all sessions. One
// goroutine uses it.
type pacer struct {
	host    netstamp.Host
	now     *netstamp.Pacer
	rate    float64
	done    chan struct{}
	skipped int64
}

// pace changes the rate to so many ticks a second; 0 stops.
func (p *pacer) pace(rate float64, tick func()) {
	if rate == p.rate {
		return
	}
	p.stop()
	if rate == 0 {
		return
	}
	now, err := p.host.NewPacer(rate)
	if err != nil {
		panic(err) // the limits of Config keep the rate within a Pacer's
	}
	p.now, p.rate, p.done = now, rate, make(chan struct{})
	done := p.done
	go func() {
		defer close(done)
		now.Run(func(uint64) { tick() })
	}()
}

// stop waits until nothing is ticking any more.
func (p *pacer) stop() {
	if p.now == nil {
		return
	}
	p.now.Stop()
	<-p.done
	p.skipped += p.now.Skipped()
	p.now, p.rate = nil, 0
}

// lost is how many ticks were skipped because the host stood still.
func (p *pacer) lost() int64 {
	n := p.skipped
	if p.now != nil {
		n += p.now.Skipped()
	}
	return n
}
