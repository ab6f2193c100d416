// SPDX-License-Identifier: Apache-2.0

package netstamptest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// AwaitStamps waits until the kernel stamps what it receives, and keeps it so until the
// test ends. The first socket that asks for stamps switches them on for the whole kernel,
// from a work queue: on a busy machine packets arrive before that.
func AwaitStamps(tb testing.TB) {
	tb.Helper()
	conn, err := netstamp.Listen(netstamp.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(tb, err)
	ended := make(chan error, 1)
	go func() { ended <- conn.Run(ignore{}) }()
	tb.Cleanup(func() {
		require.NoError(tb, conn.Close())
		require.NoError(tb, <-ended)
	})
	require.Eventually(tb, func() bool {
		_, err := conn.Send([]byte("stamp"), conn.LocalAddr())
		return err == nil && conn.Counters().ReceivedStamps[stamp.KindKernel] > 0
	}, time.Minute, time.Millisecond, "stamps of the kernel")
}

type ignore struct{}

func (ignore) Received([]byte, netip.AddrPort, stamp.Stamp, uint8) {}
func (ignore) Sent(uint32, stamp.Stamp)                            {}
