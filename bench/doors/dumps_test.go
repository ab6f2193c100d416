// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// attackedDumps starts a collector that gathers dumps of a folder.
func attackedDumps(t *testing.T, settings string) (c *collector, folder string) {
	t.Helper()
	dir := t.TempDir()
	folder = filepath.Join(dir, "dumps")
	require.NoError(t, os.Mkdir(folder, 0o700))
	c = attacked(t, dir, fmt.Sprintf(`
receivers:
  flight_recorder: {include: ['%s'], job_id: job, poll_interval: 100ms, settle: 100ms, wait: 200ms, max_wait: 1s%s}`, folder, settings),
		"  pipelines: {logs: {receivers: [flight_recorder], processors: [memory_limiter], exporters: [file]}}")
	return c, folder
}

// dump is a real one, of a rank of a job that hangs.
func dump(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata.Root(t), "testdata", "hangs", "killed", "dumps", "rank_0"))
	require.NoError(t, err)
	return b
}

// least is how many dumps must have been read or refused.
func dumpsSurvive(c *collector, folder, attack string, tries, least int, also string) {
	c.t.Helper()
	judged := func() float64 {
		return c.count("receiver_flight_recorder_dumps_failed") + c.count("receiver_flight_recorder_dumps_read")
	}
	c.eventually("a judgement of each dump", func() bool { return judged() >= float64(least) })
	before := c.count("receiver_flight_recorder_dumps_read")
	replace(c.t, filepath.Join(folder, "late_rank_7777"), dump(c.t))
	c.eventually("a dump of a process that behaves", func() bool { return c.count("receiver_flight_recorder_dumps_read") > before })
	counted := c.reasons("receiver_flight_recorder_dumps_failed")
	if n := c.count("receiver_flight_recorder_dumps_partial"); n > 0 {
		counted += fmt.Sprintf("; %.0f read in part", n)
	}
	c.survives("flight_recorder", attack, tries, strings.TrimPrefix(counted+also, "; "))
}

func TestFlightRecorder_NoRegularFiles(t *testing.T) {
	c, folder := attackedDumps(t, "")
	const tries = 900
	for i := range tries {
		strange(t, filepath.Join(folder, fmt.Sprintf("dump_rank_%d", i)), i)
	}
	holes := filepath.Join(folder, "dump_rank_1000")
	write(t, holes, []byte("\x80\x02}"))
	require.NoError(t, os.Truncate(holes, 1<<40))
	dumpsSurvive(c, folder, "pipes, devices, sockets, folders, links, and 1 TiB of holes in the place of dumps", tries+1, tries/9*8+1, "")
}

func TestFlightRecorder_Damaged(t *testing.T) {
	c, folder := attackedDumps(t, "")
	const tries = 2000
	good := dump(t)
	for i := range tries {
		bad := bytes.Clone(good)
		switch i % 4 {
		case 0:
			bad = bad[:rand.IntN(len(bad))]
		case 1:
			for range 1 + rand.IntN(20) {
				bad[rand.IntN(len(bad))] = byte(rand.Uint32())
			}
		case 2: // reaches for a function, and recalls what was never stored
			bad = append([]byte("\x80\x02cos\nsystem\nU\x02id\x85Rq\xffh\xff"), bad...)
		default:
			at := rand.IntN(len(bad))
			bad = append(bytes.Repeat([]byte("(l]}"), 1+rand.IntN(20000)), bad[at:]...)
		}
		write(t, filepath.Join(folder, fmt.Sprintf("dump_rank_%d", i)), bad)
	}
	dumpsSurvive(c, folder, "pickles cut, changed, with 80,000 operations put in front, and with calls of functions", tries, tries, "")
}

func TestFlightRecorder_Swapped(t *testing.T) {
	c, folder := attackedDumps(t, "")
	const tries = 3000
	path, good := filepath.Join(folder, "dump_rank_1"), dump(t)
	for i := range tries {
		require.NoError(t, os.RemoveAll(path))
		if i%10 == 0 {
			write(t, path, good[:rand.IntN(len(good))])
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			continue
		}
		strange(t, path, i)
	}
	require.NoError(t, os.RemoveAll(path))
	dumpsSurvive(c, folder, "a dump that becomes a pipe, a device or a link between two looks", tries, 0, "")
}

func TestFlightRecorder_TwoOfARank(t *testing.T) {
	c, folder := attackedDumps(t, "")
	const tries = 2000
	good := dump(t)
	for i := range tries {
		write(t, filepath.Join(folder, fmt.Sprintf("other%d_rank_%d", i/4, i%4)), good)
	}
	dumpsSurvive(c, folder, "500 dumps each of four ranks", tries, tries, "")
}

func TestFlightRecorder_Pipes(t *testing.T) {
	program(t)
	dir := t.TempDir()
	pipes := filepath.Join(dir, "pipes")
	require.NoError(t, os.Mkdir(pipes, 0o700))
	precious := filepath.Join(dir, "precious")
	write(t, precious, []byte("precious"))
	const tries = 900
	for i := range tries {
		path := filepath.Join(pipes, fmt.Sprintf("fr_%d.pipe", i))
		switch i % 3 {
		case 0:
			require.NoError(t, syscall.Mkfifo(path, 0o600)) // no process reads this pipe
		case 1:
			require.NoError(t, os.Symlink(precious, path))
		default:
			require.NoError(t, os.Link(precious, path))
		}
	}
	full, err := os.OpenFile(filepath.Join(pipes, "fr_0.pipe"), os.O_RDWR|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer full.Close()
	raw, err := full.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Write(func(fd uintptr) bool {
		for err = nil; err == nil; {
			_, err = syscall.Write(int(fd), make([]byte, 4096))
		}
		return true
	}))
	port := freePort(t)
	settings := fmt.Sprintf(", trigger: {endpoint: '127.0.0.1:%d', min_interval: 1ms, pipes: ['%s/fr_']}", port, pipes)
	c, folder := attackedDumps(t, settings)
	c.listens(fmt.Sprintf("127.0.0.1:%d", port))
	const requests = 20
	for range requests {
		answer := post(t, fmt.Sprintf("http://127.0.0.1:%d/trigger", port), "", nil)
		require.Contains(t, []int{http.StatusAccepted, http.StatusServiceUnavailable, http.StatusTooManyRequests}, answer)
		time.Sleep(2 * time.Millisecond)
	}
	b, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(b), "nothing but a pipe is written to")
	dumpsSurvive(c, folder, "requests through pipes that nobody reads, that are full, and links to files", tries*requests, 0, "; nothing but pipes was written to")
}

// post sends a body and returns the status of the answer; 0 where there was none.
func post(t *testing.T, url, kind string, body []byte) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Logf("send %d bytes to %s: %v", len(body), url, err)
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // its status is enough
	return answer.StatusCode
}

// TestFlightRecorder_Servers: the servers of processes are asked, and each is hostile in a way
// of its own.
func TestFlightRecorder_Servers(t *testing.T) {
	program(t)
	var asked atomic.Int64
	over := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(over) }) }
	defer end()
	server := func(answer http.HandlerFunc) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			answer(w, r)
		}))
		t.Cleanup(func() {
			end()
			s.CloseClientConnections()
			s.Close()
		})
		return s.URL
	}
	secret := server(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })
	zeroes := make([]byte, 1<<20)
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(zeroes); err != nil {
				return
			}
		}
	}
	urls := []string{
		server(func(_ http.ResponseWriter, r *http.Request) { // never answers
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}),
		server(endless),
		server(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, secret+"/", http.StatusFound) }),
		server(func(w http.ResponseWriter, r *http.Request) { // a byte each 100 ms
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		}),
		server(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1099511627776")
			_, _ = w.Write([]byte("\x80\x02"))
		}),
		server(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		server(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("no gzip"))
		}),
		server(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 8<<20))
			_, _ = w.Write([]byte("late"))
		}),
	}
	endpoints := ""
	for rank, url := range urls {
		endpoints += fmt.Sprintf("{url: '%s', ranks: ['%d']}, ", url, rank)
	}
	c, folder := attackedDumps(t, fmt.Sprintf(", max_file_bytes: 16777216, pull: {interval: 1s, timeout: 2s, endpoints: [%s]}", endpoints))
	c.eventually("questions to all servers", func() bool { return asked.Load() > int64(20*len(urls)) })
	tries := int(asked.Load())
	dumpsSurvive(c, folder, "debug servers that never answer, never end, trickle, redirect, lie about the length, cut, and send 8 MiB of headers", tries, 0,
		"; pulls: "+c.reasons("receiver_flight_recorder_pulls_failed"))
}

// TestFlightRecorder_Trigger: the server that takes requests for dumps.
func TestFlightRecorder_Trigger(t *testing.T) {
	port := freePort(t)
	c, folder := attackedDumps(t, fmt.Sprintf(", trigger: {endpoint: '127.0.0.1:%d', pipes: ['/nowhere/']}", port))
	tries, note := attackHTTP(c, fmt.Sprintf("127.0.0.1:%d", port), "/trigger")
	dumpsSurvive(c, folder, "trigger: idle and slow connections, headers without end, long paths, all methods", tries, 0, "; "+note)
}

// dial opens a connection, or fails the test.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	return conn
}
