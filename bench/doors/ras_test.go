// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// hostileServer serves each connection in a way of its own.
func hostileServer(t *testing.T, asked *atomic.Int64, serve func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			// Whatever it does, it does not outlive the collector's question by much.
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// polite answers as NCCL does until it is asked for the status.
func polite(conn net.Conn, status func()) {
	for _, answer := range []string{"SERVER PROTOCOL 2\n", "OK\n", "OK\n"} {
		if _, err := conn.Read(make([]byte, 1024)); err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
	_, _ = conn.Read(make([]byte, 1024))
	status()
}

func endlessly(conn net.Conn, text string, pause time.Duration) {
	for {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

func TestRAS(t *testing.T) {
	program(t)
	var asked atomic.Int64
	mebibyte := strings.Repeat(" ", 1<<20)
	servers := []string{
		hostileServer(t, &asked, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }),                    // never answers
		hostileServer(t, &asked, func(conn net.Conn) { endlessly(conn, mebibyte, 0) }),                        // one line without an end
		hostileServer(t, &asked, func(conn net.Conn) { endlessly(conn, "S", time.Second) }),                   // a byte a second
		hostileServer(t, &asked, func(net.Conn) {}),                                                           // closes
		hostileServer(t, &asked, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400\r\n\r\n") }), // another protocol
		hostileServer(t, &asked, func(conn net.Conn) { polite(conn, func() { endlessly(conn, mebibyte, 0) }) }),
		hostileServer(t, &asked, func(conn net.Conn) {
			polite(conn, func() { _, _ = io.WriteString(conn, strings.Repeat(`{"a":`, 6<<20)) })
		}),
		hostileServer(t, &asked, func(conn net.Conn) {
			polite(conn, func() { _, _ = io.WriteString(conn, `{"nccl_version":"2.29.2","communicators":[{"hash":"`) })
		}),
		hostileServer(t, &asked, func(conn net.Conn) {
			polite(conn, func() { _, _ = io.WriteString(conn, "{"+strings.Repeat(`"k":[1,2,3],`, 2<<20)) })
		}),
		"127.0.0.1:1", // no server listens here
	}
	good := rastest.Start(t, rastest.JSON(rastest.Comm{Hash: 7, Members: []rastest.Member{{Rank: 0, Host: "10.0.0.1", PID: 10}, {Rank: 1, Host: "10.0.0.2", PID: 11}}}))
	var list []string
	for _, s := range append(servers, good.Address) {
		list = append(list, "'"+s+"'")
	}
	c := attacked(t, t.TempDir(), fmt.Sprintf(`
receivers:
  nccl_ras: {endpoints: [%s], job_id: job, poll_interval: 500ms, wait: 1s, timeout: 2s, heartbeat: 1s}`, strings.Join(list, ", ")),
		"  pipelines: {logs: {receivers: [nccl_ras], processors: [memory_limiter], exporters: [file]}}")
	c.receives("lockstep.rank.state")
	c.eventually("questions to all servers", func() bool { return asked.Load() >= int64(10*len(servers)) })
	told := c.count("receiver_nccl_ras_answers", `reason="told"`)
	c.eventually("answers of a server that behaves", func() bool { return c.count("receiver_nccl_ras_answers", `reason="told"`) > told })
	c.survives("nccl_ras", "servers that never answer, never end, trickle a byte a second, close, speak HTTP, nest 6 Mi deep, cut; nobody", int(asked.Load()), c.reasons("receiver_nccl_ras_answers"))
}
