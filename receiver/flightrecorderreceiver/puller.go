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

	now      chan struct{}
	out      chan pulled
	finished chan struct{} // nil before start
}

// pulled is what came of one server, or the end of a round.
type pulled struct {
	endpoint *frwatch.Endpoint
	at       time.Time
	dump     *flightrecorder.Dump
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
		now: make(chan struct{}, 1), out: make(chan pulled),
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
	var workers sync.WaitGroup
	next := make(chan *frwatch.Endpoint)
	for range min(maxParallel, len(p.endpoints)) {
		workers.Go(func() {
			for e := range next {
				dump, err := p.client.Pull(ctx, e)
				p.give(ctx, pulled{endpoint: e, at: time.Now(), dump: dump, err: err})
			}
		})
	}
	for i := range p.endpoints {
		next <- &p.endpoints[i]
	}
	close(next)
	workers.Wait()
	p.give(ctx, pulled{end: true})
}

func (p *puller) give(ctx context.Context, d pulled) {
	select {
	case p.out <- d:
	case <-ctx.Done():
	}
}
