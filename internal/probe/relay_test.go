// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/netstamp/netstamptest"
)

// relay stands between a node and its peer, and changes replies.
type relay struct {
	w     *world
	t     *testing.T
	peer  netip.AddrPort
	front *netstamptest.Port

	mu      sync.Mutex
	change  func(reply []byte) [][]byte // what is sent instead
	clients map[netip.AddrPort]*netstamptest.Port
}

func (w *world) relay(t *testing.T, at, peer netip.AddrPort, change func(reply []byte) [][]byte) {
	t.Helper()
	r := &relay{w: w, t: t, peer: peer, change: change, clients: map[netip.AddrPort]*netstamptest.Port{}}
	r.front = w.open(t, at, r.request)
}

func (r *relay) request(packet []byte, from netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[from]
	if c == nil {
		var err error
		c, err = r.w.Open(netip.AddrPortFrom(from.Addr(), 0), func(reply []byte, _ netip.AddrPort) { r.reply(reply, from) })
		if !assert.NoError(r.t, err) {
			return
		}
		r.clients[from] = c
	}
	c.Send(packet, r.peer)
}

func (r *relay) reply(packet []byte, to netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.change(packet) {
		r.front.Send(b, to)
	}
}
