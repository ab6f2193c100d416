// SPDX-License-Identifier: Apache-2.0

package web

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
)

// patience is how long a test waits for what takes milliseconds.
const patience = 30 * time.Second

// serve starts a server that answers "ok", with timeouts of a test.
func serve(t *testing.T, limits Limits) (address string, peers *Peers) {
	t.Helper()
	cfg := DefaultConfig("127.0.0.1:0")
	cfg.ReadHeaderTimeout, cfg.ReadTimeout = 50*time.Millisecond, 100*time.Millisecond
	cfg.Keepalive = configoptional.Some(confighttp.KeepaliveServerConfig{IdleTimeout: 50 * time.Millisecond})
	peers = NewPeers(limits)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "ok")
	})
	server, err := NewServer(t.Context(), &cfg, peers, componenttest.NewNopHost(), componenttest.NewNopTelemetrySettings(), handler)
	require.NoError(t, err)
	require.Equal(t, maxHeader, server.MaxHeaderBytes)
	listener, err := cfg.ToListener(t.Context())
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return listener.Addr().String(), peers
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// awaitClosed reads until the server closes the connection.
func awaitClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	if e := net.Error(nil); err != nil && assert.ErrorAs(t, err, &e) {
		assert.False(t, e.Timeout(), "the server keeps it")
	}
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestServer_SlowClient_IsClosed(t *testing.T) {
	address, _ := serve(t, DefaultLimits())
	trickle := func(conn net.Conn, text string) {
		for i := range len(text) {
			if _, err := conn.Write([]byte{text[i]}); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // slower than the server allows, as a slow client is
		}
	}
	for name, speak := range map[string]func(net.Conn){
		"sends nothing":               func(net.Conn) {},
		"sends a header byte by byte": func(c net.Conn) { trickle(c, "GET / HTTP/1.1\r\nX: "+strings.Repeat("a", 1000)) },
		"sends a body byte by byte": func(c net.Conn) {
			trickle(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("a", 100))
		},
		"asks once and is silent then": func(c net.Conn) { _, _ = io.WriteString(c, request) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, address)
			go speak(conn)
			awaitClosed(t, conn)
		})
	}
}

func TestCheckConfig(t *testing.T) {
	cfg := DefaultConfig("localhost:1")
	require.NoError(t, CheckConfig(&cfg))
	cfg.ReadHeaderTimeout = 0
	require.NoError(t, CheckConfig(&cfg), "read_timeout bounds the header, too")
	cfg.ReadTimeout = 0
	require.EqualError(t, CheckConfig(&cfg), "check read_header_timeout: got 0s, and no read_timeout; want more than 0 for one of them, with a unit")
}

func TestServer_ConnectionsBeyondTheLimits_AreClosed(t *testing.T) {
	for name, limits := range map[string]Limits{
		"of one address":   {Connections: 100, PeerConnections: 2, PeerRequests: 10, PeerRate: 1000},
		"of all addresses": {Connections: 2, PeerConnections: 100, PeerRequests: 10, PeerRate: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPeers(limits)
			first, second := pipe(t), pipe(t)
			p.connState(first, http.StateNew)
			p.connState(second, http.StateNew)
			third := pipe(t)
			p.connState(third, http.StateNew)
			assert.EqualValues(t, 1, p.Refused())
			_, err := third.Write([]byte{1})
			require.ErrorIs(t, err, io.ErrClosedPipe)
			p.connState(third, http.StateClosed)
			p.connState(first, http.StateClosed)
			p.connState(pipe(t), http.StateNew)
			assert.EqualValues(t, 1, p.Refused(), "there is room again")
		})
	}
	t.Run("that come too often", func(t *testing.T) {
		p := NewPeers(Limits{Connections: 100, PeerConnections: 100, PeerRequests: 10, PeerRate: 0.5})
		for i := range 10 { // five of ten seconds, and one that is due within a second
			c := pipe(t)
			p.connState(c, http.StateNew)
			p.connState(c, http.StateClosed)
			assert.EqualValues(t, max(0, i+1-6), p.Refused())
		}
	})
	t.Run("over TCP", func(t *testing.T) {
		address, peers := serve(t, Limits{Connections: 1, PeerConnections: 1, PeerRequests: 1, PeerRate: 1000})
		first := dial(t, address)
		_, err := io.WriteString(first, request)
		require.NoError(t, err)
		second := dial(t, address)
		awaitClosed(t, second)
		assert.EqualValues(t, 1, peers.Refused())
	})
}

func pipe(t *testing.T) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
	})
	return from{ours, "10.0.0.1:1"}
}

func TestPeerOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:80":               "10.0.0.1",
		"[::ffff:10.0.0.1]:80":      "10.0.0.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[2001:db8:1:2::9]:81":      "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"@":                         "",
	} {
		assert.Equal(t, want, PeerOf(address), address)
	}
}
