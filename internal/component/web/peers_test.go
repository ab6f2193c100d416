// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask sends requests of one address one after another, and returns how many came of each status.
func ask(h http.Handler, address string, n int) map[int]int {
	got := map[int]int{}
	for range n {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got[w.Code]++
	}
	return got
}

func TestPeers_Rate_HoldsBackOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPeers(Limits{Connections: 10, PeerConnections: 10, PeerRequests: 100, PeerRate: 10})
		h := p.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		began := time.Now()
		require.Equal(t, map[int]int{200: 101}, ask(h, "10.0.0.1:1", 101), "ten seconds' worth at once")
		require.Zero(t, time.Since(began))
		require.Equal(t, map[int]int{200: 20}, ask(h, "10.0.0.1:2", 20))
		require.Equal(t, 2*time.Second, time.Since(began), "then at the rate")
		began = time.Now()
		require.Equal(t, map[int]int{200: 50}, ask(h, "10.0.0.2:1", 50), "of another address nothing is held back")
		require.Zero(t, time.Since(began))

		// Of many at once those are refused that would wait for more than a second, after a second.
		var mu sync.Mutex
		var all sync.WaitGroup
		codes := map[int]int{}
		for range 50 {
			all.Go(func() {
				got := ask(h, "10.0.0.1:3", 1)
				mu.Lock()
				defer mu.Unlock()
				for code, n := range got {
					codes[code] += n
				}
			})
		}
		all.Wait()
		assert.Equal(t, map[int]int{200: 10, 429: 40}, codes)
		assert.Equal(t, time.Second, time.Since(began))
		assert.EqualValues(t, 40, p.Refused())
	})
}

// Requests that show nothing are held back by an account of their own, a number of them at once.
func TestPeers_Guesses_TakeNothingOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPeers(Limits{Connections: 10, PeerConnections: 10, PeerRequests: 2, PeerRate: 10})
		ok := p.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		refuses := p.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
		began := time.Now()
		require.Equal(t, map[int]int{401: 100}, ask(refuses, "10.0.0.1:1", 100))
		require.LessOrEqual(t, time.Since(began), time.Second/10, "ten seconds' worth at once")
		began = time.Now()
		require.Equal(t, map[int]int{401: 20}, ask(refuses, "10.0.0.1:1", 20))
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second-time.Second/10, "then at the rate")

		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { ask(refuses, "10.0.0.1:2", 5) })
		}
		synctest.Wait()
		began = time.Now()
		assert.Equal(t, map[int]int{200: 100}, ask(p.guard(ok), "10.0.0.1:3", 100))
		assert.Equal(t, map[int]int{401: 1}, ask(refuses, "10.0.0.1:4", 1), "two are held back: further ones cost no time")
		assert.Zero(t, time.Since(began))
		all.Wait()
		assert.Zero(t, p.Refused())
		assert.EqualValues(t, 131, p.Unauthenticated())
	})
}

func TestPeers_RequestsUnderWay_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPeers(Limits{Connections: 10, PeerConnections: 10, PeerRequests: 2, PeerRate: 1000})
		release := make(chan struct{})
		h := p.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { assert.Equal(t, map[int]int{200: 1}, ask(h, "10.0.0.1:1", 1)) })
		}
		synctest.Wait()
		assert.Equal(t, map[int]int{429: 1}, ask(h, "10.0.0.1:1", 1))
		close(release)
		all.Wait()
		assert.Equal(t, map[int]int{200: 1}, ask(h, "10.0.0.1:1", 1))
	})
}

func TestPeers_ManyAddresses_AreForgotten(t *testing.T) {
	p := NewPeers(Limits{Connections: 10, PeerConnections: 10, PeerRequests: 2, PeerRate: 0.01})
	for i := range 1000 {
		c := from{pipe(t), fmt.Sprintf("10.0.%d.%d:1", i/256, i%256)}
		p.connState(c, http.StateNew)
		name := PeerOf(c.address)
		of, _, _ := p.begin(name, time.Now())
		of.asks.next = time.Now().Add(time.Hour) // it asked too much
		p.done(name, of, &of.requests)
		p.connState(c, http.StateClosed)
		require.LessOrEqual(t, len(p.peers), 20)
	}
	assert.Empty(t, p.conns)
}

// from is a connection of an address.
type from struct {
	net.Conn

	address string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.address))
}
