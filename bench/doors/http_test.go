// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// idleConnections are held open at once.
	idleConnections = 10_000
	slowConnections = 500
)

// attackHTTP does to a server what needs no knowledge of it, and returns how often, and what
// became of the connections.
func attackHTTP(c *collector, address, path string) (tries int, note string) {
	t := c.t
	t.Helper()
	c.listens(address)
	var held []net.Conn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	for range idleConnections {
		held = append(held, dial(t, address))
	}
	slow := held[:slowConnections]
	for _, conn := range slow {
		_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nX-", path)
		require.NoError(t, err)
	}
	tries += idleConnections
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "PRI", "\x00", strings.Repeat("M", 100_000)} {
		for _, target := range []string{path, "*", "/../../../../etc/passwd", "/%2e%2e/%00", "http://elsewhere/", "/" + strings.Repeat("x", 2<<20), "//"} {
			for _, header := range []string{"", "Content-Length: -1\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 2000)} {
				conn := dial(t, address)
				require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
				_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", method, target, header)
				if tcp, ok := conn.(*net.TCPConn); ok {
					_ = tcp.CloseWrite()
				}
				answer, _ := io.ReadAll(conn)
				assert.NotContains(t, string(answer), "root:x:0:0")
				conn.Close()
				tries++
			}
		}
	}
	for _, conn := range slow {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err := io.Copy(io.Discard, conn)
		if err != nil && os.IsTimeout(err) {
			return tries, fmt.Sprintf("connections with half a header stay open for more than %v", patience)
		}
	}
	return tries, fmt.Sprintf("%d connections with half a header were all closed", slowConnections)
}

func TestTimeline(t *testing.T) {
	dir := t.TempDir()
	port := freePort(t)
	otlp := freePort(t)
	c := attacked(t, dir, fmt.Sprintf(`
receivers:
  otlp: {protocols: {http: {endpoint: '127.0.0.1:%d'}}}
connectors:
  clocks: {timeline: timeline}
extensions:
  timeline: {endpoint: '127.0.0.1:%d'}`, otlp, port), `  extensions: [timeline]
  pipelines:
    logs: {receivers: [otlp], processors: [memory_limiter], exporters: [clocks]}
    metrics: {receivers: [clocks], exporters: [file]}`)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	tries, note := attackHTTP(c, address, "/timeline")
	for range 2000 {
		answer, err := client.Get("http://" + address + "/timeline")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		answer.Body.Close()
		tries++
	}
	c.survives("timeline HTTP", "idle and slow connections, headers without end, long paths, all methods, 2,000 questions", tries, note)
}

// TestZPages: no published configuration has the extension, and where a person adds it as it
// comes, it listens on this host alone.
func TestZPages(t *testing.T) {
	root := repository(t)
	configs, err := filepath.Glob(filepath.Join(root, "distro", "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, configs)
	for _, path := range configs {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "zpages", path)
	}
	dir := t.TempDir()
	otlp := freePort(t)
	c := attacked(t, dir, fmt.Sprintf(`
receivers:
  otlp: {protocols: {http: {endpoint: '127.0.0.1:%d'}}}
extensions:
  zpages:`, otlp), `  extensions: [zpages]
  pipelines: {logs: {receivers: [otlp], processors: [memory_limiter], exporters: [file]}}`)
	listens := listeners(t, c.cmd.Process.Pid)
	for _, address := range listens {
		assert.True(t, address.IsLoopback(), "%v", address)
	}
	tries, note := attackHTTP(c, "127.0.0.1:55679", "/debug/servicez")
	c.survives("zpages", fmt.Sprintf("in none of %d published configurations; by default on localhost alone, attacked as the timeline", len(configs)), tries, note)
}
