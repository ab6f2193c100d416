// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shifts are by how much the raw clocks of the hosts are ahead of this machine's,
// in whole seconds: the kernel shifts them exactly, in a time namespace. The hosts'
// real-time clocks are all this machine's.
var shifts = []int64{0, 100, 5000}

const (
	clockKey  = "0123456789abcdef0123456789abcdef"
	clockPort = "18862"
	// stranger is a member of the mesh that has no key.
	stranger = "n3"
)

// Three hosts whose raw clocks are far apart measure each other; a gateway puts
// spans of two of them on one timeline, and still can after it was killed. A fourth
// host that does not sign its packets moves nothing.
func TestClocksOfHosts(t *testing.T) {
	lab := newClockLab(t, len(shifts)+1)
	gateway := lab.startGateway(t)
	agents := make([]*process, 0, len(shifts))
	for i, shift := range shifts {
		agents = append(agents, lab.startAgent(t, i, shift, clockKey))
	}
	lab.startAgent(t, len(shifts), 0, "")
	raw := lab.awaitModels(t, append(agents, gateway)...)
	t.Run("offsets", func(t *testing.T) { assertShifts(t, raw) })
	t.Run("spans", func(t *testing.T) { lab.assertSpans(t, raw, gateway, true) })
	t.Run("live", func(t *testing.T) { lab.tellLiveBounds(t, raw[1], gateway) })
	t.Run("page", func(t *testing.T) {
		page, err := lab.get("/")
		require.NoError(t, err)
		assert.Contains(t, string(page), raw[1].clock)
	})
	t.Run("stranger", func(t *testing.T) { lab.assertNoStranger(t) })
	t.Run("restart", func(t *testing.T) {
		for _, a := range agents {
			require.NoError(t, a.cmd.Process.Kill())
			<-a.done
		}
		// What was kept last is not older than what was asked for before.
		time.Sleep(2 * saveInterval)
		require.NoError(t, gateway.cmd.Process.Kill())
		<-gateway.done
		again := lab.startGateway(t)
		for _, m := range raw {
			state, err := lab.get("/timeline")
			require.NoError(t, err)
			assert.Contains(t, string(state), m.clock, "nobody probes any more")
		}
		// Spans that have nothing to do with one another: a call between both hosts
		// would tell of their clocks by itself.
		lab.assertSpans(t, raw, again, false)
		assert.Zero(t, again.terminate(t, stopLimit))
	})
}

// clockModel is a solved model of a clock.
type clockModel struct {
	clock, timeline string
	at, offset      int64
	drift, bound    float64 // ppm, s
	untrusted       bool
	bounded         bool
}

// assertShifts compares what was found with what the kernel shifted the clocks by.
func assertShifts(t *testing.T, raw []clockModel) {
	t.Helper()
	first := raw[0]
	for i, m := range raw[1:] {
		shift := shifts[i+1] * int64(time.Second)
		// When the first clock reads its at, this one reads shift more.
		since := float64(first.at + shift - m.at)
		gap := first.offset - m.offset - shift - int64(math.Round(m.drift*since/1e6))
		bound := int64((first.bound+m.bound)*1e9) + 1
		t.Logf("%s: off by %d ns; bound %d ns", m.clock, gap, bound)
		assert.LessOrEqual(t, gap, bound, m.clock)
		assert.GreaterOrEqual(t, gap, -bound, m.clock)
		assert.Less(t, bound, int64(10*time.Millisecond), "a bound that says something")
		assert.Equal(t, first.timeline, m.timeline)
	}
}

// clockLab is hosts with a gateway on the first.
type clockLab struct {
	*network
	dir  string
	http *http.Client
}

func newClockLab(t *testing.T, hosts int) *clockLab {
	t.Helper()
	if out, err := command(packaged(t, "unshare"), "-T", "--monotonic", "1", "true"); err != nil {
		missing(t, "make a time namespace: %v: %s; want root and Linux 5.6", err, out)
	}
	l := &clockLab{network: newNetwork(t, hosts), dir: t.TempDir()}
	l.http = l.client(0)
	return l
}

// saveInterval is how often the gateway keeps its timeline.
const saveInterval = time.Second

func (l *clockLab) file(name string) string { return filepath.Join(l.dir, name) }

func (l *clockLab) startGateway(t *testing.T) *process {
	t.Helper()
	require.NoError(t, os.MkdirAll(l.file("state"), 0o700))
	config := fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: '%[1]s:24317'}
      http: {endpoint: '%[1]s:24318'}
extensions:
  file_storage: {directory: '%[2]s'}
  timeline: {endpoint: '%[1]s:13180', storage: file_storage, save_interval: %[3]s}
connectors:
  clocks: {timeline: timeline}
processors:
  clock_skew: {timeline: timeline}
exporters:
  file/models: {path: '%[4]s', append: true}
  file/spans: {path: '%[5]s', append: true}
service:
  extensions: [file_storage, timeline]
  pipelines:
    logs/edges: {receivers: [otlp], exporters: [clocks]}
    logs/models: {receivers: [clocks], exporters: [file/models]}
    traces: {receivers: [otlp], processors: [clock_skew], exporters: [file/spans]}
  telemetry: {metrics: {level: none}}
`, address(0), l.file("state"), saveInterval, l.file("models.jsonl"), l.file("spans.jsonl"))
	p := l.startCollector(t, 0, 0, "gateway", config)
	eventually(t, readyLimit, func() error {
		_, err := l.get("/timeline")
		return err
	}, p)
	return p
}

// startAgent starts the agent of a host whose raw clock is ahead by shift seconds.
func (l *clockLab) startAgent(t *testing.T, host int, shift int64, key string) *process {
	t.Helper()
	members := make([]string, len(l.hosts))
	for i := range members {
		members[i] = fmt.Sprintf("n%d %s", i, address(i))
	}
	auth, exporter := "", fmt.Sprintf("file: {path: '%s'}", l.file("stranger.jsonl"))
	if key != "" {
		auth = fmt.Sprintf("auth: {key: '%s'}", key)
		exporter = fmt.Sprintf("otlp_grpc: {endpoint: '%s:24317', tls: {insecure: true}}", address(0))
	}
	name, _, _ := strings.Cut(exporter, ":")
	config := fmt.Sprintf(`
receivers:
  owd_probe:
    node: n%[1]d
    host_id: n%[1]d
    endpoints: ['%[2]s']
    port: %[3]s
    peers: {list: ['%[4]s']}
    rate: 50
    window: 1s
    %[5]s
exporters:
  %[6]s
service:
  pipelines:
    logs: {receivers: [owd_probe], exporters: [%[7]s]}
  telemetry: {metrics: {level: none}}
`, host, address(host), clockPort, strings.Join(members, "', '"), auth, exporter, name)
	return l.startCollector(t, host, shift, fmt.Sprintf("agent%d", host), config)
}

func (l *clockLab) startCollector(t *testing.T, host int, shift int64, name, config string) *process {
	t.Helper()
	path := l.file(name + ".yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	args := []string{"netns", "exec", l.hosts[host]}
	if shift != 0 {
		args = append(args, "unshare", "-T", "--monotonic", strconv.FormatInt(shift, 10))
	}
	p := start(t, nil, "ip", append(args, built(t, "otelcol-lockstep"), "--config", path)...)
	p.name = name
	return p
}

// awaitModels waits until both clocks of all hosts are bounded on one timeline, and
// returns the raw ones. Before the first real-time clock is, a timeline has no date.
func (l *clockLab) awaitModels(t *testing.T, needs ...*process) (raw []clockModel) {
	t.Helper()
	eventually(t, 2*time.Minute, func() error {
		last, err := l.models()
		if err != nil {
			return err
		}
		raw = raw[:0]
		for i := range shifts {
			for _, kind := range []string{"/raw", "/realtime"} {
				m, ok := modelOf(last, fmt.Sprintf("host:n%d/", i), kind)
				// The first windows bound little.
				if !ok || m.untrusted || !m.bounded || m.bound > 0.001 {
					return fmt.Errorf("find host %d's %s: got %+v of %v; want a bound below 1 ms", i, kind, m, last)
				}
				if kind == "/raw" {
					raw = append(raw, m)
				}
				if m.timeline != raw[0].timeline {
					return fmt.Errorf("find host %d's %s: got timeline %s; want %s", i, kind, m.timeline, raw[0].timeline)
				}
			}
		}
		return nil
	}, needs...)
	return raw
}

func modelOf(all map[string]clockModel, host, kind string) (clockModel, bool) {
	for clock, m := range all {
		if strings.HasPrefix(clock, host) && strings.HasSuffix(clock, kind) {
			return m, true
		}
	}
	return clockModel{}, false
}

// models returns the last model of each clock.
func (l *clockLab) models() (map[string]clockModel, error) {
	content, err := os.ReadFile(l.file("models.jsonl"))
	if err != nil {
		return nil, err
	}
	last := map[string]clockModel{}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // it is being written
		}
		var logs struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct {
						EventName  string      `json:"eventName"`
						Attributes []attribute `json:"attributes"`
					} `json:"logRecords"`
				} `json:"scopeLogs"`
			} `json:"resourceLogs"`
		}
		if err := json.Unmarshal(line, &logs); err != nil {
			return nil, fmt.Errorf("decode models: %w", err)
		}
		for _, resource := range logs.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				for _, record := range scope.LogRecords {
					if record.EventName == "lockstep.clock.model" {
						m := newClockModel(record.Attributes)
						last[m.clock] = m
					}
				}
			}
		}
	}
	return last, nil
}

// attribute has all types of values that clocks are told of with.
type attribute struct {
	Key   string `json:"key"`
	Value struct {
		String string  `json:"stringValue"`
		Int    int64   `json:"intValue,string"`
		Double float64 `json:"doubleValue"`
		Bool   bool    `json:"boolValue"`
	} `json:"value"`
}

func newClockModel(attributes []attribute) (m clockModel) {
	for _, a := range attributes {
		switch a.Key {
		case "lockstep.clock.id":
			m.clock = a.Value.String
		case "lockstep.clock.timeline":
			m.timeline = a.Value.String
		case "lockstep.clock.at_nano":
			m.at = a.Value.Int
		case "lockstep.clock.offset_nano":
			m.offset = a.Value.Int
		case "lockstep.clock.drift":
			m.drift = a.Value.Double
		case "lockstep.clock.bound":
			m.bound, m.bounded = a.Value.Double, true
		case "lockstep.clock.untrusted":
			m.untrusted = a.Value.Bool
		}
	}
	return m
}

// assertSpans sends a span of each of the first two hosts, stamped by their raw
// clocks, and finds them on the timeline: the second 1 ms after the first, as it was.
// As a call, the second is the first's server; what centred it there would put it 2
// ms after.
func (l *clockLab) assertSpans(t *testing.T, raw []clockModel, gateway *process, call bool) {
	t.Helper()
	parent := ""
	if call {
		parent = "00000000000000a1"
	}
	const epoch = 1_000_000_000_000_000_000
	began := readBoth(t)
	trace := fmt.Sprintf("%032x", began.realtime)
	client := epoch + began.raw + shifts[0]*int64(time.Second)
	server := epoch + began.raw + shifts[1]*int64(time.Second) + 1_000_000
	body := fmt.Sprintf(`{"resourceSpans": [%s, %s]}`,
		spanOf(raw[0].clock, epoch, trace, "00000000000000a1", "", 3, client, client+5_000_000),
		spanOf(raw[1].clock, epoch, trace, "00000000000000a2", parent, 2, server, server+1_000_000))
	require.NoError(t, l.post("http://"+address(0)+":24318/v1/traces", body))
	var placed map[string]placedSpan
	eventually(t, readyLimit, func() error {
		var err error
		if placed, err = l.spans(trace); err == nil && len(placed) != 2 {
			err = fmt.Errorf("read spans: got %v; want 2", placed)
		}
		return err
	}, gateway)
	a, b := placed["00000000000000a1"], placed["00000000000000a2"]
	require.True(t, a.bounded && b.bounded, "got %+v, %+v", a, b)
	t.Logf("first off by %d ns from the time of day; second after it by %d ns; bounds %g s, %g s",
		a.start-began.realtime, b.start-a.start, a.bound, b.bound)
	bound := (a.bound + b.bound) * 1e9
	assert.InDelta(t, 1_000_000, b.start-a.start, bound+2)
	assert.Less(t, bound, 0.9e6, "a bound that tells it from the middle")
	assert.Equal(t, int64(5_000_000), a.end-a.start, "durations stay")
	assert.Equal(t, int64(1_000_000), b.end-b.start, "durations stay")
	assert.Equal(t, client, a.raw)
	assert.Equal(t, server, b.raw)
	assert.Equal(t, a.timeline, b.timeline)
	// The timeline follows the hosts' real-time clocks, which are this one.
	assert.InDelta(t, began.realtime, a.start, 1e6+a.bound*1e9)
}

// tellLiveBounds sends spans that a host's real-time clock stamped some time before, as
// programs do, and tells how they are bounded: beyond what slew_limit allows since then
// where the host has told of both of its clocks by then. It also tells what that costs.
func (l *clockLab) tellLiveBounds(t *testing.T, raw clockModel, gateway *process) {
	t.Helper()
	realtime := strings.TrimSuffix(raw.clock, "raw") + "realtime"
	for _, age := range []time.Duration{0, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second} {
		stamped := time.Now().UnixNano()
		time.Sleep(age)
		trace := fmt.Sprintf("%032x", stamped)
		body := fmt.Sprintf(`{"resourceSpans": [%s]}`, spanOf(realtime, 0, trace, "00000000000000b1", "", 3, stamped, stamped+1000))
		require.NoError(t, l.post("http://"+address(0)+":24318/v1/traces", body))
		var s placedSpan
		eventually(t, readyLimit, func() error {
			placed, err := l.spans(trace)
			if s = placed["00000000000000b1"]; err == nil && s.start == 0 {
				err = fmt.Errorf("read span of %s: got %v; want one", realtime, placed)
			}
			return err
		}, gateway)
		assert.True(t, s.bounded, "%v after it was stamped", age)
		t.Logf("a span that comes %v after it was stamped: bound %.1f µs", age, s.bound*1e6)
	}
	first, edges := l.ownEdges(t)
	assert.Positive(t, edges)
	t.Logf("each host tells of its own two clocks %.1f times a second", float64(edges)/time.Since(first).Seconds())
}

// ownEdges counts the edges of the host that hears nobody, since the first.
func (l *clockLab) ownEdges(t *testing.T) (first time.Time, edges int) {
	t.Helper()
	content, err := os.ReadFile(l.file("stranger.jsonl"))
	require.NoError(t, err)
	_, rest, ok := bytes.Cut(content, []byte(`"observedTimeUnixNano":"`))
	require.True(t, ok)
	nano, err := strconv.ParseInt(string(rest[:bytes.IndexByte(rest, '"')]), 10, 64)
	require.NoError(t, err)
	return time.Unix(0, nano), bytes.Count(content, []byte(`"lockstep.clock.edge"`))
}

// spanOf is a span in OTLP's JSON.
func spanOf(clock string, epoch int64, trace, id, parent string, kind int, start, end int64) string {
	return fmt.Sprintf(`{"resource": {"attributes": [
	{"key": "service.name", "value": {"stringValue": "e2e"}},
	{"key": "lockstep.clock.id", "value": {"stringValue": %q}},
	{"key": "lockstep.clock.epoch_unix_nano", "value": {"intValue": "%d"}}]},
	"scopeSpans": [{"spans": [{"traceId": %q, "spanId": %q, "parentSpanId": %q, "name": "call", "kind": %d,
	"startTimeUnixNano": "%d", "endTimeUnixNano": "%d",
	"attributes": [{"key": "rpc.system", "value": {"stringValue": "grpc"}}]}]}]}`, clock, epoch, trace, id, parent, kind, start, end)
}

type placedSpan struct {
	start, end, raw int64
	bound           float64
	bounded         bool
	timeline        string
}

// spans returns the spans of a trace that the gateway wrote, by id.
func (l *clockLab) spans(trace string) (map[string]placedSpan, error) {
	content, err := os.ReadFile(l.file("spans.jsonl"))
	if err != nil {
		return nil, err
	}
	found := map[string]placedSpan{}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // it is being written
		}
		var traces struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						TraceID    string      `json:"traceId"`
						SpanID     string      `json:"spanId"`
						Start      int64       `json:"startTimeUnixNano,string"`
						End        int64       `json:"endTimeUnixNano,string"`
						Attributes []attribute `json:"attributes"`
					} `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if err := json.Unmarshal(line, &traces); err != nil {
			return nil, fmt.Errorf("decode spans: %w", err)
		}
		for _, resource := range traces.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					if s.TraceID == trace {
						found[s.SpanID] = newPlacedSpan(s.Start, s.End, s.Attributes)
					}
				}
			}
		}
	}
	return found, nil
}

func newPlacedSpan(start, end int64, attributes []attribute) placedSpan {
	p := placedSpan{start: start, end: end}
	for _, a := range attributes {
		switch a.Key {
		case "lockstep.clock.raw_start_unix_nano":
			p.raw = a.Value.Int
		case "lockstep.clock.bound":
			p.bound, p.bounded = a.Value.Double, true
		case "lockstep.clock.timeline":
			p.timeline = a.Value.String
		}
	}
	return p
}

// assertNoStranger checks that nobody says anything of the host without a key, and
// that it learned nothing of the others.
func (l *clockLab) assertNoStranger(t *testing.T) {
	t.Helper()
	state, err := l.get("/timeline")
	require.NoError(t, err)
	assert.NotContains(t, string(state), "host:"+stranger+"/")
	models, err := l.models()
	require.NoError(t, err)
	for clock := range models {
		assert.NotContains(t, clock, "host:"+stranger+"/")
	}
	// Its own two clocks, which it reads together, are all that it knows.
	var learned []byte
	eventually(t, readyLimit, func() error {
		learned, err = os.ReadFile(l.file("stranger.jsonl"))
		if err == nil && !bytes.Contains(learned, []byte("host:"+stranger+"/")) {
			err = fmt.Errorf("read what %s knows: got nothing yet", stranger)
		}
		return err
	})
	for i := range shifts {
		assert.NotContains(t, string(learned), fmt.Sprintf("host:n%d/", i))
	}
}

// get asks the gateway's timeline.
func (l *clockLab) get(path string) ([]byte, error) {
	return l.do(http.MethodGet, "http://"+address(0)+":13180"+path, "")
}

func (l *clockLab) post(url, body string) error {
	_, err := l.do(http.MethodPost, url, body)
	return err
}

func (l *clockLab) do(method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return answer(l.http.Do(req))
}

// both are this machine's raw and real-time clocks, read together.
type both struct{ raw, realtime int64 }

func readBoth(t *testing.T) both {
	t.Helper()
	const monotonicRaw = 4
	raw := func() int64 {
		var ts syscall.Timespec
		_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonicRaw, uintptr(unsafe.Pointer(&ts)), 0)
		require.Zero(t, errno)
		return ts.Nano()
	}
	before := raw()
	realtime := time.Now().UnixNano()
	return both{before + (raw()-before)/2, realtime}
}
