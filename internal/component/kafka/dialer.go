// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Dialer makes the connections of a client, and ends those on which brokers do not answer, or all at once: a client
// that waits for an answer returns then, so that a component can stop in time. It is safe for concurrent use.
type Dialer struct {
	timeout time.Duration
	ctx     context.Context //nolint:containedctx // done once connections are no longer made
	cancel  context.CancelFunc

	mu    sync.Mutex
	open  map[*conn]struct{}
	ended bool
}

// NewDialer returns a dialer that waits so long for a connection.
func NewDialer(timeout time.Duration) *Dialer {
	d := &Dialer{timeout: timeout, open: map[*conn]struct{}{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Dial connects to an address. The client's interface has no context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.timeout)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the address
	}
	tracked := &conn{Conn: c, dialer: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	d.open[tracked] = struct{}{}
	return tracked, nil
}

// End closes all connections, and makes none any more.
func (d *Dialer) End() {
	d.cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	for c := range d.open {
		_ = c.Conn.Close()
	}
}

// Ended reports whether no connections are made any more.
func (d *Dialer) Ended() bool { return d.ctx.Err() != nil }

// Break closes the connections on which no answer has come for so long after a request, and returns how many they are.
func (d *Dialer) Break(limit time.Duration) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if asked := c.asked.Load(); asked != nil && time.Since(*asked) > limit {
			_ = c.Conn.Close()
			n++
		}
	}
	return n
}

// conn is a connection that its dialer knows until it is closed.
type conn struct {
	net.Conn
	dialer *Dialer
	// asked is when the first request after the last answer was written; nil: none was. Of several requests under way,
	// the first answer stands for all, until the next request.
	asked atomic.Pointer[time.Time]
}

// Write writes a request.
func (c *conn) Write(b []byte) (int, error) {
	now := time.Now()
	c.asked.CompareAndSwap(nil, &now)
	return c.Conn.Write(b) //nolint:wrapcheck // as of any connection
}

// Read reads of an answer.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.asked.Store(nil)
	}
	return n, err //nolint:wrapcheck // as of any connection
}

// Close closes the connection.
func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // as of any connection
}
