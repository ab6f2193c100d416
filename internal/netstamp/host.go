// SPDX-License-Identifier: Apache-2.0

package netstamp

import "net/netip"

// PacketConn is a UDP socket whose packets are stamped: a Conn, or a socket of a network
// that exists in memory only. Its methods are those of Conn.
type PacketConn interface {
	LocalAddr() netip.AddrPort
	Fallback() string
	Counters() Counters
	Send(b []byte, to netip.AddrPort) (id uint32, err error)
	Run(h Handler) error
	Close() error
}

// Host is what a prober uses of its machine beside the clocks.
type Host interface {
	// Listen opens a socket, as the function Listen does.
	Listen(c Config) (PacketConn, error)
	// NewPacer returns a Pacer of rate ticks a second, as the function NewPacer does.
	NewPacer(rate float64) (*Pacer, error)
}

// ThisHost returns the machine that runs the program.
func ThisHost() Host { return thisHost{} }

type thisHost struct{}

func (thisHost) Listen(c Config) (PacketConn, error) {
	conn, err := Listen(c)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (thisHost) NewPacer(rate float64) (*Pacer, error) { return NewPacer(rate) }
