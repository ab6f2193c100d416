// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

const probeKey = "0123456789abcdef0123456789abcdef"

// node starts a collector that probes the other of two, both on this host.
func node(t *testing.T, name string, port uint16) *collector {
	t.Helper()
	at := map[string]string{"a": "127.0.0.2", "b": "127.0.0.3"}
	return attacked(t, t.TempDir(), fmt.Sprintf(`
receivers:
  owd_probe: {node: %[1]s, host_id: %[1]s, endpoints: ['%[2]s:%[3]d'], peers: {list: ['a 127.0.0.2:%[3]d', 'b 127.0.0.3:%[3]d']}, auth: {key: %[4]s}, window: 1s, rate: 50}`,
		name, at[name], port, probeKey),
		"  pipelines: {logs: {receivers: [owd_probe], exporters: [file]}}")
}

// attacker sends from an address as fast as it can, and counts what comes back.
type attacker struct {
	conn       *net.UDPConn
	sent, back atomic.Int64 // bytes
	packets    int
}

func newAttacker(t *testing.T, from string, to netip.AddrPort) *attacker {
	t.Helper()
	conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0)), net.UDPAddrFromAddrPort(to))
	require.NoError(t, err)
	a := &attacker{conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for {
			n, err := conn.Read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			a.back.Add(int64(n))
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return a
}

// flood sends for a while; each packet is the n-th that next makes.
func (a *attacker) flood(d time.Duration, next func(n int) []byte) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 256 {
			n, _ := a.conn.Write(next(a.packets)) // what the kernel refuses is not sent
			a.sent.Add(int64(n))
			a.packets++
		}
	}
}

// offsets are the edges from one clock to the other: both are one clock in truth, so that each
// must leave 0 between its bounds.
func offsets(t *testing.T, c *collector) (edges []model.ClockEdge) {
	t.Helper()
	f, err := os.Open(filepath.Join(c.dir, "out.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(in.Bytes())
		if err != nil {
			continue // the line that is being written
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					e, ok, err := clockmap.LogToEdge(lr)
					require.NoError(t, err)
					if ok && e.Source == model.EdgeProbe && strings.HasPrefix(e.Dst, "host:b/") {
						edges = append(edges, e)
					}
				}
			}
		}
	}
	return edges
}

func TestProbes(t *testing.T) {
	program(t)
	l, err := net.ListenPacket("udp4", "127.0.0.2:0")
	require.NoError(t, err)
	port := l.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	require.NoError(t, l.Close())
	a, b := node(t, "a", port), node(t, "b", port)
	a.eventually("edges", func() bool { return len(offsets(t, a)) >= 3 })
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port)

	key, err := stamp.NewKey([]byte(probeKey))
	require.NoError(t, err)
	other, err := stamp.NewKey([]byte("fedcba9876543210fedcba9876543210"))
	require.NoError(t, err)
	request := func(key *stamp.Key) []byte {
		s, err := stamp.NewSender(stamp.SenderConfig{Key: key, SSID: 9, ClockID: "host:b/boot/raw"})
		require.NoError(t, err)
		r, _ := s.Next(stamp.Stamp{Raw: 1, Unix: 1790000000000000000, Kind: stamp.KindUser}, stamp.Single, nil)
		return r
	}
	noise := make([]byte, 1400)
	_, err = rand.Read(noise)
	require.NoError(t, err)
	recorded, forged, plain := request(key), request(other), request(nil)

	const each = 5 * time.Second
	for _, flood := range []struct {
		what, from string
		next       func(n int) []byte
	}{
		{"noise and unsigned requests of an address that is no member's", "127.0.0.9", func(n int) []byte {
			if n%2 == 0 {
				return plain
			}
			return noise[:44+n%1300]
		}},
		{"a request that was recorded, signed with the key, of an address that is no member's", "127.0.0.9", func(int) []byte { return recorded }},
		{"requests signed with another key, of a member's address", "127.0.0.3", func(int) []byte { return forged }},
		{"a request that was recorded, again and again, of a member's address", "127.0.0.3", func(int) []byte { return recorded }},
	} {
		before, used, from := len(offsets(t, a)), a.cpu(), newAttacker(t, flood.from, to)
		begin := time.Now()
		from.flood(each, flood.next)
		took := time.Since(begin)
		busy := a.cpu() - used
		a.eventually("edges after the flood", func() bool { return len(offsets(t, a)) >= before+2 })
		assert.LessOrEqual(t, from.back.Load(), from.sent.Load(), "no more bytes come back than were sent")
		table.add(t, "owd_probe", flood.what, from.packets, a.peak(), fmt.Sprintf("%.0f packets/s; %d of %d bytes came back; %.2f of a core",
			float64(from.packets)/took.Seconds(), from.back.Load(), from.sent.Load(), busy.Seconds()/took.Seconds()))
	}
	edges := offsets(t, a)
	for _, e := range edges {
		assert.LessOrEqual(t, e.Lower, int64(0))
		assert.GreaterOrEqual(t, e.Upper, int64(0))
	}
	refused := a.reasons("receiver_owd_probe_refused")
	b.ends()
	a.survives("owd_probe", "after all floods: edges between both nodes, of which each has the truth between its bounds", len(edges), "refused: "+refused)
}
