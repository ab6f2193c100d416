// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound what clients may ask of a server, all together and each address.
type Limits struct {
	// Connections are those of all addresses, PeerConnections of one.
	Connections, PeerConnections int
	// PeerRequests is how many requests of one address may be under way.
	PeerRequests int
	// PeerRate is how many requests, and how many new connections, of one address are taken in a second, over
	// ten seconds.
	PeerRate float64
}

// DefaultLimits are for servers that people and a few programs ask.
func DefaultLimits() Limits {
	return Limits{Connections: 1024, PeerConnections: 256, PeerRequests: 64, PeerRate: 100}
}

const (
	// burst is for how long an address may have asked for nothing, to ask for it at once.
	burst = 10 * time.Second
	// hold is for how long a request that comes too soon is held back before it is refused, so that a client
	// that keeps asking costs little.
	hold = time.Second
)

// Peers are the addresses that speak to a server. It is safe for concurrent use.
type Peers struct {
	limits                   Limits
	refused, unauthenticated atomic.Int64

	mu    sync.Mutex
	peers map[string]*peer
	conns map[net.Conn]string // those that count
}

type peer struct {
	conns, requests      int
	unauthenticated      int // requests that are held back
	asks, dials, guesses account
}

// account has one kind of what an address does: when the next is due at the rate.
type account struct{ next time.Time }

// NewPeers returns the addresses of one server, none yet.
func NewPeers(l Limits) *Peers {
	return &Peers{limits: l, peers: map[string]*peer{}, conns: map[net.Conn]string{}}
}

// Refused counts connections and requests beyond the limits.
func (p *Peers) Refused() int64 { return p.refused.Load() }

// Unauthenticated counts requests whose client did not authenticate.
func (p *Peers) Unauthenticated() int64 { return p.unauthenticated.Load() }

// PeerOf returns the address in a host:port. For an IPv6 address it returns the network of 64 bits, since one
// host has all addresses of that network. It returns "" for any other text, such as that of a Unix socket.
func PeerOf(address string) string {
	of, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	ip := of.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

// connState counts connections, and closes those beyond the limits.
func (p *Peers) connState(c net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if !p.connect(c) {
			p.refused.Add(1)
			_ = c.Close() // the server sees that it is closed
		}
	case http.StateClosed, http.StateHijacked:
		p.disconnect(c)
	}
}

func (p *Peers) connect(c net.Conn) bool {
	name, now := PeerOf(c.RemoteAddr().String()), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.peers[name]
	if len(p.conns) >= p.limits.Connections || of != nil && of.conns >= p.limits.PeerConnections {
		return false
	}
	if of == nil {
		p.forget()
		of = &peer{}
		p.peers[name] = of
	}
	if _, ok := of.dials.charge(p.limits.PeerRate, now); !ok {
		return false
	}
	of.conns++
	p.conns[c] = name
	return true
}

func (p *Peers) disconnect(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, ok := p.conns[c]
	if !ok {
		return
	}
	delete(p.conns, c)
	of := p.peers[name]
	if of.conns--; of.idle(time.Now()) {
		delete(p.peers, name)
	}
}

// idle reports whether an address is as one that never spoke.
func (of *peer) idle(now time.Time) bool {
	return !of.active() && of.asks.idle(now) && of.dials.idle(now) && of.guesses.idle(now)
}

func (of *peer) active() bool { return of.conns > 0 || of.requests > 0 || of.unauthenticated > 0 }

// forget makes room when there are more addresses than connections. It drops the addresses without a
// connection, of which only the rate is known. So a client that has a thousand other addresses can reset its
// rate.
func (p *Peers) forget() {
	if len(p.peers) < 2*p.limits.Connections {
		return
	}
	for name, of := range p.peers {
		if !of.active() {
			delete(p.peers, name)
		}
	}
}

// handler checks the limits before next does anything. It is behind the authentication: a client without
// credentials uses nothing of its address's share, since another process may have the same address.
func (p *Peers) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := PeerOf(r.RemoteAddr)
		of, wait, ok := p.begin(name, time.Now())
		if of != nil {
			defer p.done(name, of, &of.requests)
		}
		if wait > 0 && !pause(r, wait) {
			return
		}
		if !ok {
			p.refused.Add(1)
			h := w.Header()
			h["Content-Type"], h["Retry-After"] = tooManyType, tooManyAfter
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write(tooMany) // a client that has gone asks again
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guard is before the authentication, which is next. It holds back the answers to those that show nothing.
func (p *Peers) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answered{ResponseWriter: w}
		next.ServeHTTP(&answer, r)
		if answer.status != http.StatusUnauthorized {
			return
		}
		p.unauthenticated.Add(1)
		name := PeerOf(r.RemoteAddr)
		of, wait := p.guess(name, time.Now())
		if wait > 0 {
			_ = pause(r, wait) // the server sees whether the client has gone
		}
		p.done(name, of, &of.unauthenticated)
	})
}

// answered notes the status of an answer.
type answered struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController the writer below.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// The answer to a request beyond the limits.
var (
	tooMany      = []byte(`{"error":"too many requests of one address; ask again in a second"}` + "\n")
	tooManyType  = []string{"application/json"}
	tooManyAfter = []string{"1"}
)

// begin counts a request. It returns how long the request is to be held back, and whether it is taken then.
func (p *Peers) begin(name string, now time.Time) (of *peer, wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of = p.peer(name)
	if of.requests >= p.limits.PeerRequests {
		return nil, 0, false
	}
	of.requests++
	wait, ok = of.asks.charge(p.limits.PeerRate, now)
	return of, wait, ok
}

// guess counts a request that showed nothing. It returns how long its answer is held back; no time, where as many
// are as may be.
func (p *Peers) guess(name string, now time.Time) (of *peer, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of = p.peer(name)
	if of.unauthenticated++; of.unauthenticated <= p.limits.PeerRequests {
		wait, _ = of.guesses.charge(p.limits.PeerRate, now)
	}
	return of, wait
}

// peer returns an address, which has no connection of its own in a test.
func (p *Peers) peer(name string) *peer {
	of := p.peers[name]
	if of == nil {
		of = &peer{}
		p.peers[name] = of
	}
	return of
}

// charge takes one at the rate. It returns in what time it is due, or that this is too long.
func (a *account) charge(rate float64, now time.Time) (wait time.Duration, ok bool) {
	if first := now.Add(-burst); a.next.Before(first) {
		a.next = first
	}
	if wait = a.next.Sub(now); wait > hold {
		return hold, false
	}
	a.next = a.next.Add(time.Duration(float64(time.Second) / rate))
	return wait, true
}

func (a *account) idle(now time.Time) bool { return !a.next.After(now.Add(-burst)) }

// done takes one from a count of an address, and forgets an address that did nothing for long.
func (p *Peers) done(name string, of *peer, count *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *count--; of.idle(time.Now()) && p.peers[name] == of {
		delete(p.peers, name)
	}
}

// pause reports whether the client is still there after a time.
func pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
