// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	us     = int64(1_000)
	ms     = 1_000 * us
	second = 1_000 * ms
	// epoch is when the world begins, in Unix ns.
	epoch = 1_780_000_000 * second
)

// worldConfig is what a world is made of. The numbers are those of services in one
// data centre whose clocks nobody disciplines.
type worldConfig struct {
	seed      uint64
	hosts     int
	traces    int
	duration  int64 // ns, over which traces begin
	offset    int64 // ns, clocks are off by up to so much
	drift     float64
	asymmetry int64 // ns, by which the way there and the way back may differ
}

// usual is the world without flags.
var usual = worldConfig{seed: 1, hosts: 16, traces: 9000, duration: 30 * second, offset: 10 * ms, drift: 50e-6, asymmetry: 10 * us}

// host runs one service, whose clock shows its own time.
type host struct {
	offset int64
	drift  float64
}

// reads is what the host's clock shows at a true moment.
func (h *host) reads(at int64) int64 {
	return epoch + at + h.offset + int64(h.drift*float64(at))
}

// event is a span with the true moments of its stamps.
type event struct {
	trace, parent int // parent -1: root
	host          int
	kind          ptrace.SpanKind
	what          string // of its attributes: rpc, http, messaging, job or work
	start, end    int64
	failed        bool
	// async: nobody waits for it, so it may end after its parent, and begin then too.
	async bool
}

type world struct {
	worldConfig
	rnd   *rand.Rand
	clock []host
	// floor is the least time from one host to another.
	floor  [][]int64
	events []event
	trace  int
}

func newWorld(cfg worldConfig) *world {
	w := &world{worldConfig: cfg, rnd: rand.New(rand.NewPCG(cfg.seed, 0x5ca1ab1e))}
	for range cfg.hosts {
		w.clock = append(w.clock, host{
			offset: w.rnd.Int64N(2*cfg.offset+1) - cfg.offset,
			drift:  (2*w.rnd.Float64() - 1) * cfg.drift,
		})
		row := make([]int64, cfg.hosts)
		for i := range row {
			row[i] = 50*us + w.rnd.Int64N(cfg.asymmetry+1)
		}
		w.floor = append(w.floor, row)
	}
	for w.trace = range cfg.traces {
		at := int64(w.trace) * cfg.duration / int64(cfg.traces)
		w.serve(-1, w.rnd.IntN(cfg.hosts), "http", at, 0)
	}
	return w
}

// exp is exponential around a mean.
func (w *world) exp(mean int64) int64 { return int64(w.rnd.ExpFloat64() * float64(mean)) }

// late is how long after the fact a program stamps: some µs, and now and then it
// was not running.
func (w *world) late() int64 {
	if w.rnd.IntN(100) == 0 {
		return w.exp(2 * ms)
	}
	return w.exp(10 * us)
}

// travel is how long a message takes.
func (w *world) travel(from, to int) int64 { return w.floor[from][to] + w.exp(100*us) }

// peer is another service that one calls: each knows four.
func (w *world) peer(of int) int { return (of + 1 + w.rnd.IntN(min(4, w.hosts-1))) % w.hosts }

func (w *world) add(e event) int {
	e.trace = w.trace
	w.events = append(w.events, e)
	return len(w.events) - 1
}

// maxDepth of calls in calls.
const maxDepth = 3

// serve handles a request that arrives, and returns its span and the moment at
// which the answer leaves.
func (w *world) serve(parent, host int, what string, arrives int64, depth int) (id int, leaves int64) {
	at := arrives + w.late()
	id = w.add(event{parent: parent, host: host, kind: ptrace.SpanKindServer, what: what, start: at})
	at += w.exp(ms)
	if depth < maxDepth {
		for range w.rnd.IntN(3 - depth/2) {
			at = w.call(id, host, at, depth)
			at += w.exp(500 * us)
		}
	}
	switch w.rnd.IntN(6) {
	case 0:
		at = w.publish(id, host, at)
	case 1:
		w.dispatch(id, host, at)
	case 2:
		work := w.add(event{parent: id, host: host, kind: ptrace.SpanKindInternal, what: "work", start: at})
		at += w.exp(ms)
		w.events[work].end = at
	}
	at += w.exp(500 * us)
	w.events[id].end = at
	return id, at + w.late()
}

// call asks another service and waits, mostly until the answer is there.
func (w *world) call(parent, host int, at int64, depth int) int64 {
	what, to := "rpc", w.peer(host)
	if w.rnd.IntN(3) == 0 {
		what = "http"
	}
	id := w.add(event{parent: parent, host: host, kind: ptrace.SpanKindClient, what: what, start: at})
	server, leaves := w.serve(id, to, what, at+w.late()+w.travel(host, to), depth+1)
	end := leaves + w.travel(to, host) + w.late()
	if w.rnd.IntN(50) == 0 { // its patience was shorter; the server goes on
		w.events[id].failed = true
		end = at + int64(w.rnd.Float64()*float64(end-at))
		w.events[server].async = w.events[server].end > end
	}
	w.events[id].end = end
	return end
}

// publish sends a message that somebody works on later.
func (w *world) publish(parent, host int, at int64) int64 {
	id := w.add(event{parent: parent, host: host, kind: ptrace.SpanKindProducer, what: "messaging", start: at})
	sent := at + w.late()
	w.events[id].end = sent + w.exp(200*us)
	to := w.peer(host)
	begin := sent + w.travel(host, to) + w.exp(20*ms) + w.late()
	w.add(event{
		parent: id, host: to, kind: ptrace.SpanKindConsumer, what: "messaging",
		start: begin, end: begin + w.exp(10*ms), async: true,
	})
	return w.events[id].end
}

// dispatch starts a job on another host without a span of its own, and does not
// wait.
func (w *world) dispatch(parent, host int, at int64) {
	to := w.peer(host)
	begin := at + w.late() + w.travel(host, to) + w.exp(2*ms) + w.late()
	w.add(event{
		parent: parent, host: to, kind: ptrace.SpanKindInternal, what: "job",
		start: begin, end: begin + w.exp(10*ms), async: true,
	})
}
