// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// patience is how long a collector that works may take for what takes a second.
	patience = 2 * time.Minute
	// stopWithin is how long its end may take.
	stopWithin = 30 * time.Second
	// maxPeak is the most memory that an attack may make it use: the memory limiter of
	// these configurations refuses from 768 MiB on, and the data in flight comes on top.
	maxPeak = 2 << 30
)

// collector is a process under attack.
type collector struct {
	t         *testing.T
	cmd       *exec.Cmd
	dir       string
	telemetry string
	said      tailBuffer
	done      chan struct{}
	stopped   bool
}

// tailBuffer keeps the last of what a process says.
type tailBuffer struct {
	mu   sync.Mutex
	text []byte
	fell bool // the process said that it crashed
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mark := range []string{"panic: ", "fatal error: ", "goroutine 1 ["} {
		b.fell = b.fell || bytes.Contains(p, []byte(mark))
	}
	b.text = append(b.text, p...)
	b.text = b.text[max(0, len(b.text)-16<<10):]
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// freePort returns a port on which no process listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// frame is the configuration around the parts of an attack: what comes out lies in out.jsonl.
const frame = `%s
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1024, spike_limit_mib: 256}
exporters:
  file: {path: %s/out.jsonl, flush_interval: 100ms}
service:
%s
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]
`

// attacked starts a collector with components and a service of YAML.
func attacked(t *testing.T, dir, components, service string) *collector {
	t.Helper()
	program(t)
	port := freePort(t)
	path := filepath.Join(dir, "collector.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, frame, components, dir, service, port), 0o600))
	return run(t, dir, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), path)
}

// program returns the collector that is attacked, or skips the test.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv(envCollector)
	if path == "" {
		t.Skipf("%s names no collector; make doors does", envCollector)
	}
	return path
}

// limited is how many descriptors the next collectors have; 0: as many as this process.
var limited int

// run starts the collector with a configuration.
func run(t *testing.T, dir, telemetry, config string) *collector {
	t.Helper()
	c := &collector{t: t, dir: dir, telemetry: telemetry, done: make(chan struct{})}
	c.cmd = exec.CommandContext(context.Background(), program(t), "--config", config)
	if limited > 0 {
		c.cmd = exec.CommandContext(context.Background(), "sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, limited), "sh", program(t), "--config", config)
	}
	c.cmd.Dir = dir
	c.cmd.Stdout, c.cmd.Stderr = &c.said, &c.said
	require.NoError(t, c.cmd.Start())
	go func() {
		_ = c.cmd.Wait() // its state is looked at
		close(c.done)
	}()
	t.Cleanup(c.clean)
	c.eventually("a collector that is up", func() bool { _, err := c.metrics(); return err == nil })
	return c
}

func (c *collector) clean() {
	if !c.stopped {
		_ = c.cmd.Process.Kill() // an error says that it has ended
		<-c.done
	}
	if c.t.Failed() {
		c.t.Logf("the collector said:\n%s", c.said.String())
	}
}

// eventually waits for a condition as long as the collector lives.
func (c *collector) eventually(what string, condition func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(50 * time.Millisecond) {
		select {
		case <-c.done:
			require.FailNow(c.t, "the collector ended", "waiting for %s: %v", what, c.cmd.ProcessState)
		default:
		}
		require.True(c.t, time.Now().Before(deadline), "no %s within %v", what, patience)
	}
}

// listens waits for a server of the collector: its own metrics are there before.
func (c *collector) listens(address string) {
	c.t.Helper()
	c.eventually("a server at "+address, func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(c.t.Context(), "tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

func (c *collector) metrics() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.telemetry, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

// client keeps no connection: an attack counts them.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}

var sample = regexp.MustCompile(`(?m)^(\w+?)(?:_total)?(?:\{(.*)\})? ([0-9.e+]+)$`)

// count returns the sum of an own counter over the label pairs that it must have.
func (c *collector) count(name string, labels ...string) (sum float64) {
	text, err := c.metrics()
	if err != nil {
		return 0
	}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		if m[1] == "otelcol_"+name && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(m[2], l) }) {
			v, _ := strconv.ParseFloat(m[3], 64)
			sum += v
		}
	}
	return sum
}

var reasonLabel = regexp.MustCompile(`(?:reason|outcome)="([^"]*)"`)

// reasons returns an own counter by its reason, as text.
func (c *collector) reasons(name string) string {
	text, err := c.metrics()
	require.NoError(c.t, err)
	by := map[string]float64{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		if r := reasonLabel.FindStringSubmatch(m[2]); m[1] == "otelcol_"+name && r != nil {
			v, _ := strconv.ParseFloat(m[3], 64)
			by[r[1]] += v
		}
	}
	var parts []string
	for reason, n := range by {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f", reason, n))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// received reports whether a text came out of the collector.
func (c *collector) received(text string) bool {
	b, err := os.ReadFile(filepath.Join(c.dir, "out.jsonl"))
	return err == nil && bytes.Contains(b, []byte(text))
}

func (c *collector) receives(text string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%q of a source that behaves", text), func() bool { return c.received(text) })
}

var statusLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peak is the most memory that it had, in bytes.
func (c *collector) peak() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	m := statusLine.FindSubmatch(b)
	require.NotNil(c.t, m)
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(c.t, err)
	return kib << 10
}

// cpu is the time that it has used of its cores.
func (c *collector) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		require.NoError(c.t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// survives ends the collector as ends does; the row goes into the table.
func (c *collector) survives(door, attack string, tries int, counted string) {
	c.t.Helper()
	if peak := c.ends(); !c.t.Failed() {
		table.add(c.t, door, attack, tries, peak, counted)
	}
}

// ends ends the collector, which must have lived, must end in time and well, and must not
// have used more memory than is allowed: it returns how much.
func (c *collector) ends() (peak int64) {
	c.t.Helper()
	peak = c.peak()
	require.NoError(c.t, c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-c.done:
	case <-time.After(stopWithin):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are in the log of the test
		<-c.done
		c.stopped = true
		require.FailNow(c.t, "the collector hangs at its end")
	}
	c.stopped = true
	assert.Equal(c.t, 0, c.cmd.ProcessState.ExitCode(), "%v", c.cmd.ProcessState)
	assert.False(c.t, c.said.fell, "it says that it crashed")
	assert.Less(c.t, peak, int64(maxPeak), "bytes")
	return peak
}
