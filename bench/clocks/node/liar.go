// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// liar answers as every node does, with stamps that it changed. It probes nobody:
// what a prober says of others is its own word, what it answers is what they judge.
type liar struct {
	plan      *plan.Node
	conn      *netstamp.Conn
	clock     *netstamp.Skewed
	reflector *stamp.Reflector
	sent      map[uint32]reply
	held      map[netip.Addr]int64 // readings that are told again
}

type reply struct {
	to     netip.AddrPort
	number stamp.Number
}

func lie(ctx context.Context, n *plan.Node) error {
	l := &liar{plan: n, clock: n.Clock.Skewed(), sent: map[uint32]reply{}, held: map[netip.Addr]int64{}}
	var err error
	if l.conn, err = netstamp.Listen(netstamp.Config{Addr: netip.AddrPortFrom(n.Addr, plan.Port), Clock: l.clock}); err != nil {
		return err
	}
	if l.reflector, err = stamp.NewReflector(stamp.ReflectorConfig{Stateful: true, ClockID: plan.RawClock(n.Name)}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	if err := l.conn.Run(l); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// Received implements netstamp.Handler.
func (l *liar) Received(data []byte, from netip.AddrPort, s stamp.Stamp, ttl uint8) {
	switch l.plan.Lie.Kind {
	case plan.Different:
		s.Raw += l.different(from.Addr())
	case plan.Replayed:
		s.Raw = l.replayed(from.Addr(), s.Raw)
	case plan.Inconsistent:
		s.Raw -= l.plan.Lie.Size
	}
	answer, err := l.reflector.Handle(data, from, s, ttl, l.clock.Pair().Raw, nil)
	if err != nil {
		return
	}
	id, err := l.conn.Send(answer, from)
	if err != nil {
		return
	}
	// Of what is older no stamp comes any more.
	delete(l.sent, id-1<<16)
	l.sent[id] = reply{from, l.reflector.Number()}
}

// Sent implements netstamp.Handler.
func (l *liar) Sent(id uint32, s stamp.Stamp) {
	r, ok := l.sent[id]
	if !ok {
		return
	}
	delete(l.sent, id)
	switch l.plan.Lie.Kind {
	case plan.Different:
		s.Raw += l.different(r.to.Addr())
	case plan.Replayed:
		s.Raw = l.replayed(r.to.Addr(), s.Raw)
	case plan.Asymmetric:
		s.Raw -= l.plan.Lie.Size
	}
	l.reflector.Sent(r.to, r.number, s)
}

// different is what a peer is told too much: from minus the lie's size to plus, in equal
// steps over the peers.
func (l *liar) different(peer netip.Addr) int64 {
	for i, p := range l.plan.Peers {
		if p.Addr == peer {
			return l.plan.Lie.Size * int64(2*i-len(l.plan.Peers)+1) / int64(len(l.plan.Peers)-1)
		}
	}
	return 0
}

// replayed tells a peer the same reading again until it is as old as the lie is
// large.
func (l *liar) replayed(peer netip.Addr, now int64) int64 {
	if now-l.held[peer] > l.plan.Lie.Size {
		l.held[peer] = now
	}
	return l.held[peer]
}
