// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"net"
	"testing"
	"time"

	"github.com/rcrowley/go-metrics"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A broker that accepts and never answers does not hold up the end.
func TestDialer_End_WakesReadersAndRefusesDials(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	d := NewDialer(10 * time.Second)
	c, err := d.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	closed, err := d.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	assert.Len(t, d.open, 1, "a closed connection is forgotten")

	read := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	d.End()
	assert.Error(t, <-read)
	_, err = d.Dial("tcp", l.Addr().String())
	assert.Error(t, err)
}

// Only connections on which an answer is overdue are closed.
func TestDialer_Break_ClosesSilentConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	d := NewDialer(10 * time.Second)
	defer d.End()
	connect := func() (here, there net.Conn) {
		here, err := d.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		there, err = l.Accept()
		require.NoError(t, err)
		return here, there
	}
	idle, one := connect()
	answered, two := connect()
	silent, three := connect()
	for _, c := range []net.Conn{answered, silent} {
		_, err := c.Write([]byte("?"))
		require.NoError(t, err)
	}
	_, err = two.Write([]byte("!"))
	require.NoError(t, err)
	_, err = answered.Read(make([]byte, 1))
	require.NoError(t, err)
	assert.Zero(t, d.Break(time.Hour))
	assert.Equal(t, 1, d.Break(0))
	_, err = silent.Read(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)
	assert.Len(t, d.open, 3, "its owner closes it")
	assert.Error(t, silent.Close())
	assert.Len(t, d.open, 2)
	for _, c := range []net.Conn{idle, answered} {
		_, err := c.Write([]byte("?"))
		assert.NoError(t, err)
	}
	for _, c := range []net.Conn{one, two, three} {
		require.NoError(t, c.Close())
	}
}

func TestMeters_Sent_IsTheSumOverLivesOfAClient(t *testing.T) {
	var m Meters
	assert.Zero(t, m.Sent())
	metrics.GetOrRegisterMeter("outgoing-byte-rate", &m).Mark(5)
	m.UnregisterAll() // the connection ends
	metrics.GetOrRegisterMeter("outgoing-byte-rate", &m).Mark(7)
	assert.EqualValues(t, 12, m.Sent())
	metrics.GetOrRegisterCounter("requests-in-flight", &m).Inc(1)
	n := 0
	m.Each(func(string, any) { n++ })
	assert.Equal(t, 2, n)
}
