// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Waits of a proxy step, by the order of their entries.
const (
	sendWire  = 2 // sending: GPU, peer, wire
	recvFlush = 1 // receiving: peer or wire, flush, GPU
)

// proxyStep takes one chunk that a proxy moved: joins it with its other half, if
// that is on this node, and hands it on as an operation of the host.
func (r *Rank) proxyStep(rec *ring.Record) {
	p := rec.ProxyStep()
	if max(p.Begin, p.Stop) > r.now+future {
		r.stats.BadTimes++
		return
	}
	c := r.comm(rec.Comm())
	f := r.fn(c, rec.Func())
	if !r.silent || !p.InStep || int64(p.TrainStep) > r.steps.closed {
		r.joinHalf(&p, c, f)
	}
	if r.node.cfg.Level < ring.LevelAll {
		return
	}
	op := r.next()
	r.proxyOp(op, &p, c, f)
	if p.InStep {
		if s := r.room(int64(p.TrainStep)); s != nil {
			s.emitted++
		}
	}
}

func (r *Rank) joinHalf(p *ring.ProxyStep, c *commState, f *funcState) {
	peer, ok := r.node.local(c.comm.Hash, p.Peer)
	entered := p.Waits[recvFlush]
	if p.Send {
		entered = p.Waits[sendWire]
	}
	if !ok || entered == 0 {
		return
	}
	k := halfKey{comm: c.comm.Hash, seq: p.Seq, fn: f.name, step: p.Number, channel: p.Channel, src: p.Peer, dst: c.comm.Rank}
	link := Link{Comm: c.id, Channel: p.Channel, Src: peer, Dst: r.global}
	if p.Send {
		k.src, k.dst = k.dst, k.src
		link.Src, link.Dst = r.global, peer
	}
	if f.name == "send" || f.name == "recv" {
		k.fn = "" // the two sides of a message have names of their own
	}
	r.node.links.add(k, half{entered, p.Send}, link)
}

// proxyKey says what proxy steps are compared with each other.
type proxyKey struct {
	send    bool
	channel uint8
	peer    int32
}

// maxProxyKeys bounds the texts of keys; beyond, steps share their name's.
const maxProxyKeys = 4096

func (r *Rank) proxyOp(op *model.Op, p *ring.ProxyStep, c *commState, f *funcState) {
	op.Kind, op.Name = model.KindHost, "proxy recv"
	if p.Send {
		op.Name = "proxy send"
	}
	op.Key = r.proxyKey(op.Name, proxyKey{p.Send, p.Channel, p.Peer})
	// What the other side's step is found by; see the receiver's README.
	op.Seq = int64(p.Seq)<<16 | int64(p.Number&0xffff)
	op.Start, op.End = r.unix(p.Begin), r.unix(max(p.Begin, p.Stop))
	if p.InStep {
		op.Step = model.Some(int64(p.TrainStep))
	}
	op.WorkBytes = model.Some(int64(p.Size))
	op.Comm = model.Comm{ID: c.id, Name: c.comm.Name, Size: positive(c.comm.Ranks), Rank: known(c.comm.Rank)}
	op.Collective = model.Collective{Name: f.name, Seq: model.Some(int64(p.Seq)), SeqScope: model.ScopeCommFunc}
	r.peer(op, c, p.Peer)
	op.Waits = waitsOfStep(p)
}

func (r *Rank) proxyKey(name string, k proxyKey) string {
	key, ok := r.proxyKeys[k]
	if !ok && len(r.proxyKeys) < maxProxyKeys {
		key = fmt.Sprintf("%s channel %d peer %d", name, k.channel, k.peer)
		r.proxyKeys[k] = key
	}
	return key
}

// waitsOfStep are the times from the entry into each wait to the next.
func waitsOfStep(p *ring.ProxyStep) (w model.ProxyWaits) {
	var took [3]model.Optional[float64]
	next := p.Stop
	for i := 2; i >= 0; i-- {
		if p.Waits[i] != 0 && next >= p.Waits[i] {
			took[i] = model.Some(seconds(next - p.Waits[i]))
			next = p.Waits[i]
		}
	}
	if p.Send {
		w.GPU, w.Peer, w.Wire = took[0], took[1], took[2]
	} else {
		w.Peer, w.Flush, w.GPU = took[0], took[1], took[2]
	}
	return w
}

// Detail hands on what the ring still holds above the level asked for, of the last
// seconds that its header says (RetainSeconds): what one wants to know after the
// fact. It is not announced by any step.
func (r *Rank) Detail(now uint64, emit Emit) {
	if !r.ready {
		return
	}
	r.now, r.emit, r.again = now, emit, true
	defer func() { r.again = false }()
	level := r.node.cfg.Level
	since := now - min(now, uint64(r.header.RetainSeconds)*uint64(time.Second))
	r.src.Snapshot(func(_ int, rec *ring.Record) {
		if rec.Kind() == ring.KindKernel && level < ring.LevelCollectives {
			r.kernelDetail(rec, since)
			return
		}
		if rec.LastSeen() < since {
			return
		}
		c := r.comm(rec.Comm())
		switch kind := rec.Kind(); {
		case kind == ring.KindProxyStep && level < ring.LevelAll:
			p := rec.ProxyStep()
			r.proxyOp(r.next(), &p, c, r.fn(c, rec.Func()))
		case kind == ring.KindOp && level < ring.LevelCollectives:
			op := r.next()
			r.operation(op, rec, c, r.fn(c, rec.Func()), r.timesOf(rec, c))
			op.Seq = int64(rec.Seq())
			if n, ok := rec.Step(); ok {
				op.Step = model.Some(int64(n))
			}
		}
	})
	r.flush()
}
