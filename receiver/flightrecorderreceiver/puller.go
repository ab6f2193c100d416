// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
)

// maxParallel bounds the servers that are asked at a time, and with that the dumps held.
const maxParallel = 16

// puller asks debug servers in rounds. The nil puller asks none.
type puller struct {
	client    *frwatch.Puller
	endpoints []frwatch.Endpoint
	interval  time.Duration
	stacks    bool
	// mute is, of servers that did not say where their process is, the newest operation then:
	// one that holds Python's lock would have more and more requests waiting for it.
	mute []int64

	now      chan struct{}
	out      chan pulled
	finished chan struct{} // nil before start
}

// pulled is what came of one server, or the end of a round.
type pulled struct {
	endpoint *frwatch.Endpoint
	asked    time.Time // the dump is of no earlier
	at       time.Time // when the answer came
	dump     *flightrecorder.Dump
	host     string // where the process's main thread is; empty where unknown
	err      error
	end      bool
}

func newPuller(cfg *Config, options flightrecorder.Options) (*puller, error) {
	endpoints, err := cfg.endpoints()
	if err != nil || len(endpoints) == 0 {
		return nil, err
	}
	return &puller{
		client: frwatch.NewPuller(cfg.Pull.Timeout, cfg.MaxFileBytes, options), endpoints: endpoints, interval: cfg.Pull.Interval,
		stacks: cfg.Stacks, mute: make([]int64, len(endpoints)), now: make(chan struct{}, 1), out: make(chan pulled),
	}, nil
}

func (p *puller) start(ctx context.Context) {
	if p == nil {
		return
	}
	p.finished = make(chan struct{})
	go p.run(ctx)
}

// stop waits until nobody is asked any more; the context of start has ended.
func (p *puller) stop() {
	if p != nil && p.finished != nil {
		<-p.finished
		p.client.Close()
	}
}

// ask begins a round, or the one after that which is under way, and returns how many servers
// are asked.
func (p *puller) ask() int {
	if p == nil {
		return 0
	}
	select {
	case p.now <- struct{}{}:
	default: // one is going to begin anyway
	}
	return len(p.endpoints)
}

// results is where what came is received; nil, which never is ready, of the nil puller.
func (p *puller) results() <-chan pulled {
	if p == nil {
		return nil
	}
	return p.out
}

func (p *puller) run(ctx context.Context) {
	defer close(p.finished)
	var tick <-chan time.Time
	if p.interval > 0 {
		t := time.NewTicker(p.interval)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.now:
		case <-tick:
		}
		p.round(ctx)
	}
}

func (p *puller) round(ctx context.Context) {
	p.client.Renew()
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(maxParallel, len(p.endpoints)) {
		workers.Go(func() {
			for i := range next {
				got := pulled{endpoint: &p.endpoints[i], asked: time.Now()}
				got.dump, got.err = p.client.Pull(ctx, got.endpoint)
				if got.err == nil && p.stacks && frwatch.Idle(got.dump) {
					got.host = p.traceback(ctx, i, got.dump)
				}
				got.at = time.Now()
				p.give(ctx, got)
			}
		})
	}
	for i := range p.endpoints {
		next <- i
	}
	close(next)
	workers.Wait()
	p.give(ctx, pulled{end: true})
}

// traceback returns where the process is that gave a dump in which nothing is open. A server that
// does not say it is asked again once its process has called something.
func (p *puller) traceback(ctx context.Context, i int, dump *flightrecorder.Dump) string {
	newest := int64(1) // nothing recorded
	for k := range dump.Entries {
		newest = max(newest, dump.Entries[k].Created)
	}
	if p.mute[i] == newest {
		return ""
	}
	host, err := p.client.Traceback(ctx, &p.endpoints[i])
	if p.mute[i] = 0; err != nil {
		p.mute[i] = newest
	}
	return host
}

func (p *puller) give(ctx context.Context, d pulled) {
	select {
	case p.out <- d:
	case <-ctx.Done():
	}
}
